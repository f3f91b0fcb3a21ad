"""Tables, chains and rules, in netfilter's own terms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from analyzer.model.diagnostics import Diagnostic, Location
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:  # a hundred classes that a plain dump has no use for
    from typing import Final, TypeAlias

    from analyzer.model.ipsets import Ipsets
    from analyzer.model.iptables.matches import Match
    from analyzer.model.iptables.targets import Target

#: The first versions with a program for each backend, and with ``--wait`` of restore.
_TWO_BACKENDS: Final = (1, 8)
_WAITS: Final = (1, 6, 2)
#: Packets and bytes.
Counters: TypeAlias = tuple[int, int]


@value
class Rule:
    """A `target` that applies if all `matches` are true; without one the rule only counts.

    Attributes:
        raw: the line as it is in the input, so that a report can quote its evidence.
    """

    matches: tuple[Match, ...]
    target: Target | None
    location: Location
    raw: str
    counters: Counters | None = None


#: What is said of rules that represent those that a dump may have lost.
LOST_ROWS = "the dump may have lost rules here"


class LazyRules(Sequence[Rule]):
    """Rules that are parsed one by one, on access.

    Attributes:
        complete: False if the input may have lost rules of their chain.
    """

    __slots__ = ("__weakref__", "complete")

    def __init__(self) -> None:
        self.complete = True

    @abstractmethod
    def keys(self) -> list[tuple[str | None, int | None]]:
        """Return what each rule matches at least: a destination, a port; None: any.

        An address is written as inet_ntop() does. A rule with a destination certainly does not
        match a packet to another one, nor does one with a port of the packet's own protocol.
        """

    @abstractmethod
    def texts(self) -> Sequence[str] | None:
        """Return the text of each rule, unparsed; None if some may be lost."""

    @property
    def declared(self) -> Location | None:
        """Where the input declares their chain, with its policy; None: not known."""
        return None


class LazyChains(Mapping[str, "Chain"]):
    """Chains of one table, each made on access."""

    __slots__ = ()

    @property
    @abstractmethod
    def rules(self) -> int:
        """The number of rules in all chains, counted without making the chains."""


@value
class Chain:
    """Rules in order; `policy` is set on a base chain only.

    `rules` may be a sequence that parses its rules on access.
    """

    name: str
    rules: Sequence[Rule]
    policy: str | None = None
    counters: Counters | None = None


@value
class Table:
    """A namespace of chains.

    Attributes:
        family: ``ip`` or ``ip6``.
        complete: False if the input ends before the table does, or a line of the table is not
            understood.
    """

    family: str
    name: str
    chains: Mapping[str, Chain]
    complete: bool = True

    @property
    def rules(self) -> int:
        """The number of rules in all chains."""
        chains = self.chains
        if isinstance(chains, LazyChains):
            return chains.rules
        return sum(len(chain.rules) for chain in chains.values())


@value(kw_only=True)
class Ruleset:
    """The whole of one node's rules in one dump.

    Attributes:
        input_format: the name of the format it was read as.
        backend: the binary that keeps the rules, ``legacy`` or ``nft``; None if the dump does not
            say.
        legacy_beside: whether iptables-nft-save said that the node has tables of the other backend.
        ends_early: whether its last lines are missing, so that tables may follow.
        not_shown: names of tables of which iptables-nft-save said that it leaves rules out.
        counted: the number of rules in the dump, if it was counted while reading.
        taken: when, according to its header, by the node's clock; empty if it has none.
        version: of the program, according to its header; empty if it has none.
        ipsets: the node's sets, which its rules look packets up in, as far as they were given.
    """

    tables: Mapping[str, Table]
    family: str
    input_format: str
    file: str
    backend: str | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    legacy_beside: bool = False
    ends_early: bool = False
    not_shown: tuple[str, ...] = ()
    counted: int | None = None
    taken: str = ""
    version: tuple[int, ...] = ()
    ipsets: Ipsets | None = None

    @property
    def save(self) -> str:
        """The program that prints such a dump, by the name that the node has for it."""
        return self._program("save")

    @property
    def restore(self) -> str:
        """The program that changes these rules, which waits for others that do where it can.

        Source: iptables 1.6.2, iptables/iptables-restore.c, ``--wait``; kube-proxy,
        pkg/util/iptables, ``WaitRestoreMinVersion``.
        """
        waits = not self.version or self.version >= _WAITS
        return f"{self._program('restore')}{' -w 5' if waits else ''} --noflush"

    def _program(self, what: str) -> str:
        """Return a name as of 1.8.0, which has two backends, or as before, of the only one."""
        is_told = self.backend and (not self.version or self.version >= _TWO_BACKENDS)
        backend = f"{self.backend}-" if is_told else ""
        return f"ip{'' if self.family == 'ip' else '6'}tables-{backend}{what}"

    @property
    def rules(self) -> int:
        """The number of rules in the dump."""
        tables = self.tables.values()
        return sum(table.rules for table in tables) if self.counted is None else self.counted
