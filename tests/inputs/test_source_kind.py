"""An address is a pod's of this node or of another, the node's own, or outside."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest

from analyzer.arguments.command_line import parse
from analyzer.errors import UsageError
from analyzer.inputs.recognised import Input, read_input
from analyzer.inputs.source_kind import client_source, source_kind
from analyzer.kubeproxy.view import Source
from tests.support.commands import DUMP, OBJECTS


@pytest.fixture(scope="module")
def given() -> Input:
    return read_input(parse(["services", DUMP, *OBJECTS, "--node", "worker1"]))


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("10.244.1.200", Source.POD),
        ("10.244.0.200", Source.POD_ELSEWHERE),
        ("192.168.0.11", Source.NODE),
        ("127.0.0.1", Source.NODE),
        # Another node, and its pods with hostNetwork.
        ("192.168.0.10", Source.EXTERNAL),
        ("203.0.113.9", Source.EXTERNAL),
    ],
)
def test_an_address_is_of_a_kind(given: Input, address: str, kind: Source) -> None:
    assert source_kind(given, ip_address(address)) is kind
    assert client_source(ip_address(address), given, balanced=False) == (kind, ip_address(address))


@pytest.mark.parametrize("address", ["10.244.2.5", "10.244.255.1"])
def test_a_pod_of_no_known_node_is_not_on_this_node(given: Input, address: str) -> None:
    found = client_source(ip_address(address), given, balanced=False)
    assert found == (Source.POD_ELSEWHERE, ip_address(address))


def test_an_address_in_no_network_of_pods_is_not_judged(tmp_path: Path) -> None:
    dump, objects = tmp_path / "no-cluster-cidr.txt", tmp_path / "unused.json"
    dump.write_text(Path(DUMP).read_text().replace("! -s 10.244.0.0/16", "! -i cni0"))
    unused = Path(OBJECTS[1]).read_text().replace("10.244.1.0/24", "10.244.201.0/24")
    objects.write_text(unused)  # the CNI plugin leaves podCIDRs unused
    words = ["services", str(dump), "--objects", str(objects), "--node", "worker1"]
    words += ["--node-of", "10.244.0.0/24=master"]
    with pytest.raises(UsageError, match="not known where it is, since it is in no network of"):
        client_source(ip_address("10.244.2.5"), read_input(parse(words)), balanced=False)
    words[-1] += ",10.244.2.0/24=new"
    found = client_source(ip_address("10.244.2.5"), read_input(parse(words)), balanced=False)
    assert found == (Source.POD_ELSEWHERE, ip_address("10.244.2.5"))


def test_a_kind_is_itself(given: Input) -> None:
    assert client_source(Source.NODE, given, balanced=False) == (Source.NODE, None)
    assert client_source(None, given, balanced=False) == (Source.POD, None)
    assert client_source(None, given, balanced=True) == (Source.EXTERNAL, None)


@pytest.mark.parametrize("asked", [Source.POD, ip_address("10.244.1.200")])
def test_a_balancer_is_outside(given: Input, asked: Source) -> None:
    with pytest.raises(UsageError, match="a load balancer is outside the cluster"):
        client_source(asked, given, balanced=True)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("10.96.18.52", "that is the ClusterIP of default/app, and no client has it"),
        ("169.254.3.4", "a link-local address does not say where a client is"),
        ("fd00::9", "--from fd00::9: the rules are for IPv4"),
    ],
)
def test_addresses_of_no_known_client_are_refused(given: Input, address: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        client_source(ip_address(address), given, balanced=False)


def test_a_link_local_address_of_the_node_is_the_nodes() -> None:
    own = ["--node-ip", "192.168.0.11,169.254.20.10"]
    given = read_input(parse(["services", DUMP, *OBJECTS, *own]))
    assert client_source(ip_address("169.254.20.10"), given, balanced=False)[0] is Source.NODE
