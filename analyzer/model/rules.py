"""Tables, chains and rules, in netfilter's own terms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from analyzer.model.diagnostics import Diagnostic, Location
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:  # a hundred classes that a plain dump has no use for
    from typing import Any, TypeAlias

    from analyzer.model.ipsets import Ipsets
    from analyzer.model.matches import Match
    from analyzer.model.targets import Target

#: Packets and bytes.
Counters: TypeAlias = tuple[int, int]


@value
class Rule:
    """All `matches` together guard one `target`; no target means a mere counter.

    Attributes:
        raw: the line as it stands in the input, so that a report can quote its evidence.
    """

    matches: tuple[Match, ...]
    target: Target | None
    location: Location
    raw: str
    counters: Counters | None = None


#: What stands in the place of the target of rules that a dump may have lost.
LOST_ROWS = "the dump may have lost rules here"


class LazyRules(Sequence[Rule]):
    """Rules that are understood one by one, when they are looked at."""

    __slots__ = ("index",)

    def __init__(self) -> None:
        #: What `semantics.index` has made of the keys, for the next walk.
        self.index: Any = None

    @abstractmethod
    def keys(self) -> list[tuple[str | None, int | None]]:
        """Return what each rule asks for at least: a destination, a port; None: any.

        An address is written as inet_ntop() does. A rule that asks for one certainly does not
        match a packet to another one, nor one that asks for a port, of its own protocol.
        """

    @abstractmethod
    def texts(self) -> Sequence[str] | None:
        """Return the text of each rule, without a look at what it means; None: not all is there."""


@value
class Chain:
    """Rules in order; `policy` is set on a base chain only.

    `rules` may be a sequence that understands its rules when they are asked for.
    """

    name: str
    rules: Sequence[Rule]
    policy: str | None = None
    counters: Counters | None = None


@value
class Table:
    """A name space of chains.

    Attributes:
        family: ``ip`` or ``ip6``.
        complete: False when the input ends before the table does, or a line of the table is not
            understood.
    """

    family: str
    name: str
    chains: Mapping[str, Chain]
    complete: bool = True

    @property
    def rules(self) -> int:
        """How many rules there are in all chains."""
        quick: int | None = getattr(self.chains, "rules", None)  # without making the chains
        return sum(len(c.rules) for c in self.chains.values()) if quick is None else quick


@value(kw_only=True)
class Ruleset:
    """All that one dump says of one node's rules.

    Attributes:
        input_format: the name of the format it was read as.
        backend: which binary keeps the rules, ``legacy`` or ``nft``; None when the dump does
            not say.
        legacy_beside: whether iptables-nft-save said that the node has tables of the other backend.
        counted: how many rules the dump holds, where that was counted while it was read.
        taken: when, as its header has it, by the node's clock; empty where it has none.
        ipsets: the node's sets, in which its rules look packets up, as far as they were told.
    """

    tables: Mapping[str, Table]
    family: str
    input_format: str
    file: str
    backend: str | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    legacy_beside: bool = False
    counted: int | None = None
    taken: str = ""
    ipsets: Ipsets | None = None

    @property
    def rules(self) -> int:
        """How many rules the dump holds."""
        tables = self.tables.values()
        return sum(table.rules for table in tables) if self.counted is None else self.counted
