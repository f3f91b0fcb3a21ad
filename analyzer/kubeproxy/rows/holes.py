"""Rows missing from the middle of a dump, as far as the rest gives them away.

kube-proxy writes a table at once, so each of its chains that is declared has rows, one of a Service
or an endpoint is jumped to, one of an endpoint marks hairpins and sends flows on, one with session
affinity draws each endpoint to which it holds clients, and base chains lead to it. Where that is
not so in a piece of a dump, rows are lost, and nobody can tell which others went with them: every
chain of a Service, what leads there and what follows, is then taken to have had more. A dump that
is whole, with all tables from head to COMMIT and each chain that has rows declared, is taken at its
word: somebody may have changed the rules themselves. What it betrays is said, and Services that
nothing leads to are named.

A chain that nothing leads to may also be a stale one: kube-proxy removes them at once from small
dumps, and from large ones later. Up to 1.23 it also writes chains for a Service with a local policy
that no rule needs. kube-proxy 1.22.0 to 1.22.3 writes chains of endpoints that are not ready, which
nothing leads to (#106030): these are told of as lost, since no dump tells a patch release.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``,
``largeClusterEndpointsThreshold``; pkg/util/iptables, ``RestoreAll``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from analyzer.kubeproxy import names
from analyzer.model.diagnostics import Diagnostic, Location, partial_warning
from analyzer.model.iptables.rules import Chain, Rule, Ruleset, Table
from analyzer.model.value import replace, value
from analyzer.parsers.rows import Chains, RuleRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: What leads to the chains of Services, and what is met behind them.
_BASES: Final = frozenset({"PREROUTING", "OUTPUT", "POSTROUTING"})
_OURS: Final = re.compile(r"KUBE-(?:SVC|SVL|EXT|XLB|FW|SEP)-[A-Z2-7]{16}")
_LED_TO: Final = re.compile(r" -[jg] (KUBE-(?:SVC|SVL|EXT|XLB|FW|SEP)-\S+)")
#: Where a row sends flows on, if to an endpoint.
_TO_ENDPOINT: Final = re.compile(r" -[jg] (KUBE-SEP-\S+)")
#: In a row that sends a client to the endpoint that its session affinity holds.
_HELD: Final = " --rcheck "
#: What the chains of a local policy begin with, up to 1.23.
_LOCAL: Final = "KUBE-XLB-"
#: The Service that a row of an endpoint names.
_NAMED: Final = re.compile(r'-m comment --comment (?:"([^"\\]*)"|([\w-]+))')
#: A row that marks flows for masquerade.
_MARKS: Final = " -j KUBE-MARK-MASQ"
#: One in KUBE-NODEPORTS that marks all flows of a frontend; those of loopback are marked up to
#: 1.23, others up to 1.21.
_MARKS_PORT: Final = re.compile(r"^-A KUBE-NODEPORTS (?!-s ).* -j KUBE-MARK-MASQ$", re.MULTILINE)
#: One in a chain of a Service that marks flows to its ClusterIP; up to 1.23 others stand there too.
_MARKS_INSIDE: Final = re.compile(r' cluster IP" .* -j KUBE-MARK-MASQ$', re.MULTILINE)
#: In the comment of a row for a ClusterIP.
_INSIDE: Final = " cluster IP"
#: Address, protocol and port of a frontend.
_PLACE: Final = re.compile(r" (?:-d|-p|--dport) (\S+)")
#: What is always in the rows of the chains around those of Services.
_FRAME: Final = {
    "PREROUTING": (f" -j {names.SERVICES}",),
    "OUTPUT": (f" -j {names.SERVICES}",),
    "POSTROUTING": (" -j KUBE-POSTROUTING",),
    "KUBE-POSTROUTING": (" -j MASQUERADE",),
    names.MARK_MASQUERADE: (" -j MARK",),
}
#: A row behind which a flow may go on.
_DRAWS: Final = re.compile(r" -m (?:statistic|recent) ")
#: What no iptables-save prints: a dump of which that is said has lost lines.
_NEVER_SAVED: Final = frozenset({"guessed-table", "no-commit", "undeclared-chain"})
#: Endpoints from which on kube-proxy leaves stale chains behind.
_LARGE: Final = 1000
#: Chains that are told by name.
_FEW: Final = 3


@value
class Mended:
    """Rules with what holes leave open put in.

    Attributes:
        unled: names of Services whose chains nothing in a whole dump leads to.
    """

    ruleset: Ruleset
    diagnostics: tuple[Diagnostic, ...] = ()
    unled: tuple[str, ...] = ()


def is_whole(ruleset: Ruleset) -> bool:
    """Tell whether a dump has all of its tables, each from its head to COMMIT, and their chains."""
    odd = any(each.code in _NEVER_SAVED for each in ruleset.diagnostics)
    complete = all(table.complete for table in ruleset.tables.values())
    return not odd and complete and {"nat", "filter"} <= set(ruleset.tables)


def without_holes(ruleset: Ruleset, dump: Ruleset) -> Mended:
    """Return the rules with what holes leave open put in, and what there is to say of them.

    `dump` is what was read, before anything was put in.
    """
    nat = ruleset.tables.get("nat")
    if nat is None or names.SERVICES not in nat.chains:
        return Mended(ruleset)
    named = (name for name in nat.chains if _OURS.fullmatch(name))
    # Of a large dump that is whole no more are looked at.
    ours = [*islice(named, _LARGE + 1)]
    if not ours or (nat.complete and len(ours) > _LARGE):
        return Mended(ruleset)
    ours += named
    survey = _Survey(nat, ours)
    betraying = list(dict.fromkeys(survey.betraying()))
    if not betraying:
        return Mended(ruleset)
    whole = is_whole(dump)
    told = (_told(ruleset, betraying, whole=whole),)
    if whole:
        return Mended(ruleset, told, tuple(survey.unled()))
    lost = lost_rows(Location(ruleset.file, 0, "nat"))
    empty = {name for name in betraying if not _has_rows(nat.chains[name])} - _BASES
    chains = {
        name: replace(chain, rules=(*lost, *chain.rules))
        if name in _BASES or name.startswith(names.SERVICE_PREFIXES)
        else chain
        for name, chain in nat.chains.items()
        if name not in empty  # what is not there may be anything
    }
    tables = {**ruleset.tables, "nat": replace(nat, chains=chains)}
    return Mended(replace(ruleset, tables=tables), told)


def lost_rows(location: Location) -> tuple[Rule, ...]:
    """Return what stands for lost rows: they may have marked the flow, or ended its way."""
    from analyzer.model.iptables.matches import MatchUnknown
    from analyzer.model.iptables.targets import ChangeSet, Queue

    text = "the dump may have lost rules here"
    # Behind what takes its mark out of a set that no dump shows, the mark is not known.
    marks = ChangeSet(action="map-set", name="", directions="src", map_mark=True)
    return (
        Rule((), marks, location, f"# {text}"),
        Rule((MatchUnknown(text),), Queue(), location, f"# {text}"),
    )


def _text(nat: Table) -> str:
    if isinstance(nat.chains, Chains):
        start, end = nat.chains.block.span
        return nat.chains.block.text[start:end]
    texts = [c.rules.text for c in nat.chains.values() if isinstance(c.rules, RuleRows)]
    return "".join(texts)


def lacks_head(chain: Chain) -> bool:
    """Tell whether a chain has rows, and not the first ones, which mark flows or ask for marks."""
    rules = chain.rules
    if not isinstance(rules, RuleRows) or not rules.text:
        return False
    if chain.name == "KUBE-POSTROUTING":
        return " --mark " not in rules.text
    if chain.name.startswith("KUBE-EXT-"):
        return _MARKS not in rules.text
    # Up to 1.21 a row that marks flows stands before each that sends them to all endpoints.
    first = rules.text[: rules.text.index("\n")]
    leads = chain.name == names.NODE_PORTS and " -j KUBE-SVC-" in first
    return leads and _MARKS_PORT.search(rules.text) is not None


class _Survey:
    """Looks for what kube-proxy would not have written; `ours` are chains with names of its."""

    def __init__(self, nat: Table, ours: list[str]) -> None:
        self._nat = nat
        self._ours = ours
        self._led_to = set(_LED_TO.findall(_text(nat)))
        filled = [name for name, chain in nat.chains.items() if _has_rows(chain)]
        order = {name: at for at, name in enumerate(nat.chains)}
        # A dump that ends too soon has the rows of the chains before its end, and so has a piece
        # of one, as long as nothing was cut out of it.
        self._cut = None if nat.complete or not filled else filled[-1]
        last = len(order) if self._cut is None else order[self._cut]
        self._seen = {name for name, at in order.items() if at < last}

    def betraying(self) -> Iterator[str]:
        """Give the chains that are not as they were written."""
        yield from self._frame()
        yield from (name for name, chain in self._nat.chains.items() if lacks_head(chain))
        yield from self._stray()
        yield from self._unfilled()
        for name in self._ours:
            rows = self._rows(name) if name.startswith(names.ENDPOINT_PREFIX) else None
            if rows is not None and (" -j DNAT" not in rows or _MARKS not in rows):
                yield name
        yield from self._unmarked()
        yield from self._undrawn()

    def _rows(self, name: str) -> str | None:
        """Return the rows of a chain; None: there are none, not all, or they were put there."""
        return None if name == self._cut else self._first_rows(name)

    def _has_all_rows(self, name: str) -> bool:
        """Tell whether none of a chain's rows that draw endpoints may lie behind the dump's end."""
        last = (self._first_rows(name) or "").rstrip().rpartition("\n")[2]
        ends = _TO_ENDPOINT.search(last) is not None and not _DRAWS.search(last)
        return ends or self._rows(name) is not None

    def _first_rows(self, name: str) -> str | None:
        """Return the rows of a chain, be it that more of them followed where the dump is cut."""
        chain = self._nat.chains.get(name)
        return chain.rules.text or None if chain and isinstance(chain.rules, RuleRows) else None

    def _is_empty(self, name: str) -> bool:
        return name in self._seen and not _has_rows(self._nat.chains[name])

    def _frame(self) -> Iterator[str]:
        """Give the chains around those of Services that lack what is always there."""
        for name, needed in _FRAME.items():
            rows = self._rows(name)
            lacks = rows is not None and not all(words in rows for words in needed)
            there = name != "POSTROUTING" or "KUBE-POSTROUTING" in self._nat.chains
            if there and (lacks or self._is_empty(name)):
                yield name

    def _stray(self) -> Iterator[str]:
        """Give the chains that nothing leads to although what does should be there."""
        stray = [name for name in self._ours if name not in self._led_to]
        if not self._nat.complete:
            # What would lead there may lie before or behind the piece; what is in it may not.
            whole = {
                service
                for name in self._ours
                if name.startswith(names.SERVICE_PREFIXES) and self._has_all_rows(name)
                for service in self._named(name)
            }
            for name in stray:
                of_endpoint = name.startswith(names.ENDPOINT_PREFIX)
                if self._is_empty(name) or (of_endpoint and whole & self._named(name)):
                    yield name
            return
        local = {
            service
            for name in self._ours
            if name.startswith(_LOCAL)
            for service in self._named(f"KUBE-SVC-{name.removeprefix(_LOCAL)}")
        }
        for name in stray:
            by_design = name.startswith(_LOCAL) or not local.isdisjoint(self._named(name))
            # Of a Service without endpoints it declares the chain alone.
            refused = f"KUBE-SVC-{name.removeprefix(_LOCAL)}" not in self._nat.chains
            if not by_design or (self._is_empty(name) and not refused):
                yield name

    def unled(self) -> Iterator[str]:
        """Give the Services that a chain is for which nothing leads to."""
        found: set[str] = set()
        for name in self._stray():
            if name.startswith(names.SERVICE_PREFIXES):
                found |= self._named(name)
        return iter(sorted(found))

    def _unfilled(self) -> Iterator[str]:
        """Give the empty chains that rules lead to."""
        for name in self._ours:
            # In a whole dump an empty chain of a Service is told of by itself.
            told = self._nat.complete and not name.startswith(names.ENDPOINT_PREFIX)
            if name in self._led_to and self._is_empty(name) and not told:
                yield name

    def _unmarked(self) -> Iterator[str]:
        """Give the chains that mark no flows of a frontend where those of others do."""
        for chain in (names.SERVICES, names.NODE_PORTS):
            # Up to 1.21 a row for each frontend marks its flows, unless it has a local policy.
            rows = (self._rows(chain) or "").splitlines()
            marking = [row for row in rows if _MARKS in row]
            if chain == names.NODE_PORTS:
                marking = [row for row in rows if _MARKS_PORT.match(row)]
            marked = {tuple(_PLACE.findall(row)) for row in marking}
            for inside in (True, False):
                if any((_INSIDE in row) is inside for row in marking) and not all(
                    tuple(_PLACE.findall(row)) in marked
                    for row in rows
                    if " -j KUBE-SVC-" in row and (_INSIDE in row) is inside
                ):
                    yield chain
        # What a chain begins with is there, be the dump cut behind it.
        rows = (self._first_rows(names.SERVICES) or "").splitlines()
        here = [m[1] for row in rows if _INSIDE in row and (m := _LED_TO.search(row))]
        known = {name: theirs for name in here if (theirs := self._first_rows(name)) is not None}
        marked_by = {name for name, theirs in known.items() if _MARKS_INSIDE.search(theirs)}
        if marked_by:
            yield from (name for name in known if name not in marked_by)

    def _undrawn(self) -> Iterator[str]:
        """Give the chains that do not draw just the endpoints to which they hold clients."""
        for name in self._ours:
            rows = self._rows(name) if name.startswith(names.SERVICE_PREFIXES) else None
            if rows is not None and _HELD in rows:
                to: dict[bool, set[str]] = {True: set(), False: set()}
                for row in rows.splitlines():
                    to[_HELD in row] |= set(_TO_ENDPOINT.findall(row))
                if to[True] != to[False]:
                    yield name

    def _named(self, name: str) -> set[str]:
        """Return the Services that the comments of a chain's rows name."""
        chain = self._nat.chains.get(name)
        return set() if chain is None else set(_named(chain))


def _has_rows(chain: Chain) -> bool:
    # What may follow where the dump ends counts as a rule.
    return bool(chain.rules.text if isinstance(chain.rules, RuleRows) else chain.rules)


def _named(chain: Chain) -> Iterator[str]:
    """Give the Services that the comments of a chain's rows name."""
    if isinstance(chain.rules, RuleRows):
        for match in _NAMED.finditer(chain.rules.text):
            name, _ = names.name_and_kind(match[1] or match[2])
            yield name or (match[1] or match[2]).partition(" -> ")[0]


def _told(ruleset: Ruleset, betraying: list[str], *, whole: bool) -> Diagnostic:
    shown = ", ".join(sorted(betraying)[:_FEW])
    more = f" and {len(betraying) - _FEW} more" if betraying[_FEW:] else ""
    then = (
        "somebody has changed the rules or the dump, which is taken at face value"
        if whole
        else "which other rows are lost is not known, so shares are bounds"
    )
    return partial_warning(
        "lost-rows",
        f"the dump has lost rows of table nat: {shown}{more} should have other rows, "
        f"or be jumped to; {then}",
        ruleset.file,
    )
