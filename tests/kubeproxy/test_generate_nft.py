"""The generator writes what kube-proxy wrote in nftables mode: same objects in, same tables out.

Chains, sets and maps are compared by name, as kube-proxy makes those of Services in any order;
the rules of a chain in their order, and elements as the lines in which nft lists them.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from analyzer.kubeproxy.generate import (
    EndpointSpec,
    ProxyConfig,
    RulesLayout,
    ServicePortSpec,
    nft_1_36,
    nft_json,
    nft_text,
    render_nft,
    service_ports,
    services,
)
from analyzer.kubeproxy.generate.nft_json import table_to_json
from analyzer.kubeproxy.generate.nft_networks import networks_to_text
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.model.cluster import Cluster
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers.formats import read_ruleset
from tests.support.capture_objects import (
    CHANGES,
    LATER,
    ONLY_IN,
    Items,
    items_of,
    proxy_of,
    spec,
    text_of,
)
from tests.support.captures import FIXTURES

LAYOUTS: Final = (RulesLayout.V1_30, RulesLayout.V1_36)
_LISTED: Final = re.compile(r"nft-list-ruleset(-after-master-down)?\.txt(\.gz)?")
_BODY: Final = re.compile(r"^\t(set|map|chain) (\S+) \{\n(.*?)^\t\}\n", re.MULTILINE | re.DOTALL)

A_POD: Final = ip_address("10.244.0.9")

#: The lines of chains, sets and maps, by table and name.
Parts = dict[tuple[str, str, str], list[str]]


def parts(text: str) -> Parts:
    """Return all parts of a listing; what stands outside them is a part of its table."""
    found: Parts = {}
    for table in text.split("\ntable "):
        family = table.removeprefix("table ").split(" ", 1)[0]
        for kind, name, body in _BODY.findall(table):
            assert (family, kind, name) not in found
            found[family, kind, name] = body.splitlines()
        around = _BODY.sub("", table).removeprefix("table ").split("\n")
        found[family, "", ""] = [line for line in around if line]
    return found


def dumps(root: Path) -> list[Path]:
    return sorted(p for p in root.glob("*-nftables/*/nft*") if _LISTED.fullmatch(p.name))


def made_from(
    dump: Path, items: Items, *more_flags: str, node: str | None = None
) -> tuple[list[ServicePortSpec], list[ProxyConfig]]:
    """Return what the two kube-proxies of a node like that of `dump` make of `items`."""
    proxies = []
    for family in (4, 6):
        proxy = proxy_of(dump, items, *more_flags, node=node, family=family)
        if family == 4 or proxy.node_address is not None:
            proxies.append(proxy)
    layout = proxies[0].layout
    return [s for p in proxies for s in service_ports(items, layout, p.family)], proxies


def render(dump: Path, items: Items, *more_flags: str, node: str | None = None) -> Parts:
    given, proxies = made_from(dump, items, *more_flags, node=node)
    return parts(render_nft(given, *proxies))


def check(dump: Path) -> None:
    made, wanted = render(dump, items_of(dump)), parts(text_of(dump))
    differing = [p for p in made.keys() | wanted.keys() if made.get(p) != wanted.get(p)]
    assert not differing, (differing[0], made.get(differing[0]), wanted.get(differing[0]))


@pytest.mark.parametrize("dump", dumps(FIXTURES), ids=lambda p: f"{p.parent.parent.name}")
def test_fixtures_are_written_again(dump: Path) -> None:
    check(dump)


def test_every_capture_is_written_again(captures: Path) -> None:
    found = dumps(captures)
    for layout in LAYOUTS:
        cases = {d.parent.name for d in found if d.parent.parent.name.startswith(layout.value)}
        assert {"features", "dual-stack", "big-svc", "scale-1000", "two-node"} <= cases
    for dump in found:
        check(dump)


def test_parts_that_no_service_changes_stand_in_their_order(captures: Path) -> None:
    for dump in dumps(captures):
        if dump.parent.name in ("two-node", "features", "dual-stack"):
            given, proxies = made_from(dump, items_of(dump))
            of_tables = [
                [place for place in parts(text) if "/" not in place[2]]
                for text in (render_nft(given, *proxies), text_of(dump))
            ]
            assert of_tables[0] == of_tables[1]


@pytest.mark.parametrize("case", ["two-node", "scale-100"])
def test_json_of_plain_services_is_that_of_nft(captures: Path, case: str) -> None:
    (dump,) = captures.glob(f"1.36*-nftables/{case}/nft-list-ruleset.json*")
    given, proxies = made_from(dump, items_of(dump))
    own = [each for each in given if each.cluster_ip.version == 4]
    made = of_json(table_to_json(nft_1_36.table(own, proxies[0])))
    wanted = [each for each in of_json(text_of(dump)) if '"ip6"' not in each]
    assert made == wanted


def of_json(text: str) -> list[str]:
    """Return the parts of a ruleset without the handles, which say when each was made."""
    return sorted(
        json.dumps({kind: {k: v for k, v in part.items() if k != "handle"}}, sort_keys=True)
        for each in json.loads(text)["nftables"]
        for kind, part in each.items()
    )


def test_a_rule_that_plain_services_have_not_is_not_put_into_json() -> None:
    service = a_service(affinity=600, endpoints=(EndpointSpec(address=A_POD, port=80),))
    table = nft_1_36.table([service], ProxyConfig(layout=RulesLayout.V1_36, node="a"))
    with pytest.raises(ValueError, match=r"expected"):
        table_to_json(table)


def test_plain_services_of_any_number_are_read_alike_as_text_and_json() -> None:
    given = list(services(20, endpoints=(1, 3, 10)))
    texts = nft_text(given), nft_json(given)
    rulesets = [read_ruleset(text.encode(), "dump") for text in texts]
    views = [NftRecogniser(r, Cluster()).view() for r in rulesets if isinstance(r, NftRuleset)]
    assert views[0] == views[1]
    assert views[0].diagnostics == ()
    of_text = {each.name.text: each for each in views[0].services}
    assert of_text.keys() == {each.name for each in given}
    for each in given:
        shares = list(of_text[each.name].routes[0].shares)
        assert [(s.endpoint.address, s.endpoint.port) for s in shares] == [*each.endpoints]


# --- that the comparison notices ------------------------------------------------


def features(captures: Path, layout: RulesLayout) -> Path:
    (found,) = captures.glob(f"{layout.value}*-nftables/features/nft-list-ruleset.txt*")
    return found


every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.value)

#: What nftables mode writes no rule for.
_UNSEEN: Final = {"a health check"}
MORE: Final[dict[str, tuple[str, Callable[[Items], object]]]] = {
    "a node's address": ("1.30", lambda i: addresses(i)[0].update(address="192.168.10.99")),
    "no ServiceCIDR": ("1.36", lambda i: i.remove(service_cidr(i))),
    "two ServiceCIDRs": ("1.36", lambda i: service_cidr(i)["spec"]["cidrs"].append("10.0.0.0/24")),
    "a days' affinity": (
        "1.30",
        lambda i: spec(i, "affinity-600")["sessionAffinityConfig"]["clientIP"].update(
            timeoutSeconds=86_400
        ),
    ),
}


def addresses(items: Items) -> Any:
    nodes = (i for i in items if i["kind"] == "Node" and i["metadata"]["name"] == "node-a1")
    return next(nodes)["status"]["addresses"]


def service_cidr(items: Items) -> Any:
    return next(i for i in items if i["kind"] == "ServiceCIDR")


@every_layout
def test_a_changed_object_is_noticed(captures: Path, layout: RulesLayout) -> None:
    dump = features(captures, layout)
    items, wanted = items_of(dump), parts(text_of(dump))
    assert render(dump, items) == wanted
    later = {
        name: change
        for name, (since, change) in (LATER | MORE).items()
        if layout.value >= since and ONLY_IN.get(name, layout.value) == layout.value
    }
    for name, change in (CHANGES | later).items():
        changed = copy.deepcopy(items)
        change(changed)
        assert (render(dump, changed) == wanted) is (name in _UNSEEN), name


@every_layout
def test_a_changed_flag_is_noticed(captures: Path, layout: RulesLayout) -> None:
    dump = features(captures, layout)
    items, wanted = items_of(dump), parts(text_of(dump))
    for flag in ("--cluster-cidr=", "--cluster-cidr=10.0.0.0/8"):
        assert render(dump, items, flag) != wanted
    assert render(dump, items, node="node-b1") != wanted
    # 1.30 takes the flag and forgets it.
    assert (render(dump, items, "--masquerade-all") == wanted) is (layout is RulesLayout.V1_30)


def test_a_line_in_another_place_is_noticed() -> None:
    (dump,) = FIXTURES.glob("1.36.2-nftables/*/nft-list-ruleset.txt")
    lines = text_of(dump).splitlines(keepends=True)
    wanted = parts("".join(lines))
    swapped = 0
    for at, (first, second) in enumerate(pairwise(lines)):
        if first.startswith("\t\t") and second.startswith("\t\t") and first != second:
            swapped += 1
            others = [*lines[:at], second, first, *lines[at + 2 :]]
            assert parts("".join(others)) != wanted, first
    assert swapped > 20


# --- what it refuses, and what no capture has ------------------------------------


def a_service(**told: Any) -> ServicePortSpec:
    made = {
        "name": "ns/a:http",
        "protocol": "tcp",
        "cluster_ip": ip_address("10.96.0.1"),
        "port": 80,
    }
    return ServicePortSpec(**(made | told))


def test_a_service_of_a_family_without_proxy_is_refused() -> None:
    proxy = ProxyConfig(layout=RulesLayout.V1_36, node="a")
    with pytest.raises(ValueError, match="ns/a:http: fd00::1"):
        render_nft([a_service(cluster_ip=ip_address("fd00::1"))], proxy)
    with pytest.raises(ValueError, match="each family"):
        render_nft([], proxy, proxy)
    with pytest.raises(ValueError, match="each family"):
        render_nft([])


def test_a_version_without_nftables_mode_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1\.20"):
        render_nft([], ProxyConfig(layout=RulesLayout.V1_20, node="a"))


@pytest.mark.parametrize(
    ("networks", "printed"),
    [
        ("192.0.2.0/24", "192.0.2.0/24"),
        ("203.0.113.1/32", "203.0.113.1"),
        ("192.0.2.0/24 192.0.2.1/32", "{ 192.0.2.0/24 }"),
        ("192.0.2.0/25 192.0.2.128/25", "{ 192.0.2.0/24 }"),
        (
            "192.0.2.0/25 192.0.2.128/26 10.0.0.1/32",
            "{ 10.0.0.1, 192.0.2.0-192.0.2.191 }",
        ),
        ("203.0.113.2/32 203.0.113.1/32", "{ 203.0.113.1-203.0.113.2 }"),
        ("203.0.113.1/32 203.0.113.1/32", "{ 203.0.113.1 }"),
        ("255.255.255.255/32 10.0.0.0/8", "{ 10.0.0.0/8, 255.255.255.255 }"),
        ("0.0.0.0/0 10.0.0.0/8", "{ 0.0.0.0/0 }"),
        ("fd00::/64 fd00::1/128 fd01::/64", "{ fd00::/64, fd01::/64 }"),
        ("::1/128 ::/128", "{ ::/127 }"),
    ],
)
def test_networks_are_joined_as_nft_joins_them(networks: str, printed: str) -> None:
    assert networks_to_text([ip_network(text) for text in networks.split()]) == printed
