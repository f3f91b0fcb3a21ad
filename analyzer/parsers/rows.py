"""The rules of a chain as rows of text, parsed on first access."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from operator import itemgetter

from analyzer.model.addresses import address_from_text, address_to_text
from analyzer.model.diagnostics import Location
from analyzer.model.iptables.rules import LOST_ROWS, Chain, LazyChains, LazyRules, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, overload

    from analyzer.parsers.xt.row_shapes import RowShapes


#: Rows that are parsed one by one, before finding out which are alike is worth its time.
_FEW: Final = 256


class RowReader:
    """Parses rows of a table that declares `chains`: if they are many, by their shapes."""

    __slots__ = ("_chains", "_number", "_shapes")

    def __init__(self, chains: Container[str]) -> None:
        self._chains = chains
        self._number = 0
        self._shapes: RowShapes | None = None

    def parse(self, line: str, location: Location) -> Rule:
        """Return the rule of a row.

        Raises:
            ParseError: a word that iptables-save cannot have printed there.
        """
        if self._shapes is not None:
            return self._shapes.parse(line, location, self._chains)
        from analyzer.parsers.xt.rule import parse_rule

        self._number += 1
        if self._number > _FEW:
            from analyzer.parsers.xt.row_shapes import RowShapes

            self._shapes = RowShapes()
        return parse_rule(line, location, self._chains)


class RuleRows(LazyRules):
    """The rules of one chain, each parsed on first access.

    Raises:
        ParseError: on first access, if the rule is malformed.
    """

    __slots__ = ("_file", "_held", "_reader", "_understood", "table")

    def __init__(self, file: str, reader: RowReader, table: str = "") -> None:
        super().__init__()
        self._file = file
        self._reader = reader
        self._held: list[tuple[int, str]] | None = None
        self._understood: list[Rule | None] = []
        #: The name of the table, as far as it is known so far.
        self.table = table

    @property
    @abstractmethod
    def lines(self) -> list[str]:
        """The text of each rule."""

    @abstractmethod
    def number(self, at: int) -> int:
        """Return the line, from 1, of the rule at `at`, from 0."""

    @property
    def rows(self) -> list[tuple[int, str]]:
        """The line number, from 1, and the text of each rule."""
        return [(self.number(at), line) for at, line in enumerate(self.lines)]

    @property
    @abstractmethod
    def text(self) -> str:
        """All rows, each with a newline at its end."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rules, plus one if some may be lost."""

    def understand(self, number: int, line: str) -> Rule:
        """Return one rule, parsed and not kept."""
        return self._reader.parse(line, self._at(number))

    def _at(self, number: int) -> Location:
        return Location(self._file, number, self.table)

    def keys(self) -> list[tuple[str | None, int | None]]:
        """Return what each rule matches at least, as far as its row says so in plain words."""
        found = [_key(line) for line in self.lines]
        return found if self.complete else [*found, (None, None)]

    def texts(self) -> Sequence[str] | None:
        """Return the text of each rule; None if some may be lost."""
        return self.lines if self.complete else None

    def _rule(self, at: int) -> Rule:
        held = self._hold()
        rule = self._understood[at]
        if rule is None:
            if at == len(held):
                last = held[-1][0] if held else 1
                rule = lost_rule(LOST_ROWS, self._at(last))
            else:
                rule = self.understand(*held[at])
            self._understood[at] = rule
        return rule

    def _hold(self) -> list[tuple[int, str]]:
        """Keep the rows, and make room for the parsed rules."""
        if self._held is None:
            rows = self.rows
            self._understood = [None] * len(self)
            self._held = rows
        return self._held

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> Rule: ...
        @overload
        def __getitem__(self, index: slice) -> Sequence[Rule]: ...

    def __getitem__(self, index: int | slice) -> Rule | Sequence[Rule]:
        if self._held is not None and isinstance(index, int) and index >= 0:
            rule = self._understood[index]
            if rule is not None:  # each rule is read again and again
                return rule
        self._hold()
        places = range(len(self._understood))[index]  # to count the rows again takes time
        return self._rule(places) if isinstance(places, int) else [self._rule(at) for at in places]

    def __iter__(self) -> Iterator[Rule]:
        return map(self._rule, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


#: Destination and port, preceded at most by the source, without ``!``.
_KEY: Final = (
    r"(?:\[\d+:\d+\] )?-A \S+ (?:(?:! )?-s \S+ )?"
    r"(?:-d ((?:(?:0|[1-9]\d{0,2})\.){3}(?:0|[1-9]\d{0,2})(?=/32 )|[0-9a-f:.]+(?=/128 ))/\d+ "
    r"|(?:! )?-d \S+ )?"
    r'(?:-p (?:tcp|udp|sctp) (?:-m comment --comment (?:"[^"\\]*"|[\w-]+) '
    r"|-m addrtype (?:! )?--(?:src|dst)-type \S+ )*"
    r"-m (?:tcp|udp|sctp) --dport (\d{1,5})(?= ))?"
)


def _key(line: str) -> tuple[str | None, int | None]:
    found = re.match(_KEY, line)
    if found is None:
        return None, None
    host, port = found.groups()
    if host is not None and ":" in host:
        address = address_from_text(host)  # IPv6 has more than one spelling
        host = None if address is None else address_to_text(address)
    return host, None if port is None else int(port)


def lost_rule(text: str, location: Location) -> Rule:
    """Return a rule that represents those that the dump may have lost; it cannot be read."""
    from analyzer.model.iptables.matches import MatchUnknown
    from analyzer.model.iptables.targets import TargetUnknown

    return Rule(
        (MatchUnknown(LOST_ROWS),), TargetUnknown(LOST_ROWS, is_lost=True), location, f"# {text}"
    )


class Skimmed:
    """Whole chains of one shape, read by a caller that needs only their words.

    Attributes:
        spans: where the rows of such chains begin and end, in order; each span contains all rows
            of its chains and nothing else.
        chains: their names, in the order of the text.
    """

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []
        self.chains: Mapping[str, object] = {}


#: Skims the rows of a table: text, start of the rows, family, name of the table.
Skim = Callable[[str, int, str, str], Skimmed]


class RowBlock:
    """The rows of one table that are contiguous in the input, chain after chain.

    `groups` has the start and end of each chain's rows in `text`, except for those in `skimmed`;
    `part` splits a piece of the text into such groups.
    """

    __slots__ = ("_more", "_part", "_places", "groups", "reader", "skimmed", "span", "text")

    def __init__(
        self,
        text: str,
        groups: dict[str, tuple[int, int]],
        span: tuple[int, int],
        part: Callable[[int, int], dict[str, tuple[int, int]]],
        skimmed: Skimmed | None,
        reader: RowReader,
    ) -> None:
        self.text = text
        self.groups = groups
        #: Start and end of this table's rows in the text.
        self.span = span
        self.skimmed = skimmed
        self._part = part
        self._more: dict[str, tuple[int, int]] | None = None
        self.reader = reader
        #: Offsets whose line is known, in order: offset and line, from 1.
        self._places = [(0, 1)]

    def span_of(self, chain: str) -> tuple[int, int]:
        """Return where the rows of a chain begin and end; an empty span if it has none."""
        found = self.groups.get(chain)
        if found is None and self.skimmed is not None and chain in self.skimmed.chains:
            if self._more is None:
                self._more = {}
                for span in self.skimmed.spans:
                    self._more.update(self._part(*span))
            found = self._more[chain]
        return found or (0, 0)

    def all_but(self) -> Iterator[tuple[int, int]]:
        """Yield the spans of the rows that were not skimmed."""
        at, last = self.span
        for start, end in self.skimmed.spans if self.skimmed is not None else ():
            if at < start:
                yield at, start
            at = end
        if at < last:
            yield at, last

    def first_line(self, chain: str) -> int:
        """Return the line, from 1, of the first row of `chain`."""
        from bisect import bisect_right  # rarely needed, and slow to load

        start, _ = self.span_of(chain)
        at = bisect_right(self._places, start, key=itemgetter(0))
        before, line = self._places[at - 1]
        # From the nearest known offset on, since counting from the start would be quadratic.
        line += self.text.count("\n", before, start)
        if before != start:
            self._places.insert(at, (start, line))
        return line


class SlicedRows(RuleRows):
    """Rows that are contiguous in the input: a slice of its text."""

    __slots__ = ("_block", "_name")

    def __init__(self, file: str, table: str, block: RowBlock, name: str) -> None:
        super().__init__(file, block.reader, table)
        self._block = block
        self._name = name

    @property
    def declared(self) -> Location | None:
        """Where the input declares the chain."""
        text, (start, _) = self._block.text, self._block.span
        at = text.rfind(f"\n:{self._name} ", 0, start)
        return None if at < 0 else self._at(text.count("\n", 0, at + 1) + 1)

    @property
    def lines(self) -> list[str]:
        """The text of each rule."""
        return self.text.split("\n")[:-1]

    def number(self, at: int) -> int:
        """Return the line, from 1, of the rule at `at`, from 0."""
        return self._block.first_line(self._name) + at

    @property
    def rows(self) -> list[tuple[int, str]]:
        """The line number, from 1, and the text of each rule."""
        lines = self.lines
        return list(enumerate(lines, self.number(0))) if lines else []

    @property
    def text(self) -> str:
        """All rows, each with a newline at its end."""
        start, end = self._block.span_of(self._name)
        return self._block.text[start:end]

    def __len__(self) -> int:
        if self._held is not None:
            return len(self._understood)
        return self._block.text.count("\n", *self._block.span_of(self._name))


class RowChains(LazyChains):
    """Chains by name, each created on first access."""

    __slots__ = ("_made", "_make", "_names", "_rules", "block")

    def __init__(
        self, names: Mapping[str, object], make: Callable[[str], Chain], block: RowBlock
    ) -> None:
        self._names = names
        self._make = make
        #: Where the rows of each chain are.
        self.block = block
        self._made: dict[str, Chain] = {}
        self._rules: int | None = None

    @property
    def rules(self) -> int:
        """The number of rules in all chains."""
        if self._rules is None:
            self._rules = self.block.text.count("\n", *self.block.span)
        return self._rules

    def __getitem__(self, name: str) -> Chain:
        chain = self._made.get(name)
        if chain is None:
            if name not in self._names:
                raise KeyError(name)
            chain = self._made[name] = self._make(name)
        return chain

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
