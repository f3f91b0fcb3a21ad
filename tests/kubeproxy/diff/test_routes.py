"""What is seen of two routes without looking closer is what a closer look finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from analyzer.kubeproxy.diff.changes import NO_CHANGE, Change
from analyzer.kubeproxy.diff.routes import ComparedRoute, RouteComparer
from analyzer.kubeproxy.generate import iptables_save, nft_text, services
from analyzer.kubeproxy.view import Route
from analyzer.parsers.formats import read_ruleset
from tests.support.answers import AFTER, BEFORE, RICH
from tests.support.captures import FIXTURES
from tests.support.reading import recogniser

DUMPS = [
    *(FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1").glob("iptables-*save.txt"),
    *(FIXTURES / "1.36.2-nftables" / "two-node@worker1").glob("nft-list-ruleset.*"),
]


def nobody_asks() -> tuple[()]:
    raise AssertionError("flows that all reach an endpoint have no other end")


def routes(data: bytes) -> list[Route]:
    view = recogniser(read_ruleset(data, "dump")).view()
    return [route for service in view.services for route in service.routes]


def seen(a: Iterable[Route], b: Iterable[Route]) -> Iterator[Change]:
    """Give what is seen at once of routes, where anything is."""
    comparer = RouteComparer()
    for one, other in product(a, b):
        change = comparer.same(one, other)
        if change is not None:
            asked = (ComparedRoute(route=each, otherwise=nobody_asks) for each in (one, other))
            assert comparer.change(*asked) == change
            yield change


def given() -> dict[str, bytes]:
    small = list(services(3, endpoints=(2, 3)))
    texts = {"rich": RICH, "before": BEFORE, "after": AFTER}
    texts |= {"plain": iptables_save(small), "plain nft": nft_text(small)}
    return {
        **{name: text.encode() for name, text in texts.items()},
        **{str(path.relative_to(FIXTURES)): path.read_bytes() for path in DUMPS},
    }


def test_a_quick_look_finds_what_a_closer_one_does() -> None:
    every = [routes(data) for data in given().values()]
    found = [change for one, other in product(every, every) for change in seen(one, other)]
    assert all(change == NO_CHANGE or change.alike for change in found)
    assert {change == NO_CHANGE for change in found} == {True, False}


def test_routes_that_differ_are_looked_at_closer() -> None:
    two, three = (routes(iptables_save(list(services(1, endpoints=(n,)))).encode()) for n in (2, 3))
    assert [*seen(two, three)] == []
    assert len([*seen(two, two)]) > len(two)
