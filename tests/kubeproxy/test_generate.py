"""The generator writes what kube-proxy wrote: same objects in, same chains and rules out.

Each chain's rows are compared in order, but for the chains where kube-proxy puts rows of several
Services as a Go map gives them: there the rows of each Service are in order, and the last row is.
"""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from analyzer.kubeproxy.generate import (
    Layout,
    ProxyConfig,
    ServicePortSpec,
    proxy_config,
    render_rules,
    service_ports,
)
from tests.support.captures import FIXTURES

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


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


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
        for layout in Layout
        for path in root.glob(f"{layout.value}.*-iptables-*/*/ip*")
        if _SAVED.fullmatch(path.name)
    )


def items_of(dump: Path) -> list[Any]:
    (objects,) = dump.parent.glob("objects.json*")
    items: list[Any] = json.loads(text_of(objects))["items"]
    return items


def made_from(
    dump: Path, items: list[Any], *more_flags: str, node: str | None = None
) -> tuple[list[ServicePortSpec], ProxyConfig]:
    """Return what a kube-proxy like that of `dump` makes of `items`."""
    family = 6 if dump.name.startswith("ip6") else 4
    proxy = proxy_of(dump, items, *more_flags, node=node, family=family)
    return list(service_ports(items, proxy.layout, family)), proxy


def proxy_of(
    dump: Path, items: list[Any], *more_flags: str, node: str | None, family: int
) -> ProxyConfig:
    """Return the kube-proxy of one family that wrote `dump`, but for what is told of it."""
    run = json.loads((dump.parent / "run.json").read_text())
    return proxy_config(
        items,
        [*run["flags"], *more_flags],
        node=node or run["node"],
        layout=Layout(".".join(dump.parent.parent.name.split(".")[:2])),
        family=family,
    )


def captured(dump: Path) -> Chains:
    """Return the chains of a dump, those of the kubelet left out where it had been there."""
    found = chains(text_of(dump))
    if dump.parent.name.endswith("+kubelet"):
        for place, rows in KUBELET.items():
            for row in rows:
                found[place].remove(row)
        assert found.pop(("filter", "KUBE-FIREWALL")) == [":KUBE-FIREWALL -"]
    return found


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
    assert versions == {layout.value for layout in Layout}


def test_every_capture_is_written_again(captures: Path) -> None:
    found = dumps(captures)
    cases = {dump.parent.name for dump in found}
    assert {"features", "features+kubelet", "features-masq-all", "dual-stack"} <= cases
    assert {"big-svc", "scale-10000", "master-down"} <= cases
    assert {dump.name.split("-")[0] for dump in found} == {"iptables", "ip6tables"}
    for dump in found:
        check(dump)


# --- that the comparison notices ------------------------------------------------

Items = list[Any]


def service(items: Items, name: str) -> Any:
    (found,) = [i for i in items if i["kind"] == "Service" and i["metadata"]["name"] == name]
    return found


def spec(items: Items, name: str) -> Any:
    return service(items, name)["spec"]


def slice_of(items: Items, name: str) -> Any:
    label = "kubernetes.io/service-name"
    return next(
        item
        for item in items
        if item["kind"] == "EndpointSlice" and item["metadata"]["labels"][label] == name
    )


def endpoint(items: Items, name: str) -> Any:
    return slice_of(items, name)["endpoints"][0]


CHANGES: Final[dict[str, Callable[[Items], object]]] = {
    "a ClusterIP": lambda i: spec(i, "nodeport").update(clusterIPs=["10.96.200.1"]),
    "a port": lambda i: spec(i, "nodeport")["ports"][0].update(port=81),
    "a port's name": lambda i: spec(i, "udp")["ports"][0].update(name="other"),
    "a NodePort": lambda i: spec(i, "nodeport")["ports"][0].update(nodePort=30999),
    "no NodePort": lambda i: spec(i, "nodeport")["ports"][0].pop("nodePort"),
    "a refused NodePort": lambda i: spec(i, "no-endpoints-nodeport")["ports"][0].update(
        nodePort=30999
    ),
    "an external IP": lambda i: spec(i, "external-ips").update(externalIPs=["198.51.100.61"]),
    "a refused external IP": lambda i: spec(i, "no-endpoints-lb").update(externalIPs=[]),
    "a load balancer": lambda i: service(i, "lb").update(status={}),
    "a protocol": lambda i: spec(i, "sctp")["ports"][0].update(protocol="UDP"),
    "externalTrafficPolicy": lambda i: spec(i, "lb").update(externalTrafficPolicy="Local"),
    "source ranges": lambda i: spec(i, "lb-ranges").update(
        loadBalancerSourceRanges=["192.0.2.0/24", "192.168.0.0/16"]
    ),
    "affinity": lambda i: spec(i, "affinity").update(sessionAffinity="None"),
    "seconds": lambda i: spec(i, "affinity-600")["sessionAffinityConfig"]["clientIP"].update(
        timeoutSeconds=601
    ),
    "readiness": lambda i: endpoint(i, "nodeport")["conditions"].update(ready=False),
    "an unready one": lambda i: endpoint(i, "all-unready")["conditions"].update(ready=True),
    "an address": lambda i: endpoint(i, "nodeport").update(addresses=["10.244.0.250"]),
    "a target port": lambda i: slice_of(i, "nodeport")["ports"][0].update(port=9999),
    "where it runs": lambda i: endpoint(i, "lb-local").update(nodeName="node-c1"),
    "a Service fewer": lambda i: i.remove(service(i, "ep-1")),
    "headless no more": lambda i: spec(i, "headless").update(
        clusterIP="10.96.9.9", clusterIPs=["10.96.9.9"]
    ),
}
#: What kube-proxy has looked at since 1.30 or since 1.36.
LATER: Final[dict[str, tuple[str, Callable[[Items], object]]]] = {
    "internalTrafficPolicy": (
        "1.30",
        lambda i: spec(i, "nodeport").update(internalTrafficPolicy="Local"),
    ),
    "a health check": ("1.30", lambda i: spec(i, "lb-local").update(healthCheckNodePort=31999)),
    "serving": (
        "1.30",
        lambda i: endpoint(i, "terminating-all")["conditions"].update(serving=False),
    ),
    "the annotation": (
        "1.30",
        lambda i: service(i, "topology")["metadata"].update(annotations={}),
    ),
    "a zone's hint": ("1.30", lambda i: endpoint(i, "topology").update(hints={})),
    "a zone's hint alone": ("1.36", lambda i: endpoint(i, "prefer-close").update(hints={})),
    "a node's hint": (
        "1.36",
        lambda i: endpoint(i, "prefer-same-node").update(hints={"forZones": [{"name": "a"}]}),
    ),
}
#: In 1.36 no annotation is asked for.
ONLY_IN: Final = {"the annotation": "1.30"}


def features(captures: Path, layout: Layout) -> Path:
    (found,) = [
        dump
        for dump in dumps(captures)
        if dump.parent.name == "features"
        and dump.name.startswith("iptables-legacy")
        and dump.parent.parent.name.startswith(layout.value)
    ]
    return found


@pytest.mark.parametrize("layout", Layout, ids=lambda layout: layout.value)
def test_a_changed_object_is_noticed(captures: Path, layout: Layout) -> None:
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


@pytest.mark.parametrize("layout", Layout, ids=lambda layout: layout.value)
def test_a_changed_flag_is_noticed(captures: Path, layout: Layout) -> None:
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
