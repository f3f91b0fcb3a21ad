"""The generator writes what kube-proxy wrote: same objects in, same chains and rules out.

Each chain's rows are compared in order, but for the chains where kube-proxy puts rows of several
Services as a Go map gives them: there the rows of each Service are in order, and the last row is.
"""

from __future__ import annotations

import copy
import json
import re
from ipaddress import IPv4Network
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from analyzer.kubeproxy.generate import (
    ProxyConfig,
    RulesLayout,
    ServicePortSpec,
    api_objects,
    iptables_save,
    render_rules,
    service_ports,
    services,
)
from tests.support.capture_objects import (
    CHANGES,
    LATER,
    ONLY_IN,
    Items,
    items_of,
    proxy_of,
    text_of,
)
from tests.support.captures import FIXTURES
from tests.support.layouts import PROMISED

#: Chains where the rows of several Services stand.
SHARED: Final = ("KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS", "KUBE-PROXY-FIREWALL")
_SERVICE: Final = re.compile(r'--comment "(\S+)')
_SAVED: Final = re.compile(r"ip6?tables-\w+-save(-after-master-down)?\.txt(\.gz)?")

#: Rows of one table, by the chain whose rows they are.
Chains = dict[tuple[str, str], list[str]]

#: What the kubelet of that time had put in place before kube-proxy ran, of the captures whose
#: name says so. No API object tells whether it did.
KUBELET: Final = {
    ("filter", "INPUT"): ["-A INPUT -j KUBE-FIREWALL"],
    ("filter", "OUTPUT"): ["-A OUTPUT -j KUBE-FIREWALL"],
    ("filter", "KUBE-FIREWALL"): [
        '-A KUBE-FIREWALL -m comment --comment "kubernetes firewall for dropping marked packets" '
        "-m mark --mark 0x8000/0x8000 -j DROP",
        "-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "
        '"block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT '
        "-j DROP",
    ],
    ("nat", "KUBE-MARK-DROP"): ["-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000"],
}


def chains(text: str) -> Chains:
    """Return each declared chain with its rows, in an order that kube-proxy keeps."""
    found: Chains = {}
    table = ""
    for line in text.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith(":"):
            name, policy, _ = line[1:].split(" ")
            found[table, name] = [f":{name} {policy}"]
        elif line.startswith("-A"):
            found[table, line.split(" ", 2)[1]].append(line)
    return {place: _settled(place, rows) for place, rows in found.items()}


def _settled(place: tuple[str, str], rows: list[str]) -> list[str]:
    """Return rows by the Service that their comment names, each Service's as they stood."""
    if place[1] not in SHARED:
        return rows
    # The jump to KUBE-NODEPORTS ends its chain.
    last = [rows[-1]] if place == ("nat", "KUBE-SERVICES") else []
    return [*sorted(rows, key=_name), *last]


def _name(row: str) -> str:
    found = _SERVICE.search(row)
    return found[1] if found else ""


def dumps(root: Path) -> list[Path]:
    """Return the dumps without counters of the versions whose layouts are known."""
    return sorted(
        path
        for layout in RulesLayout
        for path in root.glob(f"{layout.value}.*-iptables-*/*/ip*")
        if _SAVED.fullmatch(path.name)
    )


def made_from(
    dump: Path, items: Items, *more_flags: str, node: str | None = None
) -> tuple[list[ServicePortSpec], ProxyConfig]:
    """Return what a kube-proxy like that of `dump` makes of `items`."""
    family = 6 if dump.name.startswith("ip6") else 4
    proxy = proxy_of(dump, items, *more_flags, node=node, family=family)
    return list(service_ports(items, proxy.layout, family)), proxy


def captured(dump: Path) -> Chains:
    """Return the chains of a dump, those of the kubelet left out where it had been there."""
    found = chains(text_of(dump))
    if dump.parent.name.endswith("+kubelet"):
        for place, rows in KUBELET.items():
            for row in rows:
                # The kubelet of 1.14 did not know of localnet connections.
                if "localnet" not in row or RulesLayout(_minor_of(dump)) is not RulesLayout.V1_14:
                    found[place].remove(row)
        assert found.pop(("filter", "KUBE-FIREWALL")) == [":KUBE-FIREWALL -"]
        if not RulesLayout(_minor_of(dump)).declares_marks:
            assert found.pop(("nat", "KUBE-MARK-DROP")) == [":KUBE-MARK-DROP -"]
    return found


def _minor_of(dump: Path) -> str:
    return ".".join(dump.parent.parent.name.split(".")[:2])


def check(dump: Path) -> None:
    services, proxy = made_from(dump, items_of(dump))
    made, wanted = chains(render_rules(services, proxy)), captured(dump)
    # pytest would take its time to compare dictionaries of 100,000 chains.
    differing = [
        place for place in made.keys() | wanted.keys() if made.get(place) != wanted.get(place)
    ]
    assert not differing, (made.get(differing[0]), wanted.get(differing[0]))


@pytest.mark.parametrize(
    "dump", dumps(FIXTURES), ids=lambda p: f"{p.parent.parent.name}/{p.parent.name}"
)
def test_fixtures_are_written_again(dump: Path) -> None:
    check(dump)


def test_all_layouts_are_among_the_fixtures() -> None:
    versions = {dump.parent.parent.name[:4] for dump in dumps(FIXTURES)}
    assert versions == {layout.value for layout in RulesLayout}


def test_every_capture_is_written_again(captures: Path) -> None:
    found = dumps(captures)
    cases = {dump.parent.name for dump in found}
    assert {"features", "features+kubelet", "features-masq-all", "dual-stack"} <= cases
    assert {"big-svc", "scale-10000", "master-down"} <= cases
    assert {dump.name.split("-")[0] for dump in found} == {"iptables", "ip6tables"}
    for dump in found:
        check(dump)


# --- that the comparison notices ------------------------------------------------


def features(captures: Path, layout: RulesLayout) -> Path:
    (found,) = [
        dump
        for dump in dumps(captures)
        if dump.parent.name == "features"
        and dump.name.startswith("iptables-legacy")
        and dump.parent.parent.name.startswith(layout.value)
    ]
    return found


@pytest.mark.parametrize("layout", PROMISED, ids=lambda layout: layout.value)
def test_a_changed_object_is_noticed(captures: Path, layout: RulesLayout) -> None:
    dump = features(captures, layout)
    items, wanted = items_of(dump), captured(dump)
    assert chains(render_rules(*made_from(dump, items))) == wanted
    later = {
        name: change
        for name, (since, change) in LATER.items()
        if layout.value >= since and ONLY_IN.get(name, layout.value) == layout.value
    }
    for name, change in (CHANGES | later).items():
        changed = copy.deepcopy(items)
        change(changed)
        assert chains(render_rules(*made_from(dump, changed))) != wanted, name


@pytest.mark.parametrize("layout", PROMISED, ids=lambda layout: layout.value)
def test_a_changed_flag_is_noticed(captures: Path, layout: RulesLayout) -> None:
    dump = features(captures, layout)
    items, wanted = items_of(dump), captured(dump)
    for flags in (("--masquerade-all",), ("--cluster-cidr=",), ("--cluster-cidr=10.0.0.0/8",)):
        assert chains(render_rules(*made_from(dump, items, *flags))) != wanted
    assert chains(render_rules(*made_from(dump, items, node="node-b1"))) != wanted


def test_a_row_in_another_place_is_noticed() -> None:
    dump = FIXTURES / "1.20.2-iptables-legacy/two-node/iptables-legacy-save.txt"
    lines = text_of(dump).splitlines()
    wanted = chains("\n".join(lines))
    swapped = 0
    for at, (first, second) in enumerate(pairwise(lines)):
        chain = first.split(" ")[1:2] if first.startswith("-A") else []
        if not chain or second.split(" ")[1:2] != chain:
            continue
        if chain[0] not in SHARED or _name(first) == _name(second):
            swapped += 1
            others = [*lines[:at], second, first, *lines[at + 2 :]]
            assert chains("\n".join(others)) != wanted, first
    assert swapped > 20


def test_objects_of_plain_services_are_those_of_their_rules() -> None:
    given = list(services(6, endpoints=(1, 3)))
    objects = json.loads(json.dumps(api_objects(given)))
    config = ProxyConfig(layout=RulesLayout.V1_36, node="", cluster_cidr=IPv4Network("10.0.0.0/9"))
    told = render_rules(service_ports(objects, RulesLayout.V1_36), config)
    rows = {row for row in told.splitlines() if "svc-" in row and " -j " in row}
    assert rows == {row for row in iptables_save(given).splitlines() if "svc-" in row}
