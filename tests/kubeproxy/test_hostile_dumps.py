"""Small dumps that took minutes or gigabytes: steps are counted for each of their lines."""

from __future__ import annotations

from functools import partial

import pytest

from analyzer.kubeproxy.view import ServicePort, View
from analyzer.model.probability import ALWAYS, NEVER, Dyadic
from tests.support.captures import FIXTURES
from tests.support.effort import PROFILE
from tests.support.nft import dumps as nft
from tests.support.shapes import service as small_service
from tests.support.steps import services, steps, traced, view

DEFECTS = FIXTURES.parent / "defects"
HALF = Dyadic.of(1, 1)


def read(name: str) -> View:
    return view((DEFECTS / name).read_text(encoding="utf-8"))


def named(found: View, name: str) -> ServicePort:
    return next(service for service in found.services if service.name.text == name)


MARKS = ("marks10.txt", "marks12.txt", "marks14.txt", "marks16.txt", "marks20.txt")
SLOW = (
    "cut-1.20.txt",
    "cut-1.23.txt",
    "deep2000.txt",
    "fan.txt",
    "frag-slow.txt",
    "marks20.txt",
    "numgen-4294967295.txt",
    "rows-dual-stack.txt",
    "rows-features.txt",
    "rows-seed-dns.txt",
    "rows-two-node.txt",
)
#: Left to CI.
SLOWEST = frozenset(("deep2000.txt", "rows-features.txt"))


@pytest.mark.alike(1)
@pytest.mark.parametrize(
    "name", SLOW if PROFILE != "quick" else [each for each in SLOW if each not in SLOWEST]
)
def test_each_is_answered_in_steps_in_proportion_to_its_lines(name: str) -> None:
    text = (DEFECTS / name).read_text(encoding="utf-8")
    for small in (small_service(2), nft.PLAIN):
        answered(small)  # what is made once is made
    assert steps(lambda: answered(text)) <= 10_000 * max(text.count("\n"), 30)


def answered(text: str) -> None:
    services(text)
    traced(text)


@pytest.mark.parametrize("name", [*MARKS, "fan.txt"])
def test_what_rules_in_front_cannot_change_stays_exact(name: str) -> None:
    found = read(name)
    for service in found.services:
        if service.name.text != "default/kubernetes:https":
            for route in service.routes:
                assert [share.share.lower for share in route.shares] == [HALF, HALF]
                assert route.is_exact


def test_work_grows_with_rules_that_may_set_a_bit_and_does_not_double_with_each() -> None:
    texts = [(DEFECTS / name).read_text(encoding="utf-8") for name in MARKS]

    for text in texts:  # what is made once is made
        services(text)
    # 10, 12 and 14 bits, none of which kube-proxy asks for; 16 and 20, which hold one that it does.
    fewest, _, more, some, most = [steps(partial(services, text)) for text in texts]
    assert more <= 2 * fewest
    assert most <= 2 * some <= 20 * fewest
    fewest, *_, most = [steps(partial(traced, text)) for text in texts]
    assert most <= 2 * fewest


@pytest.mark.parametrize("name", MARKS)
def test_only_a_rule_that_sets_the_masquerade_bit_leaves_the_source_address_open(
    name: str,
) -> None:
    may_set = (
        "0x4000/0x4000"
        in (DEFECTS / name).read_text().partition("*nat")[0].rpartition("*mangle")[2]
    )
    service = named(read(name), "kube-system/kube-dns:dns")
    pods = [route for route in service.routes if route.source.value == "pod"]
    assert {share.masquerade for route in pods for share in route.shares} == (
        {None} if may_set else {False}
    )


@pytest.mark.parametrize("name", ["rows-seed-dns.txt", "rows-two-node.txt"])
def test_rows_without_tables_give_the_halves_that_they_draw(name: str) -> None:
    found = read(name)
    assert [each.code for each in found.diagnostics if each.partial]
    service = named(found, "kube-system/kube-dns:dns")
    routes = {route.source.value: route for route in service.routes}
    # Rows of filter and nat are told apart, so OUTPUT of nat leads the node's flows there, too.
    for source in ("pod", "node"):
        assert [share.share.lower for share in routes[source].shares] == [HALF, HALF]
        assert routes[source].unresolved == NEVER


def test_numbers_that_a_map_does_not_hold_reach_no_endpoint() -> None:
    service = named(read("numgen-4294967295.txt"), "kube-system/kube-dns:dns")
    drawn = {share.share.lower for route in service.routes for share in route.shares}
    # The first of 2**32 - 1 numbers is drawn for two of 2**32.
    assert drawn == {Dyadic.of(2, 32), Dyadic.of(1, 32)}


def test_what_lost_rules_leave_open_names_no_endpoint_of_other_services() -> None:
    found = read("frag-slow.txt")
    assert named(found, "ds/ep-1").cluster_route is not None
    for service in found.services:
        for route in service.routes:
            certain = sum((share.share.lower for share in route.shares), NEVER)
            assert certain == ALWAYS or route.unresolved
    affinity = named(found, "ds/affinity")
    assert {route.unresolved for route in affinity.routes} == {ALWAYS}
    assert affinity.endpoints == ()
