from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.model.diagnostics import Location
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Drop, Jump
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, Dyadic
from analyzer.reports.document import Piece, spans
from analyzer.reports.tree_lines import ALL, Pieces, lines
from analyzer.semantics.tree import Chance, Either, Leaf, Tree, Unresolved

HALF, QUARTER = Dyadic.of(1, 1), Dyadic.of(1, 2)


def leaf(name: str, *rules: Rule) -> Leaf:
    return Leaf(Unresolved(name), Packet(), rules)


def rule(chain: str, line: int) -> Rule:
    return Rule((), Jump("X"), Location("dump", line, "nat"), f"-A {chain} -j X")


def end(leaf: Leaf) -> tuple[Piece, ...]:
    assert isinstance(leaf.outcome, Unresolved)
    return (f"=> {leaf.outcome.text}",)


def shown(tree: Tree, *, tables: bool = False, most: int = ALL) -> list[str]:
    found = lines(tree, end, tables=tables, most=most)
    return ["".join(span.text for span in spans(line)) for line in found]


def test_branches_stand_below_what_they_branch_from() -> None:
    tree = Chance(((HALF, leaf("a")), (HALF, Chance(((HALF, leaf("b")), (HALF, leaf("c")))))))
    assert shown(tree) == [
        "├─ 1/2   50.0%",
        "│  => a",
        "└─ 1/2   50.0%",
        "   ├─ 1/2   50.0%",
        "   │  => b",
        "   └─ 1/2   50.0%",
        "      => c",
    ]


def test_rules_are_told_with_their_chain_and_line() -> None:
    tree = Chance(((ALWAYS, leaf("a", rule("B", 5))),), (rule("A", 4),))
    first, _, second, last = shown(tree)
    assert first.startswith("A ")
    assert first.endswith("line 4")
    assert second.startswith("   B ")
    assert last == "   => a"
    assert shown(tree, tables=True)[0].startswith("nat A ")


def test_what_is_not_known_says_why() -> None:
    told = shown(Either("no reader for -m x", (leaf("a"), leaf("b"))))
    assert told[0] == "not known: no reader for -m x"
    assert [line[3:] for line in told if line.startswith("=>", 3)] == ["=> a", "=> b"]
    assert len(told) == 5


def test_what_several_ways_have_in_common_is_shown_once() -> None:
    fork = Chance(((HALF, leaf("a")), (HALF, leaf("b"))))
    told = shown(Either("x", (fork, fork)))
    assert told.count("│  [1]") == 1
    assert told[-1] == "   as after [1]"
    assert len([line for line in told if line.endswith("=> a")]) == 1


def test_a_tree_with_very_many_ways_is_shown_in_few_lines() -> None:
    tree: Tree = leaf("end")
    for _ in range(200):
        fork = Chance(((HALF, tree), (HALF, leaf("drop"))))
        tree = Either("x", (fork, fork))
    assert len(shown(tree)) < 3_000


def test_of_more_than_twice_as_many_branches_only_the_first_are_shown() -> None:
    eighth = Dyadic.of(1, 3)
    tree = Chance(tuple((eighth, leaf(name)) for name in "abcdefgh"))
    assert len(shown(tree, most=4)) == 16
    told = shown(tree, most=3)
    assert len(told) == 7
    assert [line[0] for line in told] == [*"├│├│├│└"]
    assert told[-1] == "└─ 5 more branches, together 5/8   62.5%"


def test_of_the_others_is_told_what_the_caller_says() -> None:
    def rest(branches: Sequence[tuple[Dyadic, Tree]]) -> Iterator[Pieces]:
        yield (f"{len(branches)} at sea",)

    tree = Chance(tuple((QUARTER, Leaf(Drop(), Packet())) for _ in range(4)))
    found = lines(tree, lambda _: ("dropped",), most=1, rest=rest)
    assert "".join(span.text for span in spans(found[-1])) == "   3 at sea"
