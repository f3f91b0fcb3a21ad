"""Frontends that are alike but for their number of endpoints have the answer of one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import (
    FLAGS,
    RulesLayout,
    mixed,
    node_name,
    proxy_config,
    render_rules,
    service_ports,
)
from analyzer.kubeproxy.routes.source_routes import SourceRoutes, Way
from analyzer.kubeproxy.view import Frontend
from tests.support.alike import among_strangers, told, view
from tests.support.effort import examples
from tests.support.layouts import PROMISED


def dump(
    services: int, nodes: int, sizes: tuple[int, ...], layout: RulesLayout = RulesLayout.V1_36
) -> str:
    items = mixed(services, nodes, sizes)
    config = proxy_config(items, FLAGS, node=node_name(0), layout=layout, family=4)
    return render_rules(service_ports(items, layout, 4), config)


#: What somebody may have changed in a row, or in two.
CHANGES = (
    (r"--probability 0\.\d+", "--probability 0.25000000000"),
    (r"-A KUBE-SVC-\w+ .*--probability .*\n", ""),
    (r"(-A KUBE-SVC-\w+) (.* -j KUBE-SEP-\w+\n)", r"\1 \2\1 \2"),
    (r"-A KUBE-SEP-\w+ -s .*\n", ""),
    (r"(-A KUBE-SEP-\w+) -s (\S+)", r"\1 ! -s \2"),
    (r"(-A KUBE-SEP-\w+) (-p tcp .*-j DNAT)", r"\1 -m mark --mark 0x1/0x1 \2"),
    (r"(--to-destination 10\.\d+\.\d+)\.\d+", r"\1.2"),
    (r"--to-destination (\S+):\d+", r"--to-destination \1:9999"),
    (r"-A KUBE-EXT-\w+ .*\n", ""),
    (r"(-A KUBE-EXT-\w+) (.*)", r"\1 \2\n\1 -s 10.0.0.0/24 -j RETURN"),
    (r"-j KUBE-SEP-\w+", "-g KUBE-SEP-ODD"),
)


@st.composite
def dumps(draw: st.DrawFn) -> str:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    text = dump(
        draw(st.integers(2, 12)),
        draw(st.integers(1, 3)),
        sizes,
        draw(st.sampled_from(PROMISED)),
    )
    for pattern, new in draw(st.lists(st.sampled_from(CHANGES), max_size=2)):
        places = list(re.finditer(pattern, text))
        if places:
            found = draw(st.sampled_from(places))
            text = text[: found.start()] + found.expand(new) + text[found.end() :]
    return draw(among_strangers(text))


@examples(6, 1500)
@given(dumps(), st.sampled_from((None, "192.168.0.0", "192.168.0.1", "10.0.0.2")))
def test_whatever_its_endpoints_a_frontend_is_answered_as_if_it_was_walked(
    text: str, own: str | None
) -> None:
    addresses = [] if own is None else [IPv4Address(own)]
    assert told(view(text, addresses, plainly=True)) == told(view(text, addresses, plainly=False))


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[Frontend]:
    found: list[Frontend] = []
    ways = SourceRoutes.ways

    def noted(self: SourceRoutes, frontend: Frontend, protocol: str) -> Iterator[Way]:
        found.append(frontend)
        return ways(self, frontend, protocol)

    monkeypatch.setattr(SourceRoutes, "ways", noted)
    return found


@pytest.mark.parametrize("services", [60, 240])
@pytest.mark.parametrize("sizes", [(3,), (2, 3, 4, 5, 6, 7, 8)])
def test_neither_their_number_nor_that_of_endpoints_takes_more_walks(
    walked: list[Frontend], services: int, sizes: tuple[int, ...]
) -> None:
    found = view(dump(services, 4, sizes), plainly=True)
    assert sum(len(each.frontends) for each in found.services) > services
    # About one for each kind of frontend.
    assert len(walked) <= 12


def test_nor_does_it_to_know_the_address_of_the_node(walked: list[Frontend]) -> None:
    view(dump(60, 4, (2, 3, 4)), [IPv4Address("192.168.0.10")], plainly=True)
    assert len(walked) <= 12


def test_nor_do_rules_for_the_address_of_one_endpoint(walked: list[Frontend]) -> None:
    text = dump(120, 4, (2, 3))
    [*_, address] = re.findall(r"--to-destination (\S+):\d+", text)
    row = f"-A PREROUTING -s {address}/32 -j ACCEPT"
    text = text.replace("\n-A PREROUTING ", f"\n{row}\n-A PREROUTING ", 1)
    found = view(text, plainly=True)
    of = {f: {str(e.address) for e in s.endpoints} for s in found.services for f in s.frontends}
    mine = {frontend for frontend, addresses in of.items() if address in addresses}
    assert mine
    assert mine <= set(walked)
    # About one for each kind of frontend, with two and with three endpoints, and those of `mine`.
    assert len(set(walked) - mine) <= 2 * 12
    assert told(found) == told(view(text, plainly=False))


def test_of_alike_ones_one_with_few_endpoints_is_walked(walked: list[Frontend]) -> None:
    # Two of three Services have 60 endpoints.
    found = view(dump(200, 1, (60, 60, 2)), plainly=True)
    endpoints = {f: len(each.endpoints) for each in found.services for f in each.frontends}
    assert 2 * len([f for f in endpoints.values() if f > 2]) > len(endpoints)
    assert {endpoints[frontend] for frontend in walked} == {2}
