"""What the scripts of a page compute is what `loss` says with the same nodes dead."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.arguments.command_line import parse
from analyzer.failure.loss import ServiceLoss, losses
from analyzer.failure.loss_at_every_node import LossAtEveryNode, losses_at_every_node
from analyzer.failure.models import Dead, dead
from analyzer.failure.route_loss import Count
from analyzer.inputs.recognised import read_input
from analyzer.kubeproxy.predict.every_node import At, EveryNode
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import ServicePort, View
from analyzer.model.cluster import Cluster
from analyzer.model.endings import Ending, Endings, EndKind, summed
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.value import replace
from analyzer.reports.loss_unresolved import unresolved
from analyzer.reports.loss_words import by_harm, worst_routes
from analyzer.reports.numbers import bounds_fraction, bounds_percent
from analyzer.reports.pages.incidence import LossInput, incidence
from analyzer.reports.phrases import named as name_of
from analyzer.reports.phrases import proto
from tests.support.captures import FIXTURES
from tests.support.incidences import NODES, Placed, placed
from tests.support.noise import KNOWN, NAMES, dump
from tests.support.pages.scripts import asked

pytestmark = pytest.mark.packages

_CAPTURES = sorted(p.parent for p in FIXTURES.glob("*/*/objects.json"))


def told(loss: ServiceLoss) -> dict[str, Any]:
    """Return what a page should say of a ServicePort."""
    worst = loss.worst
    return {
        "name": loss.service.name.text,
        "protocol": proto(loss.service.protocol, loss.service.version),
        "state": loss.state.value,
        "dead": len(loss.dead),
        "worst": [worst.lower, worst.upper],
        "percent": bounds_percent(worst),
        "fraction": bounds_fraction(worst),
        "route": worst_routes(loss) if worst.upper else "",
    }


def read(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "worst": dyadics(answer["worst"])}


def dyadics(told: Iterable[Any]) -> list[Dyadic]:
    return [Dyadic.of(int(n, 16), e) for n, e in told]


def check(view: View, cluster: Cluster, deaths: Iterable[Dead], count: Count, named: Dead) -> None:
    """Hold what a page computes against what the program does."""
    of_page = LossInput(
        services=[[(service, None)] for service in view.services],
        cluster=cluster,
        dead=named,
        named=named.endpoints,
        count=count,
    )
    document = json.loads("".join(incidence(of_page)))
    at = {name: number for number, name in enumerate(document["nodes"])}
    zone = {name: number for number, name in enumerate(document["zones"])}
    died = list(deaths)
    question = [
        {
            "nodes": [at[name] for name in each.nodes],
            "zones": [zone[name] for name in each.zones],
            "named": bool(each.named),
        }
        for each in died
    ]
    answers, (open_, upto) = asked(
        ("losses", {"data": document, "deaths": question}), ("unresolved", document)
    )
    alive = by_harm(losses(view.services, Dead(endpoints=frozenset()), count))
    sentence = "".join(str(span) for line in unresolved(alive) for span in line.pieces)
    assert bool(open_) == bool(sentence)
    if open_:
        assert f"up to {upto} of" in sentence
        names = {f"{name} (IPv6)" if of.endswith("6") else name for name, of in open_}
        assert names == {name_of(each.service) for each in alive if [*unresolved([each])]}
    for each, answer in zip(died, answers, strict=True):
        wanted = [told(loss) for loss in by_harm(losses(view.services, each, count))]
        found = [read(loss) for loss in answer]
        assert sorted(found, key=_name) == sorted(wanted, key=_name), each
        # Those that are alike may stand in another order: who is nearest to harm goes first.
        assert [loss["percent"] for loss in found] == [loss["percent"] for loss in wanted]


def _name(each: dict[str, Any]) -> tuple[object, ...]:
    return each["name"], each["protocol"], each["route"], str(each["worst"])


def sets(names: Sequence[str], drawn: Random, most: int) -> list[tuple[str, ...]]:
    """Return nobody, each alone, and some sets."""
    found: list[tuple[str, ...]] = [(), *((name,) for name in names[:most])]
    return found + [tuple(drawn.sample(names, drawn.randint(0, len(names)))) for _ in range(most)]


@pytest.mark.parametrize("capture", _CAPTURES, ids=lambda each: f"{each.parent.name}/{each.name}")
@pytest.mark.parametrize("count", Count)
def test_a_page_says_what_loss_says(capture: Path, count: Count) -> None:
    text = next(
        p for pattern in ("*-save.txt", "nft-list-ruleset.*") for p in capture.glob(pattern)
    )
    words = ["services", str(text), "--objects", str(capture / "objects.json")]
    view, cluster = (found := read_input(parse(words))).view, found.cluster
    drawn = Random(str(capture))
    ends = sorted({str(each) for each in view.endpoints})
    names = drawn.sample(ends, min(len(ends), 2))
    named = dead(view, cluster, endpoints=names)
    nodes, zones = sorted(cluster.node_names), sorted(cluster.zones)
    deaths = [
        dead(view, cluster, nodes=some, zones=of_zones, endpoints=also)
        for some in sets(nodes, drawn, 6)
        for of_zones in sets(zones, drawn, 2)[:3]
        for also in ((), names)
    ]
    check(view, cluster, deaths, count, named)


@pytest.mark.parametrize("name", [*NAMES, "ufw", "docker", "kube-router"])
def test_a_page_says_what_loss_says_where_rules_of_others_lose_flows(name: str) -> None:
    found = read_input(parse(["services", dump(name), *KNOWN]))
    view, cluster = found.view, found.cluster
    nodes = sorted(cluster.node_names)
    deaths = [dead(view, cluster, nodes=some) for some in sets(nodes, Random(1), 3)]
    for count in Count:
        check(view, cluster, deaths, count, dead(view, cluster))


Z = Fraction(0)
_SHARES = st.sampled_from([NEVER, Dyadic.of(1, 3), Dyadic.of(1, 1), Dyadic.of(7, 3), ALWAYS])
_KINDS = st.sampled_from(list(EndKind))


@st.composite
def endings(draw: st.DrawFn) -> Endings:
    """Draw how some flows are lost, or none."""
    found = {}
    for kind in draw(st.sets(_KINDS, max_size=2)):
        lower, upper = sorted([draw(_SHARES), draw(_SHARES)])
        found[Ending(kind=kind, how=draw(st.sampled_from(["", "icmp-port-unreachable"])))] = Bounds(
            lower, upper
        )
    return summed(found.items())


@st.composite
def lossy(draw: st.DrawFn) -> Placed:
    """Draw ServicePorts of which rules lose flows too, at least on some routes."""
    found = draw(placed())
    services = []
    for service in found.services:
        routes = []
        for route in service.routes:
            if draw(st.booleans()):
                shares = tuple(replace(each, lost=draw(endings())) for each in route.shares)
                routes.append(replace(route, shares=shares, astray=draw(endings())))
            else:
                routes.append(route)
        services.append(replace(service, routes=tuple(routes)))
    return replace_placed(found, tuple(services))


def replace_placed(found: Placed, services: tuple[ServicePort, ...]) -> Placed:
    return Placed(services, found.node_of)


@given(lossy(), st.randoms(use_true_random=False), st.sampled_from(Count))
def test_a_page_says_what_loss_says_of_any_service_ports(
    found: Placed, drawn: Random, count: Count
) -> None:
    view = View(services=found.services, mode=ProxyMode.IPTABLES, node=None)
    cluster = found.cluster
    ends = [str(each) for each in view.endpoints]
    named = dead(view, cluster, endpoints=ends[:1])
    # Nodes and zones can be declared dead only where something is known to be on one.
    where = [cluster.placement(each.address) for each in view.endpoints]
    nodes = sorted(cluster.node_names) if any(each.node for each in where) else []
    zones = sorted(cluster.zones) if any(each.zone for each in where) else []
    deaths = [
        dead(view, cluster, nodes=some, zones=of_zones, endpoints=also)
        for some in sets(nodes, drawn, 3)
        for of_zones in ((), tuple(zones[:1]))
        for also in ((), ends[:1])
    ]
    check(view, cluster, deaths, count, named)


@st.composite
def everywhere(draw: st.DrawFn) -> tuple[Placed, EveryNode]:
    """Draw a ServicePort that is another at some nodes."""
    found = draw(lossy())
    first, *_ = found.services
    of = {name: draw(st.sampled_from(found.services)) for name in NODES}
    groups: dict[int, tuple[ServicePort, set[str]]] = {}
    for name, service in of.items():
        groups.setdefault(id(service), (service, set()))[1].add(name)
    at = [
        At(replace(service, name=first.name, protocol=first.protocol), frozenset(names))
        for service, names in groups.values()
    ]
    return found, EveryNode(at=tuple(at))


@given(everywhere(), st.sets(st.sampled_from(NODES)), st.booleans())
def test_a_page_about_every_node_asks_those_that_live(
    drawn: tuple[Placed, EveryNode], died: set[str], is_together: bool
) -> None:
    found, service = drawn
    cluster = found.cluster
    document = incidence(
        LossInput(
            services=[[(each.service, each.nodes) for each in service.at]],
            cluster=cluster,
            is_together=is_together,
        )
    )
    data = json.loads("".join(document))
    nodes = [data["nodes"].index(name) for name in sorted(died)]
    death = {"nodes": nodes, "zones": [], "named": False}
    ((answer,),) = asked(("losses", {"data": data, "deaths": [death]}))[0]
    of_page = read(answer)
    # If nobody lives, what the rules of the dead would do.
    ignored = died if len(died) < len(NODES) else set()
    dying = found.dead(sorted(died)) if died else Dead(endpoints=frozenset())
    (wanted,) = losses_at_every_node([service], dying, ignored.__contains__)
    if is_together:
        bounds = [each.loss.worst for each in wanted.at]
        assert of_page["worst"] == [max(b.lower for b in bounds), max(b.upper for b in bounds)]
    else:
        assert of_page["percent"] == bounds_percent(wanted.worst.worst)
    assert of_page["state"] == wanted.worst.state.value
    check_nodes(of_page["where"], wanted, is_together=is_together)


def check_nodes(where: dict[str, Any], wanted: LossAtEveryNode, *, is_together: bool) -> None:
    """Hold what a page says of each node, and of all of them, against the program."""
    at = {name: each.loss for each in wanted.at for name in each.nodes}
    for name, told_there in where["nodes"].items():
        if name in at:
            assert dyadics(told_there) == [at[name].worst.lower, at[name].worst.upper]
        else:
            assert told_there is None
    assert at.keys() <= where["nodes"].keys()
    assert where["all"] == wanted.nodes
    assert where["hit"] == sum(1 for loss in at.values() if loss.worst.upper)
    # Independently: one node after the other.
    total = [
        sum(((loss.worst.lower, loss.worst.upper)[end].as_fraction() for loss in at.values()), Z)
        for end in (0, 1)
    ]
    mean = [Dyadic.of((each.numerator << 64) // (each.denominator * len(at)), 64) for each in total]
    assert where["mean"] == bounds_percent(Bounds(*mean))
    if not is_together:
        assert where["worst"] == sorted(wanted.worst_at)
