"""Which ServicePorts of the objects a dump does not show."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from analyzer.kubeproxy.absent import absent
from analyzer.kubeproxy.predict.settings import GENERATED
from analyzer.model.services import ApiEndpoint, ApiServicePort
from analyzer.model.value import replace
from analyzer.parsers import formats
from tests.support.dumps import dump, two_endpoints, view_of
from tests.support.reading import read_ruleset

SERVED = dump(*two_endpoints())
FILTER = "*filter\n:KUBE-SERVICES - [0:0]\nCOMMIT\n"
READY = ApiEndpoint(
    address=ip_address("10.0.0.9"), port=80, spellings=("10.0.0.9",), is_ready=True, is_certain=True
)


def spec(name: str = "ns/b:http", address: str = "10.96.0.9", **more: Any) -> ApiServicePort:
    frontends = (("ClusterIP", ip_address(address), 80),)
    given = {"protocol": "tcp", "frontends": frontends, "endpoints": (), **more}
    return ApiServicePort(name=name, **given)


def lacking(text: str, *specs: ApiServicePort) -> list[str]:
    ruleset = read_ruleset(text.encode(), "dump.txt")
    return [each.name.text for each in absent(ruleset, view_of(text), specs, ()).lacking]


def test_a_service_is_there_by_its_name_or_by_an_address_of_it() -> None:
    text = SERVED + FILTER
    assert lacking(text, spec("ns/a:http", "10.96.0.7")) == []  # a new ClusterIP, an old rule
    assert lacking(text, spec("ns/other:http", "10.96.0.1")) == []  # a rule without its comment
    assert lacking(text, spec("ns/b:http"), spec("ns/a:http", protocol="udp")) == [
        "ns/b:http",
        "ns/a:http",
    ]


@pytest.mark.parametrize(
    ("rest", "wanted", "expected"),
    [
        (FILTER, spec(), True),
        ("", spec(), False),
        ("", spec(endpoints=(READY,)), True),
        ("", spec(endpoints=(READY,), internal_local=True), False),
        ("", spec(endpoints=(replace(READY, is_certain=False),)), False),
        ("*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n", spec(), False),
        ("*filter\n:KUBE-SERVICES - [0:0]\n", spec(), False),
    ],
    ids=[
        "refusals are shown",
        "the nat table alone",
        "with endpoints",
        "with none here",
        "perhaps without endpoints",
        "a filter table of others",
        "a filter table that is cut",
    ],
)
def test_a_service_without_endpoints_is_expected_where_its_refusal_would_show(
    rest: str, wanted: ApiServicePort, expected: bool
) -> None:
    assert bool(lacking(SERVED + rest, wanted)) is expected


def test_the_other_ip_version_has_another_service_of_the_name() -> None:
    assert lacking(SERVED + FILTER, spec("ns/a:http", "fd00:96::9")) == ["ns/a:http"]


def test_in_nftables_mode_refusals_are_always_shown() -> None:
    ruleset = formats.read_ruleset(b"table ip kube-proxy {\n}\n", "nft.txt")
    view = view_of(SERVED)
    found = [absent(ruleset, replace(view, mode=m), [spec()], ()) for m in GENERATED[::-1]]
    # nft does not print the REJECT of iptables-nft.
    assert [len(each.lacking) for each in found] == [1, 0]


def test_what_is_of_the_other_version_is_beyond_the_dump() -> None:
    ruleset = read_ruleset(SERVED.encode(), "dump.txt")
    found = absent(ruleset, view_of(SERVED), (), [spec("ns/a:http", "fd00:96::9")])
    assert [(each.name.text, each.version) for each in found.beyond] == [("ns/a:http", 6)]
    assert found.lacking == ()
