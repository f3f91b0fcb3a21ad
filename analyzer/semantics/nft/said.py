"""nft chains with the same rules: a packet that may jump to any of them is evaluated once.

A network plugin writes a chain for each pod, and sends packets there by the pod's device. Most of
these chains have the same rules except for their names, which the rules of nft do not repeat.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

from analyzer.model.nft.expressions import Expression, Goto, Jump
from analyzer.model.nft.lazy import Lazy
from analyzer.model.nft.ruleset import Rule, Table
from analyzer.model.nft.statements import Counter
from analyzer.model.probability import Dyadic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: A verdict of an element, and how likely that element is to be drawn.
    ElementVerdict: TypeAlias = tuple[Expression | None, Dyadic | None]

#: What nft prints of a rule that packets do not notice: a comment ends it.
_UNSEEN: Final = re.compile(
    r'\bcounter(?: packets \d+ bytes \d+)?(?=[ \n]|$)|\bcomment "[^"\n]*"(?=\n|$)'
)


class AlikeChains:
    """The chains of one table, by what they say."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._first: dict[Hashable, str] = {}
        self._like: dict[str, str] = {}

    def like(self, chain: str) -> str:
        """Return the first chain that was asked for and has the same rules, which may be itself."""
        if chain not in self._like:
            known = self._table.chains.get(chain)
            said = f"no {chain}" if known is None else _said(known.rules)
            self._like[chain] = self._first.setdefault(said, chain)
        return self._like[chain]

    def once(self, ways: Sequence[ElementVerdict]) -> Sequence[ElementVerdict]:
        """Return the ways of a packet that is sent to one of many chains: of alike ones the first.

        Of what is drawn every one counts.
        """
        if any(chance is not None for _, chance in ways):
            return ways
        return list(dict.fromkeys((self._as_first(verdict), None) for verdict, _ in ways))

    def _as_first(self, verdict: Expression | None) -> Expression | None:
        match verdict:
            case Goto(chain):
                return Goto(self.like(chain))
            case Jump(chain):
                return Jump(self.like(chain))
            case _:
                return verdict


def _said(rules: Sequence[Rule]) -> Hashable:
    """Return what rules say; two thousand take less time as text than understood."""
    match rules.source if isinstance(rules, Lazy) else None:  # of those not understood yet
        case (str() as body, *_):
            return tuple(_UNSEEN.sub("", body).split())
        case _:
            return tuple(
                tuple(each for each in rule.statements if not isinstance(each, Counter))
                for rule in rules
            )
