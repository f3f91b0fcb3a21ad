"""Copies of iptables chains without the dead endpoints.

Theory of operation
===================

kube-proxy sends a flow through a few chains of its own to the DNAT of an endpoint. A copy of these
chains under other names does just the same: who is admitted, what is masqueraded, which list keeps
a client's affinity. In the copy, rules that lead to dead endpoints are left out, and where they
were draws the others draw again, each with an equal share. Where no endpoint is left, the copy ends
nat's part with ACCEPT: the flow keeps its destination, and a rule of the filter table rejects it.

A copy jumps to no chain that kube-proxy deletes when Services change: it could not, while another
rule refers to it, and its whole sync would fail. The two chains that it never deletes,
KUBE-MARK-MASQ and KUBE-MARK-DROP, stay its own, so that its masquerade bit is the right one.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``; iptables(8).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.iptables.matches import MatchComment, MatchNot, MatchRandom, MatchUnknown
from analyzer.model.iptables.rules import LazyRules, Rule, Table
from analyzer.model.iptables.targets import Goto, Jump, TargetUnknown
from analyzer.model.value import replace
from analyzer.parsers.xt.rule import render_rule
from analyzer.repair.draws import thresholds
from analyzer.repair.patch import PREFIX, NotCopied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.iptables.matches import Match
    from analyzer.model.iptables.rules import Chain

#: Chains that kube-proxy, or the kubelet, keeps whatever happens to Services.
STABLE: Final = frozenset({names.MARK_MASQUERADE, names.MARK_DROP})
_OWN: Final = "KUBE-"
#: Chains, one within the other, beyond which nothing is kube-proxy's.
_DEEPEST: Final = 30
_JUMP: Final = re.compile(r" -[jg] (\S+)$")
_DESTINATION: Final = re.compile(r" --to-destination (\S+)")


def copied(chain: str) -> str:
    """Return the name of the copy of a kube-proxy chain, at most 28 characters long.

    Raises:
        NotCopied: it is none of kube-proxy's.
    """
    if not chain.startswith(_OWN):
        raise NotCopied(f"it jumps to chain {chain}, which is not kube-proxy's")
    return PREFIX + chain.removeprefix(_OWN)


def texts(chain: Chain) -> Sequence[str]:
    """Return the rows of a chain.

    Raises:
        NotCopied: not all of them are there.
    """
    found = chain.rules.texts() if isinstance(chain.rules, LazyRules) else None
    if found is None:
        if isinstance(chain.rules, LazyRules):
            raise NotCopied(f"chain {chain.name} is incomplete in the dump")
        found = [rule.raw for rule in chain.rules]
    return found


def target_in(row: str) -> str | None:
    """Return the chain or the target without options at the end of a row."""
    found = _JUMP.search(row)
    return None if found is None else found[1]


class Graph:
    """Which chains jump to which, and which of them lead to dead endpoints.

    Attributes:
        gone: chains of endpoints that are dead.
        leading: they, and all from which a rule leads there.

    Raises:
        NotCopied: the table is not whole.
    """

    def __init__(self, table: Table, dead: Collection[Endpoint]) -> None:
        ends: dict[str, set[str]] = {}
        self._jumps: dict[str, set[str]] = {}
        into: dict[str, set[str]] = {}
        for chain in table.chains.values():
            rows = texts(chain)
            found = {each[1] for row in rows if (each := _DESTINATION.search(row))}
            if found:
                ends[chain.name] = found
            jumps = {to for row in rows if (to := target_in(row)) in table.chains}
            self._jumps[chain.name] = {to for to in jumps if to is not None}
            for to in self._jumps[chain.name]:
                into.setdefault(to, set()).add(chain.name)
        dying = {str(each) for each in dead}
        self.endpoints = {name for name in ends if self._jumps[name] <= STABLE}
        #: Chains that send some flows to the dead and others elsewhere, all by themselves.
        self.mixed = {
            name
            for name, to in ends.items()
            if not to.isdisjoint(dying) and not (name in self.endpoints and to <= dying)
        }
        self.gone = {name for name in self.endpoints if ends[name] <= dying}
        self.leading: set[str] = set()
        waiting = [*self.gone, *self.mixed]
        while waiting:
            name = waiting.pop()
            if name not in self.leading:
                self.leading.add(name)
                waiting += into.get(name, ())


class Copies:
    """Copies of chains, made when a rule needs them.

    Attributes:
        rows: of each copy, by its name.
        empty: names of copies in which a flow may find no living endpoint.
    """

    def __init__(self, chains: Mapping[str, Chain], graph: Graph) -> None:
        self._chains = chains
        self._graph = graph
        self.rows: dict[str, list[str]] = {}
        self.empty: set[str] = set()
        self._open: list[str] = []

    def entered(self, entries: Sequence[Callable[[], str]]) -> list[str]:
        """Return the rows for all `entries`, whose copies are kept if all succeed.

        Raises:
            NotCopied: one of them leads to what cannot be copied.
        """
        rows, empty = dict(self.rows), set(self.empty)
        try:
            return [each() for each in entries]
        except NotCopied:
            self.rows, self.empty, self._open = rows, empty, []
            raise

    def row(self, chain: str, rule: Rule, to: str | None = None) -> str:
        """Return a rule as a row of `chain`, which jumps to the copy of its target.

        Raises:
            NotCopied: it holds what is not understood, or leads to what cannot be copied.
        """
        target = rule.target
        match target:
            case Jump(name) | Goto(name) if name not in STABLE:
                target = replace(target, chain=to or self.of(name))
            case TargetUnknown(text):
                raise NotCopied(f"rule {rule.location} is not understood: {text}")
            case _:
                pass
        kept = [each for each in rule.matches if not isinstance(each, MatchComment)]
        for each in kept:
            if isinstance(each.match if isinstance(each, MatchNot) else each, MatchUnknown):
                raise NotCopied(f"rule {rule.location} has a match that is not understood")
        row = render_rule(chain, replace(rule, matches=tuple(kept), target=target))
        if not row.isprintable():
            raise NotCopied(f"rule {rule.location} contains control characters")
        return row

    def of(self, chain: str) -> str:
        """Return the name of the copy of a chain, making it if needed.

        Raises:
            NotCopied: it cannot be copied.
        """
        name = copied(chain)
        if name in self.rows:
            return name
        if chain in self._open or len(self._open) > _DEEPEST:
            raise NotCopied(f"chain {chain} jumps to itself")
        if chain not in self._chains:
            raise NotCopied(f"the dump has no chain {chain}")
        if chain in self._graph.mixed:
            raise NotCopied(f"chain {chain} sends flows to several endpoints by itself")
        self._open.append(chain)
        # Only when all of it is there: a chain that is refused leaves nothing.
        rows = list(self._rows(chain, name))
        self._open.pop()
        self.rows[name] = rows
        return name

    def _rows(self, chain: str, name: str) -> Iterator[str]:
        rules = list(self._chains[chain].rules)
        at = 0
        while at < len(rules):
            drawn = list(self._draws(rules, at))
            if drawn and any(self._is_gone(each) for each in drawn):
                yield from self._anew(chain, name, drawn)
                if name in self.empty:
                    return  # nothing after an ACCEPT is evaluated
                at += len(drawn)
                continue
            rule = rules[at]
            at += 1
            if not self._is_gone(rule):
                yield self.row(name, rule)
                self._note(name, rule)

    def _note(self, name: str, rule: Rule) -> None:
        match rule.target:
            case Jump(to) | Goto(to) if to not in STABLE and copied(to) in self.empty:
                self.empty.add(name)
            case _:
                pass

    def _is_gone(self, rule: Rule) -> bool:
        match rule.target:
            case Jump(to) | Goto(to):
                return to in self._graph.gone
            case _:
                return False

    def _draws(self, rules: Sequence[Rule], at: int) -> Iterator[Rule]:
        """Yield the rules from `at` on that together draw an endpoint."""
        for rule in rules[at:]:
            match rule.target:
                case Jump(to) | Goto(to) if to in self._graph.endpoints:
                    pass
                case _:
                    return
            if not all(isinstance(each, (MatchComment, MatchRandom)) for each in rule.matches):
                return
            yield rule
            if not _is_drawn(rule):
                return

    def _anew(self, chain: str, name: str, drawn: Sequence[Rule]) -> Iterator[str]:
        """Yield draws among the living, or the end of nat's part where none is left.

        Raises:
            NotCopied: the draws leave flows over, so that what they mean is not known.
        """
        if _is_drawn(drawn[-1]):
            raise NotCopied(
                f"the draws of chain {chain} leave some flows undrawn: it is incomplete"
            )
        living = [each for each in drawn if not self._is_gone(each)]
        if not living:
            self.empty.add(name)
            yield f"-A {name} -j ACCEPT"
            return
        for rule, threshold in zip(living, thresholds(len(living)), strict=True):
            match: tuple[Match, ...] = () if threshold is None else (MatchRandom(threshold),)
            yield self.row(name, replace(rule, matches=match))


def _is_drawn(rule: Rule) -> bool:
    return any(isinstance(each, MatchRandom) for each in rule.matches)
