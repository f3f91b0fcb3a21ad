"""What failures cost where every node is asked: held against asking each living node in turn."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.incidence import ONE, rank
from analyzer.failure.loss import CUT_OFF, LossState, service_loss
from analyzer.failure.loss_at_every_node import LossAtEveryNode, losses_at_every_node
from analyzer.failure.thresholds import breaches
from analyzer.failure.vantages import mean_over_nodes, worst_at
from analyzer.failure.whatif import WhatIf, WhatIfOptions, what_if
from analyzer.kubeproxy.predict.every_node import At, EveryNode
from analyzer.kubeproxy.view import ServicePort
from analyzer.model.probability import NEVER, Dyadic
from analyzer.model.value import replace
from tests.support.effort import examples
from tests.support.incidences import NODES, ZONES, Placed, placed

_ROUNDED = Fraction(1, 2**190)


@dataclass(frozen=True)
class Everywhere:
    """ServicePorts at every node, and where their endpoints are."""

    given: Placed
    services: tuple[EveryNode, ...]
    by_zone: bool = False

    def what_if(self, **asked: object) -> WhatIf:
        services = [each.service for each in self.services]
        return what_if(
            services,
            self.given.cluster,
            replace(WhatIfOptions(top=100), **asked),
            None,
            self.services,
        )

    def loss(self, service: EveryNode, node: str, dead: Collection[str]) -> Dyadic:
        at = service.at_node(node)
        assert at is not None
        died = self.given.dead(dead)
        if len(dead) > 1 and all(ZONES[each] for each in dead):
            # Perhaps it is in the zone that died.
            unzoned = {end for end, name in self.given.node_of.items() if not ZONES[name or ""]}
            died = replace(died, uncertain=frozenset(unzoned)) if self.by_zone else died
        return service_loss(at, died).worst.upper

    def worst(self, dead: Collection[str]) -> Dyadic:
        """Return what any ServicePort loses at any node that lives."""
        return max(self._losses(dead), default=NEVER, key=lambda each: each.as_fraction())

    def _losses(self, dead: Collection[str]) -> Iterator[Dyadic]:
        for service in self.services:
            for node in NODES:
                if node not in dead:
                    yield self.loss(service, node, dead)


@st.composite
def everywhere(draw: st.DrawFn) -> Everywhere:
    """Draw ServicePorts that are others at some nodes; at some only their own endpoints count."""
    given = draw(placed(known=True, most=4))
    first, *variants = given.services
    found = []
    for number in range(draw(st.integers(1, 3))):
        kinds: dict[int, set[str]] = {}
        for node in NODES:
            kinds.setdefault(draw(st.integers(0, len(variants) + 1)), set()).add(node)
        at = []
        for kind, nodes in kinds.items():
            if kind <= len(variants):
                at.append(At(_named([first, *variants][kind], number), frozenset(nodes)))
            else:
                at += [
                    At(_named(_own(first, given, node), number), frozenset([node]))
                    for node in nodes
                ]
        found.append(EveryNode(at=tuple(at)))
    return Everywhere(given, tuple(found))


def _named(service: ServicePort, number: int) -> ServicePort:
    return replace(service, name=replace(service.name, text=f"ns/s{number}"))


def _own(service: ServicePort, given: Placed, node: str) -> ServicePort:
    """Return it with routes to endpoints of one node alone."""
    routes = []
    for route in service.routes:
        kept = [share for share in route.shares if given.node_of[share.endpoint] == node]
        routes.append(replace(route, shares=tuple(kept)))
    return replace(service, routes=tuple(routes))


@examples(20, 2_000)
@given(everywhere())
def test_a_failure_costs_what_it_costs_at_the_worst_living_node(given: Everywhere) -> None:
    found = given.what_if()
    for failure in found.failures():
        dead, asked = failure.names, given
        if failure.kind.value == "zone":
            dead = tuple(name for name in NODES if ZONES[name] in failure.names)
            asked = dataclasses.replace(given, by_zone=True)
        worst = failure.worst
        assert (NEVER if worst is None else worst.upper) == asked.worst(dead), failure
        if worst is not None and worst.upper and failure.cost.row is not None:
            row = failure.cost.row
            service = given.services[row.service]
            for node in worst_at(found, row, dead):
                # At each of the nodes that are named so much is lost.
                assert asked.loss(service, node, dead) == worst.upper


@examples(20, 2_000)
@given(everywhere())
def test_total_losses_are_those_in_total_loss_at_every_living_node(given: Everywhere) -> None:
    found = given.what_if()
    for failure in (each for each in found.failures() if each.kind.value != "zone"):
        silenced = {found.services[each].name.text for each in failure.cost.silenced}
        died, gone = given.given.dead(failure.names), frozenset(failure.names)
        losses = losses_at_every_node(given.services, died, gone.__contains__)
        everywhere = {
            each.worst.service.name.text for each in losses if each.is_silenced_everywhere
        }
        # The nodes that live refuse flows to these whatever fails.
        refused = {
            each.worst.service.name.text
            for each in losses
            if each.worst.state is LossState.NO_ENDPOINTS
        }
        assert silenced <= everywhere | refused, failure.names
        # The rules of the dead nodes, which nobody uses, lead to a living endpoint.
        at_dead = losses_at_every_node(
            given.services, died, gone.symmetric_difference(NODES).__contains__
        )
        unused = {each.worst.service.name.text for each in at_dead if not _is_cut_off(each)}
        assert everywhere <= silenced | unused, failure.names


def _is_cut_off(losses: LossAtEveryNode) -> bool:
    return all(each.loss.state in CUT_OFF for each in losses.at)


@examples(20, 2_000)
@given(everywhere(), st.sets(st.sampled_from(range(len(NODES))), min_size=1, max_size=4))
def test_the_mean_is_over_living_nodes(given: Everywhere, groups: set[int]) -> None:
    found = given.what_if()
    dead = [NODES[each] for each in groups]
    alive = [node for node in NODES if node not in dead]
    for at, service in enumerate(given.services):
        mean = mean_over_nodes(found, at, groups)
        each = [given.loss(service, node, dead).as_fraction() for node in alive]
        total = sum(each, Fraction(0))
        assert mean.nodes == len(alive)
        assert mean.lower == mean.upper
        assert abs(Fraction(mean.upper, ONE) - total / len(alive)) < _ROUNDED


@examples(20, 2_000)
@given(everywhere(), st.integers(1, 3), st.sampled_from([Fraction(n, 8) for n in range(8)]))
def test_a_threshold_is_broken_where_a_set_breaks_it(
    given: Everywhere, depth: int, most: Fraction
) -> None:
    found = given.what_if(depth=depth)
    broken = [each for each in breaches(found, max_loss=most) if each.kind is not None]
    for kind, size in (("node", 1), ("set", depth)):
        if kind == "set" and depth == 1:
            continue
        wanted = any(
            _exceeds(given, service, node, dead, most)
            for dead in combinations(NODES, size)
            for service in given.services
            for node in NODES
            if node not in dead
        )
        assert any(each.kind is not None and each.kind.value == kind for each in broken) == wanted


def _exceeds(
    given: Everywhere, service: EveryNode, node: str, dead: Collection[str], most: Fraction
) -> bool:
    at = service.at_node(node)
    assert at is not None
    routes = service_loss(at, given.given.dead(dead)).routes
    return any(each.is_lost_beyond(most) for each in routes)


@examples(20, 2_000)
@given(everywhere())
def test_pairs_are_those_of_enumeration(given: Everywhere) -> None:
    found = given.what_if()
    (pairs,) = found.sets
    assert pairs.is_complete
    assert {each.names for each in pairs.worst} == set(combinations(NODES, 2))
    worst = [rank(each.cost.worst) for each in pairs.worst]
    assert worst == sorted(worst, reverse=True)


@examples(20, 2_000)
@given(everywhere())
def test_what_survives_leaves_every_living_node_an_endpoint(given: Everywhere) -> None:
    found = given.what_if()
    for at, service in enumerate(given.services):
        number = found.survives(at)
        survival = found.survival(at)
        if number is None:
            assert survival is None
            continue
        assert survival is not None
        assert survival.survives == number
        for size in range(1, min(number, len(NODES) - 1) + 1):
            for dead in combinations(NODES, size):
                for node in set(NODES) - set(dead):
                    of_it = service.at_node(node)
                    assert of_it is not None
                    losses = service_loss(of_it, given.given.dead(dead)).routes
                    assert not any(e.leads and not e.survives.upper for e in losses)
        if at in found.nodes.own and not found.nodes.services[at]:
            assert all(f.cost.row is None or f.cost.row.service != at for f in found.of_nodes)
