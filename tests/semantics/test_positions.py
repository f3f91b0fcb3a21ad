from __future__ import annotations

from analyzer.model.packet import Packet
from analyzer.semantics.positions import RulePosition, Walks, left, missing
from analyzer.semantics.tree import FellThrough, Leaf, Tree, Unresolved

PACKET = Packet(protocol="tcp")


class Jumps(Walks):
    """Chains of one rule each, which jumps to another chain, or of none."""

    def __init__(self, *, tails: bool = False, **chains: str) -> None:
        super().__init__()
        self._chains = chains
        self._tails = tails
        self._visited: list[str] = []

    @property
    def visited(self) -> list[str]:
        return self._visited

    def _is_end(self, place: RulePosition) -> bool:
        return self._tails and place.at == 1

    def _matched_at(self, chain: str, at: int, is_source: bool) -> None:  # as there
        pass

    def _meets(self, start: RulePosition, packet: Packet, _alike: list[int]) -> Tree:
        self._visited.append(f"{start.chain}:{start.at}")
        assert len(self._visited) < 100, "the walk does not end"
        target = self._chains.get(start.chain)
        if target is None or start.at:
            return left(packet)
        if target not in {*self._chains, "END"}:
            return missing(target, packet)
        return self.jump(target, packet, RulePosition(start.chain, 1))


def test_a_chain_that_ends_returns_behind_the_jump() -> None:
    walks = Jumps(A="B", B="END")
    assert walks.tree("A", PACKET) == Leaf(FellThrough(), PACKET)
    assert walks.visited == ["A:0", "B:0", "END:0", "B:1", "A:1"]


def test_behind_the_last_rule_of_a_chain_nothing_is_walked() -> None:
    walks = Jumps(A="B", B="END", tails=True)
    found = walks.tree("A", PACKET)
    assert found == Leaf(FellThrough(), PACKET)
    assert walks.visited == ["A:0", "B:0", "END:0"]
    assert walks.tree("END", PACKET) is found


def test_a_position_is_walked_once() -> None:
    walks = Jumps(A="END")
    first = walks.tree("A", PACKET)
    assert walks.tree("A", PACKET) is first
    assert walks.visited == ["A:0", "END:0", "A:1"]
    assert walks.walked(RulePosition("A", 0), PACKET) is first


def test_what_is_forgotten_is_walked_again() -> None:
    walks = Jumps(A="END")
    walks.tree("A", PACKET)
    walks.forget()
    assert walks.walked(RulePosition("A", 0), PACKET) is None


def test_another_packet_is_walked_anew() -> None:
    walks = Jumps(A="END")
    walks.tree("A", PACKET)
    assert walks.walked(RulePosition("A", 0), Packet()) is None
    assert walks.tree("A", Packet()) == Leaf(FellThrough(), Packet())


def test_a_chain_that_several_jump_to_is_walked_once_and_returns_to_each() -> None:
    walks = Jumps(A="C", B="C", C="END")
    assert walks.tree("A", PACKET) == Leaf(FellThrough(), PACKET)
    assert walks.tree("B", PACKET) == Leaf(FellThrough(), PACKET)
    assert walks.visited.count("C:0") == 1


def test_a_chain_that_leads_back_to_itself_is_not_followed() -> None:
    for walks in (Jumps(A="A"), Jumps(A="B", B="A"), Jumps(A="B", B="C", C="B")):
        found = walks.tree("A", PACKET)
        assert isinstance(found, Leaf)
        assert isinstance(found.outcome, Unresolved)
        assert "loops back to itself" in found.outcome.text


def test_a_chain_that_the_dump_lacks_may_do_anything() -> None:
    found = Jumps(A="GONE").tree("A", PACKET)
    assert found == Leaf(Unresolved("chain GONE is not in the dump"), PACKET)
