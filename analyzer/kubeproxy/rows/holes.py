"""Rows missing from the middle of a dump, as far as the remaining ones show it.

kube-proxy writes a table at once: each of its chains that is declared has rows, each chain of a
Service or an endpoint is jumped to, one of an endpoint marks hairpin flows and has a DNAT rule, one
with session affinity draws each endpoint that has an affinity rule, and base chains jump to
kube-proxy's. If that is not so in a fragment of a dump, rows are lost, and which others were lost
with them is not known: every chain of a Service, and all chains before and after it, are then
taken to have had more rows. A dump that is whole, with all tables from head to COMMIT and each
chain that has rows declared, is taken at face value: the rules themselves may have been edited. A
diagnostic then says what is odd, and Services that nothing leads to are named.

A chain that nothing leads to may also be a stale one: kube-proxy removes them at once from small
dumps, and from large ones later. Up to 1.23 it also writes chains for a Service with a local
traffic policy that no rule jumps to. kube-proxy 1.22.0 to 1.22.3 writes chains of endpoints that
are not ready, which nothing leads to (#106030): these are reported as lost, since no dump shows
its patch release.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``,
``largeClusterEndpointsThreshold``; pkg/util/iptables, ``RestoreAll``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from analyzer.kubeproxy import names
from analyzer.model.diagnostics import Diagnostic, Location, partial_warning
from analyzer.model.iptables.rules import LOST_ROWS, Chain, LazyRules, Rule, Ruleset, Table
from analyzer.model.value import replace, value
from analyzer.parsers.rows import RowChains, RuleRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.semantics.base_chains import Rules

#: The chains before those of Services, and those after them.
_BASES: Final = frozenset({"PREROUTING", "OUTPUT", "POSTROUTING"})
_OURS: Final = re.compile(r"KUBE-(?:SVC|SVL|EXT|XLB|FW|SEP)-[A-Z2-7]{16}")
_LED_TO: Final = re.compile(r" -[jg] (KUBE-(?:SVC|SVL|EXT|XLB|FW|SEP)-\S+)")
#: The chain of an endpoint that a row jumps to.
_TO_ENDPOINT: Final = re.compile(r" -[jg] (KUBE-SEP-\S+)")
#: In a row that sends a client to the endpoint that its session affinity recorded.
_HELD: Final = " --rcheck "
#: Prefix of the chains of a local traffic policy, up to 1.23.
_LOCAL: Final = "KUBE-XLB-"
#: The Service in the comment of an endpoint's row.
_NAMED: Final = re.compile(r'-m comment --comment (?:"([^"\\]*)"|([\w-]+))')
#: A row that marks flows for masquerade.
_MARKS: Final = " -j KUBE-MARK-MASQ"
#: One in KUBE-NODEPORTS that marks all flows of a frontend; those over loopback are marked up to
#: 1.23, others up to 1.21.
_MARKS_PORT: Final = re.compile(r"^-A KUBE-NODEPORTS (?!-s ).* -j KUBE-MARK-MASQ$", re.MULTILINE)
#: One in a chain of a Service that marks flows to its ClusterIP; up to 1.23 others are there too.
_MARKS_INSIDE: Final = re.compile(r' cluster IP" .* -j KUBE-MARK-MASQ$', re.MULTILINE)
#: The network of pods in such a row, and the row of a local policy that sends its flows on, which
#: is there if the network is known.
_PODS: Final = re.compile(r" ! -s (\S+) .* cluster IP\" .* -j KUBE-MARK-MASQ$", re.MULTILINE)
_OF_PODS: Final = re.compile(r"-A \S+ -s \S+ .* -j KUBE-SVC-")
_OF_LOCAL_POLICY: Final = " --src-type LOCAL "
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
#: A row after which a flow may continue.
_DRAWS: Final = re.compile(r" -m (?:statistic|recent) ")
#: Never in the output of iptables-save: a dump with such a diagnostic has lost lines.
_NEVER_SAVED: Final = frozenset({"guessed-table", "no-commit", "undeclared-chain"})
#: Number of endpoints from which on kube-proxy leaves stale chains behind.
_LARGE: Final = 1000
#: Most chains that are named in a message.
_FEW: Final = 3


def has_holes(ruleset: Ruleset) -> bool:
    """Return whether some of what kube-proxy always writes is missing."""
    nat = ruleset.tables.get("nat")
    if nat is None or names.SERVICES not in nat.chains:
        return False
    marks = nat.chains.get(names.MARK_MASQUERADE)
    if marks is None or (isinstance(marks.rules, LazyRules) and not marks.rules.complete):
        return True
    return any(hook not in nat.chains for hook in _BASES)


@value
class Mended:
    """Rules with the missing ones added.

    Attributes:
        unled: names of Services whose chains nothing in a whole dump leads to.
    """

    ruleset: Ruleset
    diagnostics: tuple[Diagnostic, ...] = ()
    unled: tuple[str, ...] = ()


def is_whole(dump: Ruleset, others: Iterable[Rules] = ()) -> bool:
    """Return whether a dump has all tables, each from its head to COMMIT, and all chains.

    Some of the tables may be in others, of the same IP version.
    """
    dumps = [dump]
    dumps += [each for each in others if isinstance(each, Ruleset) and each.family == dump.family]
    odd = any(each.code in _NEVER_SAVED for one in dumps for each in one.diagnostics)
    tables = [each for one in dumps for each in one.tables.values()]
    found = {each.name for each in tables}
    return not odd and all(each.complete for each in tables) and {"nat", "filter"} <= found


def without_holes(ruleset: Ruleset, dump: Ruleset, others: Iterable[Rules] = ()) -> Mended:
    """Return the rules with the lost ones represented, and the diagnostics about them.

    `dump` is what was read, before anything was added, and `others` what was read beside it.
    """
    nat = ruleset.tables.get("nat")
    if nat is None or names.SERVICES not in nat.chains:
        return Mended(ruleset)
    named = (name for name in nat.chains if _OURS.fullmatch(name))
    # In a large dump that is whole nothing is checked.
    ours = [*islice(named, _LARGE + 1)]
    if not ours or (nat.complete and len(ours) > _LARGE):
        return Mended(ruleset)
    ours += named
    survey = _Survey(nat, ours)
    betraying = list(dict.fromkeys(survey.betraying()))
    if not betraying:
        return Mended(ruleset)
    whole = is_whole(dump, others)
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
    """Return rules in place of lost ones, which may have marked the flow, or ended its way."""
    from analyzer.model.iptables.matches import MatchUnknown
    from analyzer.model.iptables.targets import ChangeSet, Queue

    text = LOST_ROWS
    # After a mark is mapped from a set that is in no dump, the mark is not known.
    marks = ChangeSet(action="map-set", name="", directions="src", map_mark=True)
    return (
        Rule((), marks, location, f"# {text}"),
        Rule((MatchUnknown(text),), Queue(), location, f"# {text}"),
    )


def _text(nat: Table) -> str:
    if isinstance(nat.chains, RowChains):
        start, end = nat.chains.block.span
        return nat.chains.block.text[start:end]
    texts = [c.rules.text for c in nat.chains.values() if isinstance(c.rules, RuleRows)]
    return "".join(texts)


def lacks_head(chain: Chain) -> bool:
    """Return whether a chain has rows, but not the first ones, which set or match marks."""
    rules = chain.rules
    if not isinstance(rules, RuleRows) or not rules.text:
        return False
    if chain.name == "KUBE-POSTROUTING":
        return " --mark " not in rules.text
    if chain.name.startswith("KUBE-EXT-"):
        return _MARKS not in rules.text
    # Up to 1.21 each row that sends flows to all endpoints follows one that marks them.
    first = rules.text[: rules.text.index("\n")]
    leads = chain.name == names.NODE_PORTS and " -j KUBE-SVC-" in first
    return leads and _MARKS_PORT.search(rules.text) is not None


class _Survey:
    """Looks for what kube-proxy would not have written; `ours` are chains with names of its own."""

    def __init__(self, nat: Table, ours: list[str]) -> None:
        self._nat = nat
        self._ours = ours
        self._led_to = set(_LED_TO.findall(_text(nat)))
        filled = [name for name, chain in nat.chains.items() if _has_rows(chain)]
        order = {name: at for at, name in enumerate(nat.chains)}
        # A dump that ends too soon has the rows of the chains before its end, and so has a
        # fragment, as long as nothing was cut out of it.
        self._cut = None if nat.complete or not filled else filled[-1]
        last = len(order) if self._cut is None else order[self._cut]
        self._seen = {name for name, at in order.items() if at < last}

    def betraying(self) -> Iterator[str]:
        """Yield the chains that are not as kube-proxy wrote them."""
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
        yield from self._without_pods()

    def _rows(self, name: str) -> str | None:
        """Return the rows of a chain; None: there are none, not all, or they were added here."""
        return None if name == self._cut else self._first_rows(name)

    def _has_all_rows(self, name: str) -> bool:
        """Return whether all rows of a chain that draw endpoints are before the end of the dump."""
        last = (self._first_rows(name) or "").rstrip().rpartition("\n")[2]
        ends = _TO_ENDPOINT.search(last) is not None and not _DRAWS.search(last)
        return ends or self._rows(name) is not None

    def _first_rows(self, name: str) -> str | None:
        """Return the rows of a chain, even if more of them may follow where the dump is cut."""
        chain = self._nat.chains.get(name)
        return chain.rules.text or None if chain and isinstance(chain.rules, RuleRows) else None

    def _is_empty(self, name: str) -> bool:
        return name in self._seen and not _has_rows(self._nat.chains[name])

    def _frame(self) -> Iterator[str]:
        """Yield the chains around those of Services that lack what is always there."""
        for name, needed in _FRAME.items():
            rows = self._rows(name)
            lacks = rows is not None and not all(words in rows for words in needed)
            there = name != "POSTROUTING" or "KUBE-POSTROUTING" in self._nat.chains
            if there and (lacks or self._is_empty(name)):
                yield name

    def _stray(self) -> Iterator[str]:
        """Yield the chains that nothing leads to although the rows that should are in the dump."""
        stray = [name for name in self._ours if name not in self._led_to]
        if not self._nat.complete:
            # What would lead there may be before or after the fragment; what is within it may not.
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
            # For a Service without endpoints kube-proxy declares this chain only.
            refused = f"KUBE-SVC-{name.removeprefix(_LOCAL)}" not in self._nat.chains
            if not by_design or (self._is_empty(name) and not refused):
                yield name

    def unled(self) -> Iterator[str]:
        """Return the Services with a chain that nothing leads to."""
        found: set[str] = set()
        for name in self._stray():
            if name.startswith(names.SERVICE_PREFIXES):
                found |= self._named(name)
        return iter(sorted(found))

    def _unfilled(self) -> Iterator[str]:
        """Yield the empty chains that rules lead to."""
        for name in self._ours:
            # In a whole dump an empty chain of a Service has a diagnostic of its own.
            told = self._nat.complete and not name.startswith(names.ENDPOINT_PREFIX)
            if name in self._led_to and self._is_empty(name) and not told:
                yield name

    def _unmarked(self) -> Iterator[str]:
        """Yield the chains that mark no flows of a frontend where those of others do."""
        for chain in (names.SERVICES, names.NODE_PORTS):
            # Up to 1.21 a row for each frontend marks its flows, unless it has a local traffic
            # policy.
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
        # The first rows of a chain are there even if the dump is cut after them.
        rows = (self._first_rows(names.SERVICES) or "").splitlines()
        here = [m[1] for row in rows if _INSIDE in row and (m := _LED_TO.search(row))]
        known = {name: theirs for name in here if (theirs := self._first_rows(name)) is not None}
        marked_by = {name for name, theirs in known.items() if _MARKS_INSIDE.search(theirs)}
        if marked_by:
            yield from (name for name in known if name not in marked_by)

    def _undrawn(self) -> Iterator[str]:
        """Yield the chains in which affinity rules and draws are not for the same endpoints."""
        for name in self._ours:
            rows = self._rows(name) if name.startswith(names.SERVICE_PREFIXES) else None
            if rows is not None and _HELD in rows:
                to: dict[bool, set[str]] = {True: set(), False: set()}
                for row in rows.splitlines():
                    to[_HELD in row] |= set(_TO_ENDPOINT.findall(row))
                if to[True] != to[False]:
                    yield name

    def _without_pods(self) -> Iterator[str]:
        """Yield chains of a local policy that do not send pods' flows to all endpoints."""
        for name in self._ours if self._knows_pods() else ():
            rows = self._rows(name) if name.startswith(("KUBE-EXT-", _LOCAL)) else None
            if rows and _OF_LOCAL_POLICY in rows and _OF_PODS.search(rows) is None:
                yield name

    def _knows_pods(self) -> bool:
        """Return whether the rules name the network of pods."""
        return _PODS.search(_text(self._nat)) is not None

    def _named(self, name: str) -> set[str]:
        """Return the Services named in the comments of a chain's rows."""
        chain = self._nat.chains.get(name)
        return set() if chain is None else set(_named(chain))


def _has_rows(chain: Chain) -> bool:
    # What may follow where the dump ends counts as a rule.
    return bool(chain.rules.text if isinstance(chain.rules, RuleRows) else chain.rules)


def _named(chain: Chain) -> Iterator[str]:
    """Yield the Services named in the comments of a chain's rows."""
    if isinstance(chain.rules, RuleRows):
        for match in _NAMED.finditer(chain.rules.text):
            name, _ = names.name_and_kind(match[1] or match[2])
            yield name or (match[1] or match[2]).partition(" -> ")[0]


def _told(ruleset: Ruleset, betraying: list[str], *, whole: bool) -> Diagnostic:
    shown = ", ".join(sorted(betraying)[:_FEW])
    more = f" and {len(betraying) - _FEW} more" if betraying[_FEW:] else ""
    then = (
        "the rules or the dump have been edited, and are taken at face value"
        if whole
        else "which other rows are missing is not known, so shares are bounds"
    )
    return partial_warning(
        "lost-rows",
        f"rows of table nat are missing: {shown}{more} should have other rows, "
        f"or be jumped to; {then}",
        ruleset.file,
    )
