"""Jumps that the analyzer leaves out of its trees, noted while it walks a packet.

A jump of which it is not known whether it matches, and whose chain certainly lets the packet
return as it is, makes no difference to where the packet ends: `Traversal` does not fork there, and
no way of the tree has the jump. The kernel may take it all the same, and then it meets in that
chain just the rules that the analyzer met there when it found out that the packet returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Jump
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.semantics.effort import Effort
from analyzer.semantics.iptables import traverse
from analyzer.semantics.iptables.traverse import Traversal
from analyzer.semantics.match_result import MatchResult
from analyzer.semantics.tree import AnyRule, Leaf
from tests.support.seeded.fault import method


@dataclass
class LeftOut:
    """What was left out so far: a jump, and the rules that a packet meets until it is back.

    One jump has several such lists where packets came to it with different marks.
    """

    jumps: dict[int, list[Sequence[AnyRule]]] = field(default_factory=dict)
    _known: Ternary = Ternary.UNKNOWN
    _may_be_joined: tuple[Rule, Leaf] | None = None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what walks leave out meanwhile."""
        with pytest.MonkeyPatch.context() as patch:
            method(traverse, "match_all", self._matching)(patch)
            method(Traversal, "_passed", self._passing)(patch)
            method(Effort, "joined", self._joining)(patch)
            yield

    def _matching(self, match_all: Callable[..., MatchResult]) -> Any:
        def noting(*given: Any, **named: Any) -> MatchResult:
            result = match_all(*given, **named)
            self._known = result.known
            return result

        return noting

    def _passing(self, passed: Callable[[Traversal, Packet, Rule], Leaf | None]) -> Any:
        def noting(walk: Traversal, packet: Packet, rule: Rule) -> Leaf | None:
            known = self._known  # of this rule: those that the jump leads to are matched later
            found = passed(walk, packet, rule)
            self._may_be_joined = None
            if found is not None and known is Ternary.UNKNOWN and isinstance(rule.target, Jump):
                if found.packet == packet:
                    self._note(rule, found)
                else:
                    self._may_be_joined = rule, found
            return found

        return noting

    def _joining(self, joined: Callable[..., Packet | None]) -> Any:
        def noting(*given: Any, **named: Any) -> Packet | None:
            both = joined(*given, **named)
            if both is not None and self._may_be_joined is not None:
                # It changes a mark that no rule matches on, or one of too many that some do.
                self._note(*self._may_be_joined)
            return both

        return noting

    def _note(self, rule: Rule, back: Leaf) -> None:
        met = self.jumps.setdefault(rule.location.line, [])
        if back.rules not in met:
            met.append(back.rules)
