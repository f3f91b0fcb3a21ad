"""What a node's rules lack, unless only a Local policy explains it, and what other rules end."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.cluster.drift_kinds import DriftKind
from analyzer.cluster.drift_services import (
    ObjectFacts,
    behind,
    differ_behind,
    differences,
    is_open_behind,
)
from analyzer.failure.hairpin_loss import sent_by
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import route_loss
from analyzer.kubeproxy.generate import RulesLayout, proxy_config, render_rules, service_ports
from analyzer.kubeproxy.routes.narrowest import narrowest
from analyzer.kubeproxy.view import ServicePort, Source
from analyzer.model.addresses import Address
from analyzer.model.probability import Bounds
from tests.support.cluster_reading import objects_file, reader
from tests.support.drifts import address, endpoints_of, name, objects
from tests.support.effort import examples

#: The node of each endpoint of "plain".
_NODES: Final = {address(0, at): name(at) for at in range(3)}


def _plain(folder: Path, ends: Sequence[int], *flags: str) -> ServicePort:
    """Return a ServicePort with the endpoints of these nodes, as node-00 has it."""
    items = objects(3)
    endpoints_of(items, "plain")[:] = [endpoints_of(items, "plain")[at] for at in ends]
    layout = RulesLayout.V1_36
    flags = ("--cluster-cidr=10.244.0.0/16", *flags)
    config = proxy_config(items, flags, node=name(0), layout=layout)
    dump = render_rules(list(service_ports(items, layout)), config)
    shown = reader(objects_file(folder, items), shares=False).shown(dump.encode(), name(0))
    return next(each for each in shown if each.name.text == "ns/plain:http")


@pytest.mark.parametrize(
    ("ends", "wanted", "nodes", "told"),
    [
        # As a repair leaves it after the other node of a cluster of two was lost.
        ([0], [0, 1], [0], [(DriftKind.MISSING_ENDPOINT, f"{address(0, 1)}:8080")]),
        ([0], [0, 1, 2], [0], [(DriftKind.OTHER_LOCALITY, f"{address(0, 0)}:8080")]),
        (
            [1],
            [0, 1, 2],
            [0],
            [
                (DriftKind.MISSING_ENDPOINT, f"{address(0, 0)}:8080"),
                (DriftKind.MISSING_ENDPOINT, f"{address(0, 2)}:8080"),
            ],
        ),
        # Two nodes with the endpoint of one of them have no Local policy.
        (
            [0],
            [0, 1, 2],
            [0, 1],
            [
                (DriftKind.MISSING_ENDPOINT, f"{address(0, 1)}:8080"),
                (DriftKind.MISSING_ENDPOINT, f"{address(0, 2)}:8080"),
            ],
        ),
    ],
)
def test_a_node_lacks_endpoints(
    tmp_path: Path,
    ends: list[int],
    wanted: list[int],
    nodes: list[int],
    told: list[tuple[DriftKind, str]],
) -> None:
    facts = ObjectFacts(services={}, owner=lambda _: None, place=lambda each: _NODES.get(str(each)))
    own = [name(at) for at in nodes]
    found = differences(_plain(tmp_path, ends), _plain(tmp_path, wanted), facts, own)
    assert [*found] == told


@pytest.mark.parametrize(
    ("contents", "differ"),
    [
        ([([0], ()), ([1], ()), ([1], ("--masquerade-all",))], True),
        # The first has both endpoints, and each of the others one that the other lacks.
        ([([0, 1], ()), ([1], ()), ([0], ("--masquerade-all",))], True),
        ([([0], ()), ([1], ()), ([2], ("--masquerade-all",))], False),
        ([([0], ()), ([0, 1], ()), ([1, 2], ())], False),
    ],
)
def test_any_two_nodes_are_compared_after_dnat(
    tmp_path: Path, contents: list[tuple[list[int], tuple[str, ...]]], differ: bool
) -> None:
    found = [_plain(tmp_path, ends, *flags) for ends, flags in contents]

    def is_own(_: object) -> bool:
        return False

    pairs = ((ours, theirs) for ours in found for theirs in found)
    assert any(any(behind(*pair, is_own)) for pair in pairs) is differ
    assert differ_behind([(each, frozenset()) for each in found], lambda _: is_own) is differ


def _shown(folder: Path, *rules: str, table: str = "filter", api: bool = False) -> ServicePort:
    """Return "plain" as node-00 has it, with rules of another program before all others.

    With `api` the address of node-01 is one of its endpoints.
    """
    items = objects(3)
    if api:
        endpoints_of(items, "plain")[1]["addresses"] = [_NODE]
    layout = RulesLayout.V1_36
    config = proxy_config(items, ("--cluster-cidr=10.244.0.0/16",), node=name(0), layout=layout)
    dump = render_rules(list(service_ports(items, layout)), config)
    own = "".join(f"{rule}\n" for rule in rules)
    if f"*{table}\n" in dump:
        head, mark, rest = dump.partition(f"*{table}\n")
        chains, _, others = rest.partition("-A ")
        dump = f"{head}{mark}{chains}{own}-A {others}"
    else:
        dump += f"*{table}\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{own}COMMIT\n"
    shown = reader(objects_file(folder, items), shares=False).shown(dump.encode(), name(0))
    return next(each for each in shown if each.name.text == "ns/plain:http")


_NODE: Final = "192.168.0.11"
_OWN: Final = ip_address(_NODE)


def _behind(found: ServicePort, usual: ServicePort) -> list[tuple[DriftKind, str]]:
    return [*behind(found, usual, lambda _: False)]


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ("nat", "-A PREROUTING -s 10.244.1.76/30 -d 10.96.0.10/32 -j ACCEPT"),
        ("nat", "-A PREROUTING -s 10.244.1.76/30 -d 10.96.0.10/32 -j RETURN"),
        ("raw", "-A PREROUTING -s 10.244.1.76/30 -d 10.96.0.10/32 -j NOTRACK"),
        ("mangle", "-A PREROUTING -s 10.244.1.76/30 -d 10.96.0.10/32 -j DROP"),
        ("filter", "-A FORWARD -s 10.244.1.76/30 -d 10.244.1.10/32 -j REJECT"),
        ("filter", "-A FORWARD -s 10.244.1.10/32 -d 10.244.1.76/30 -j DROP"),
    ],
)
def test_rules_that_single_out_a_network_are_named_with_it(
    tmp_path: Path, table: str, rule: str
) -> None:
    found = _behind(_shown(tmp_path, rule, table=table), _shown(tmp_path))
    told = "10.96.0.10:80 from pod-elsewhere 10.244.1.76/30"
    assert found == [(DriftKind.LOST_TO_RULES, told)]


def test_the_same_rule_for_other_networks_differs(tmp_path: Path) -> None:
    one, other = (
        _shown(tmp_path, f"-A FORWARD -s {each} -d 10.244.1.10/32 -j DROP")
        for each in ("10.244.1.76/32", "10.244.1.77/32")
    )
    assert [kind for kind, _ in _behind(one, other)] == [DriftKind.LOST_TO_RULES]


def test_hairpin_flows_that_rules_end_differ(tmp_path: Path) -> None:
    rule = f"-A FORWARD -s {address(0, 0)}/32 -d {address(0, 0)}/32 -j DROP"
    assert [kind for kind, _ in _behind(_shown(tmp_path, rule), _shown(tmp_path))] == [
        DriftKind.LOST_TO_RULES
    ]


def test_flows_to_a_nodes_own_address_are_open_where_rules_end_them(tmp_path: Path) -> None:
    rule = f"-A FORWARD -d {_NODE}/32 -p tcp -m tcp --dport 8080 -j DROP"
    found, usual = _shown(tmp_path, rule, api=True), _shown(tmp_path, api=True)
    # At another node it is an endpoint like others.
    assert [kind for kind, _ in _behind(found, usual)] == [DriftKind.LOST_TO_RULES]
    assert [*behind(found, usual, _OWN.__eq__)] == []
    assert is_open_behind(found, usual, _OWN.__eq__)
    assert not is_open_behind(found, found, _OWN.__eq__)
    assert not is_open_behind(usual, usual, _OWN.__eq__)


@st.composite
def _rules(draw: st.DrawFn) -> tuple[str, str]:
    """Return a table, and a rule of it on flows of a client to "plain", or on answers."""
    client = draw(st.sampled_from(_CLIENTS))
    end = draw(st.sampled_from([address(0, at) for at in range(3)]))
    table, chain, targets = draw(
        st.sampled_from(
            [
                ("raw", "PREROUTING", ("DROP", "NOTRACK")),
                ("raw", "OUTPUT", ("DROP", "NOTRACK")),
                ("mangle", "PREROUTING", ("DROP", "ACCEPT")),
                ("nat", "PREROUTING", ("ACCEPT", "RETURN")),
                ("filter", "FORWARD", ("DROP", "REJECT")),
                ("filter", "OUTPUT", ("DROP", "REJECT")),
            ]
        )
    )
    flow = draw(
        st.sampled_from(
            [
                f"-s {client} -d {end}",
                f"-s {client} -d 10.96.0.10",
                f"-s {client}/31",
                f"-d {client} -s {end}",
                f"-s {end}",
            ]
        )
    )
    return table, f"-A {chain} {flow} -p tcp -j {draw(st.sampled_from(targets))}"


_CLIENTS: Final = ("10.244.0.77", "10.244.1.76", "10.244.0.10", "192.168.0.10", "203.0.113.9")


def _lost_of(service: ServicePort, client: Address) -> list[tuple[str, Bounds, Bounds]]:
    """Return of each route of an address what survives of its flows, and what is lost."""
    found = []
    for frontend in service.frontends:
        for source in Source:
            routes = [r for r in service.routes_from(source) if r.frontend == frontend]
            route = None if source is Source.HAIRPIN else narrowest(routes, client)
            if route is not None:
                loss = route_loss(sent_by(client, service, route), Dead(endpoints=frozenset()))
                found.append((f"{frontend} {source}", loss.survives, loss.loss))
    return found


@examples(10, 300)
@given(_rules())
def test_a_node_whose_clients_lose_otherwise_than_elsewhere_differs(rule: tuple[str, str]) -> None:
    with TemporaryDirectory() as folder:
        found, usual = _shown(Path(folder), rule[1], table=rule[0]), _shown(Path(folder))
    clients = map(ip_address, _CLIENTS)
    differ = any(_lost_of(found, each) != _lost_of(usual, each) for each in clients)
    assert differ <= bool(_behind(found, usual))
