"""Services count as quiet only if walks of their flows find no loss, and most at once."""

from __future__ import annotations

from typing import Final

import pytest

from analyzer.kubeproxy.fastpath.nft_hairpins import PlainHairpins
from analyzer.kubeproxy.fastpath.nft_quiet import QuietServices
from analyzer.kubeproxy.generate import nft_text, services
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.rows.plain_shares import MasqueradeAndLoss, PlainRoutes
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from tests.support.captures import FIXTURES, Capture
from tests.support.reading import nft_ruleset

#: 12 Services of three endpoints at two nodes, of which the first is the dump's.
GENERATED: Final = nft_text(list(services(12, endpoints=(3,), nodes=2)))
CAPTURE: Final = FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt"
#: What may be lost of flows: of all, of one endpoint, of one Service; and what endpoints send to
#: themselves.
FORWARDED: Final = (
    "",
    "accept",
    "drop",
    "ip daddr 10.0.0.2 drop",
    "ip daddr 10.244.0.7 tcp dport 8080 reject",
    "ip saddr 10.244.1.0/24 drop",
    "meta mark & 0x4000 == 0x4000 drop",
    "ip saddr 10.244.1.9 ip daddr 10.244.1.9 drop",
)
BEHIND: Final = ("accept", "ip saddr 10.0.0.0/30 accept", "ip saddr 10.244.1.9 accept")
RULES: Final = (*((rule, "") for rule in FORWARDED), *(("", rule) for rule in BEHIND))


def with_others(text: str, forwarded: str, behind: str) -> str:
    chains = (
        ("fwd", "type filter hook forward priority 0", forwarded),
        ("post", "type nat hook postrouting priority 90", behind),
    )
    listed = [
        "".join(
            [f"\tchain {name} {{\n", f"\t\t{head}; policy accept;\n"]
            + [f"\t\t{rule}\n" for rule in filter(None, [rule])]
            + ["\t}\n"]
        )
        for name, head, rule in chains
    ]
    joined = "\n".join(listed)
    return f"{text}table ip x {{\n{joined}}}\n"


def view(text: str, *, plainly: bool, objects: bool = False) -> View:
    ruleset = nft_ruleset(text)
    if not objects:
        return NftRecogniser(ruleset, Cluster(), plainly=plainly).view()
    capture = Capture(CAPTURE)
    own = capture.cluster.nodes[capture.node].addresses
    return NftRecogniser(
        ruleset, capture.cluster, node=capture.node, node_addresses=own, plainly=plainly
    ).view()


# As many cases as there are rules are one of each rule, of three dumps in turn.
@pytest.mark.alike(len(RULES))
@pytest.mark.parametrize(("forwarded", "behind"), RULES)
@pytest.mark.parametrize("given", ["generated", "captured", "captured with objects"])
def test_no_flow_of_a_quiet_service_is_lost(given: str, forwarded: str, behind: str) -> None:
    text = GENERATED if given == "generated" else CAPTURE.read_text()
    told = with_others(text, forwarded, behind)
    objects = given.endswith("objects")
    quick, slow = (view(told, plainly=p, objects=objects) for p in (True, False))
    plain = 0
    for mine, theirs in zip(quick.services, slow.services, strict=True):
        if isinstance(mine.routes, PlainRoutes):
            plain += 1
            lost = any(share.lost for route in theirs.routes for share in route.shares)
            assert mine.routes.is_quiet is not lost, mine.name
    assert plain


@pytest.mark.parametrize("masquerades", [True, False])
def test_services_may_be_asked_about_before_others_are_read(*, masquerades: bool) -> None:
    lines = GENERATED.splitlines(keepends=True)
    told = "".join(line for line in lines if masquerades or "@hairpin-connections" not in line)
    every = view(told, plainly=True).services
    (family, _) = NftRecogniser(nft_ruleset(told), Cluster())._families  # noqa: SLF001  # in turn
    found = {
        s.name: s.routes.is_quiet for s in family.services() if isinstance(s.routes, PlainRoutes)
    }
    assert found == {s.name: getattr(s.routes, "is_quiet", None) for s in every}
    assert {*found.values()} == {masquerades}


def test_hairpin_flows_to_one_port_are_decided_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def each(*_: object) -> MasqueradeAndLoss:
        raise AssertionError("an endpoint's flows to itself were evaluated alone")

    monkeypatch.setattr(PlainHairpins, "after_dnat", each)
    found = view(GENERATED, plainly=True).services
    assert all(isinstance(s.routes, PlainRoutes) and s.routes.is_quiet for s in found)


def test_all_services_of_a_dump_are_decided_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def each(*_: object) -> bool:
        raise AssertionError("a Service was decided by itself")

    monkeypatch.setattr(QuietServices, "_is_quiet", each)
    found = view(GENERATED, plainly=True).services
    assert len(found) == 12
    assert all(isinstance(s.routes, PlainRoutes) and s.routes.is_quiet for s in found)
