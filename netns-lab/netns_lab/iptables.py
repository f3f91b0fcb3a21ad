"""The node's rules: put into a namespace, and their counters read back.

What is loaded is rendered from what was understood, never the dump's own text: a line of a dump
could carry `--modprobe=COMMAND`, which iptables would run.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, ClassVar, Final

from analyzer.model.addresses import Address
from analyzer.model.diagnostics import partial_warning
from analyzer.model.iptables.matches import MatchNfacct, MatchNot
from analyzer.model.iptables.rules import Chain, Rule, Ruleset, Table
from analyzer.parsers.iptables_save import parse
from analyzer.reports.phrases import listed
from analyzer.semantics.base_chains import Rules
from netns_lab.backend import Backend, SocketAddress, not_loaded
from netns_lab.command import lines_of, run
from netns_lab.errors import LabError
from netns_lab.ipsets import make_sets
from netns_lab.nft import Nft
from netns_lab.nft_counters import RuleCounters
from netns_lab.python_iptables import quickly_loaded
from netns_lab.recent import RecentLists
from netns_lab.restoring import RefusedError, restore
from netns_lab.wanted import WantedRules, check_same
from netns_lab.xt_entries import Entries

#: Rules with a DNAT up to which python-iptables is asked: for 1,000 it takes half a second.
_FEW_DESTINATIONS: Final = 1000
_OTHER_VARIANT: Final = {"legacy": "nft", "nft": "legacy"}
#: Packets by rule: (chain, index in the chain from 0).
_RuleCounters = Mapping[tuple[str, int], int]
#: A rule as ``-c`` prints it: packets and chain.
_COUNTS: Final = re.compile(r" \[\d+:\d+\]$")
_COUNTED: Final = re.compile(r"\[(\d+):\d+\] -A (\S+)")


class Iptables(Backend):
    """An iptables-save dump, restored."""

    #: Of the programs: ``iptables-VARIANT-restore``.
    variant: ClassVar[str]
    #: Of the rules: ``ip`` or ``ip6``.
    family: str
    ruleset: Ruleset

    def load(self, ruleset: Rules) -> None:
        """Restore all tables of the dump."""
        match ruleset:
            case Ruleset():
                self.family = ruleset.family
                self.ruleset = ruleset
                self._objects: set[str] = set()
                self._sets: set[str] = set()
                self._restore(ruleset)
            case _:
                raise LabError(
                    f"{ruleset.file}: iptables cannot load an nft ruleset; leave out --backend"
                )

    def _restore(self, ruleset: Ruleset) -> None:
        for table in ruleset.tables.values():
            if not table.complete:
                raise LabError(
                    f"{ruleset.file}: table {table.name} is not complete in the dump, so what is "
                    "missing cannot be loaded; take the dump again"
                )
        wanted = WantedRules(ruleset, lenient=self.lenient)
        self._make_room(wanted)
        while True:
            try:
                restore(self.namespace, f"{self._program}-restore", wanted.text)
                break
            except RefusedError as error:
                # The line that is refused is named; what is behind it was not tried yet.
                if error.line is None or not self.lenient:
                    raise
                line = self._refused(wanted, error.line)
                if line is None or not wanted.leave_out(line, _last_line(str(error))):
                    raise
        self._note(wanted)
        self._adopt(wanted)

    def _refused(self, wanted: WantedRules, line: int) -> int | None:
        """Return the line of the first rule that is refused, of a line that is: it may be COMMIT.

        iptables-legacy gives the kernel a table as a whole, which does not say what is wrong.
        """
        lines = wanted.text.split("\n")
        if lines[line - 1] != "COMMIT":
            return line
        begins = max(at for at in range(line) if lines[at].startswith("*"))
        rules = [at for at in range(begins, line - 1) if lines[at].startswith("-A ")]

        def is_taken(number: int) -> bool:
            kept = [*lines[begins : rules[0]], *(lines[at] for at in rules[:number]), "COMMIT", ""]
            words = [f"{self._program}-restore"]
            return run(self.namespace, words, "\n".join(kept), check=False).returncode == 0

        if not rules or not is_taken(0):
            return None
        # All are not taken: that is how this began.
        taken, refused = 0, len(rules)
        while refused - taken > 1:
            middle = (taken + refused) // 2
            taken, refused = (middle, refused) if is_taken(middle) else (taken, middle)
        return rules[taken] + 1

    def _make_room(self, wanted: WantedRules) -> None:
        """Make what rules name and restoring them does not make: objects, and sets."""
        for name in dict.fromkeys(filter(None, map(_accounting_object, wanted.special))):
            if name not in self._objects:
                run(self.namespace, ["nfacct", "add", name])
                self._objects.add(name)
        make_sets(self.namespace, wanted.ruleset, wanted.special, self._sets)

    def _note(self, wanted: WantedRules) -> None:
        file = wanted.ruleset.file
        for rule, why in wanted.left_out:
            self.notes.append(not_loaded(rule.location, why))
        for table, names in wanted.missing.items():
            text = (
                f"table {table} has no chain {listed(names)}, to which rules jump: created, empty"
            )
            self.notes.append(partial_warning("missing-chain", text, file))

    def replacement(self, ruleset: Rules) -> tuple[list[str], str]:
        """Return the program, and its input, that puts other rules in place of those there.

        Each table is swapped at once, one after the other. What they name besides is made now.
        """
        match ruleset:
            case Ruleset(family=self.family):
                wanted = WantedRules(ruleset, lenient=self.lenient)
            case _:
                raise LabError(
                    f"{ruleset.file}: it is not of the same kind as the rules that it replaces"
                )
        self._make_room(wanted)
        self._note(wanted)
        gone = [t for t in self.ruleset.tables.values() if t.name not in ruleset.tables]
        emptied = "".join(
            "".join(
                [f"*{t.name}\n", *(f":{c.name} ACCEPT [0:0]\n" for c in _built_in(t)), "COMMIT\n"]
            )
            for t in gone
        )
        self.ruleset = ruleset
        return [f"{self._program}-restore"], wanted.text + emptied

    def listing(self) -> list[str]:
        """Return the program that prints the rules as they are."""
        return [f"{self._program}-save"]

    def check(self, ruleset: Rules, listing: str) -> None:
        """See that what was printed is `ruleset`."""
        assert isinstance(ruleset, Ruleset)
        wanted = WantedRules(ruleset, lenient=self.lenient)
        check_same(wanted, parse(listing, "iptables-save"))

    def adopt(self, ruleset: Rules) -> None:
        """Go by the rules that are there, which must be just these.

        Raises:
            LabError: they are others, or not understood.
        """
        assert isinstance(ruleset, Ruleset)
        self._forget_counters()
        self._adopt(WantedRules(ruleset, lenient=self.lenient))

    def _adopt(self, wanted: WantedRules) -> None:
        text = run(self.namespace, [f"{self._program}-save"]).stdout
        check_same(wanted, parse(text, "iptables-save"))
        self._endings = wanted.endings()
        self._ending_tables: dict[str, Entries | RuleCounters] = {}
        self._destinations = wanted.destinations
        self._chains = {chain for chain, _ in self._destinations}

    def _forget_counters(self) -> None:
        """Forget where counters stand: the rules are others."""
        self._so_far.clear()
        self.__dict__.pop("_counted_rules", None)

    def change(self, commands: str) -> bool:
        """Run commands by iptables-restore ``--noflush``; return whether it accepted them all."""
        return run(self.namespace, self._changing, commands, check=False).returncode == 0

    def saved(self) -> str:
        """Return what iptables-save prints, without comments and counters."""
        lines = run(self.namespace, [f"{self._program}-save"]).stdout.split("\n")
        return "\n".join(_COUNTS.sub("", each) for each in lines if not each.startswith("#"))

    def resync(self, ruleset: Rules, without: Collection[str] = ()) -> bool:
        """Rewrite kube-proxy's chains as its full sync does, and delete those in `without`."""
        return self.change(self.sync(ruleset, without)[1])

    def sync(self, ruleset: Rules, without: Collection[str] = ()) -> tuple[list[str], str]:
        """Return the program, and its input, of a full sync of kube-proxy."""
        assert isinstance(ruleset, Ruleset)
        wanted = WantedRules(ruleset, lenient=self.lenient)
        lines: list[str] = []
        for name in ("filter", "nat"):
            table = ruleset.tables.get(name)
            own = [] if table is None else [c for c in table.chains if c.startswith("KUBE-")]
            lines += [f"*{name}", *(f":{each} - [0:0]" for each in own)]
            gone = [each for each in own if each in without]
            rows = [r for c in own if c not in gone for r in wanted.rows[name, c]]
            lines += [r for r in rows if r.rpartition(" ")[2] not in gone]
            lines += [f"-X {each}" for each in gone]
            lines.append("COMMIT")
        return self._changing, "\n".join(lines) + "\n"

    @property
    def _changing(self) -> list[str]:
        return [f"{self._program}-restore", "-w", "5", "--noflush"]

    @property
    def _program(self) -> str:
        return f"{'iptables' if self.family == 'ip' else 'ip6tables'}-{self.variant}"

    def _newly_drawn(self) -> Counter[SocketAddress]:
        found: Counter[SocketAddress] = Counter()
        for where, packets in self._counted_rules.new():
            sockaddr = self._destinations[where]
            if sockaddr is not None:
                found[sockaddr] += packets
        return found

    def endings(self) -> Counter[tuple[str, str]] | None:
        """Return what the rules that drop or reject have counted, by table and text."""
        found: Counter[tuple[str, str]] = Counter()
        for table, rules in self._endings.items():
            if table not in self._ending_tables:
                self._ending_tables[table] = self._table(table, rules)
            for rule, packets in self._ending_tables[table].packets().items():
                found[table, rules[rule]] += packets
        return found

    def forget_clients(self) -> None:
        """Empty the lists of xt_recent."""
        self._recent.flush()

    def forgetting(self, clients: Sequence[Address]) -> AbstractContextManager[Callable[[], None]]:
        """Return what empties the lists, without looking each time which there are."""
        del clients  # all are forgotten each time
        return nullcontext(self._recent.flushing())

    @cached_property
    def _recent(self) -> RecentLists:
        return RecentLists(self.namespace, _OTHER_VARIANT[self.variant])

    @abstractmethod
    def _table(
        self, name: str, rules: Container[tuple[str, int]] | None = None
    ) -> Entries | RuleCounters:
        """Return what reads the counters of a table, or of some of its rules."""

    @cached_property
    def _counted_rules(self) -> Entries | RuleCounters:
        return self._table("nat", self._destinations)

    def _rule_counters(self) -> _RuleCounters:
        """Return the packets that rules with a DNAT have counted."""
        return self._counted_rules.packets()


class LegacyIptables(Iptables):
    """By iptables-legacy; counters as the kernel gives them to iptables."""

    variant = "legacy"
    _family_read: ClassVar[str | None] = None

    def _table(
        self, name: str, rules: Container[tuple[str, int]] | None = None
    ) -> Entries | RuleCounters:
        return Entries(self.namespace, self.family, name, rules)

    def cross_check(self) -> None:
        """Read the counters by python-iptables too, or as iptables-legacy-save prints them.

        python-iptables looks beside the interpreter when it is loaded, which an ordinary user may
        not: for example in another user's home. For many rules it takes seconds.
        """
        counted = self._rule_counters()
        few = len(self._destinations) < _FEW_DESTINATIONS
        other = self._by_python_iptables() if few else None
        name = "python-iptables" if other is not None else "iptables-legacy-save"
        if other is None:
            other = self._saved_counters()
        _check_counters(self._destinations, counted, other, name)

    def _by_python_iptables(self) -> _RuleCounters | None:
        # In one process it finds the extensions of one family, the first that it is asked for.
        if LegacyIptables._family_read not in {None, self.family}:
            return None
        LegacyIptables._family_read = self.family
        with self.namespace, quickly_loaded():
            try:
                import iptc  # it opens its socket to the kernel when it is imported
            except (ImportError, OSError):
                return None
            tables = iptc.Table if self.family == "ip" else iptc.Table6
            table = tables(tables.NAT)
            table.refresh()
            return {
                (chain.name, at): rule.get_counters()[0]
                for chain in table.chains
                # It decodes each match of the rules that it is asked for.
                if chain.name in self._chains
                for at, rule in enumerate(chain.rules)
            }

    def _saved_counters(self) -> _RuleCounters:
        command = [f"{self._program}-save", "-c", "-t", "nat"]
        counters: dict[tuple[str, int], int] = {}
        position: Counter[str] = Counter()
        for line in lines_of(self.namespace, command):
            found = _COUNTED.match(line)
            if found is not None and found[2] in self._chains:
                counters[found[2], position[found[2]]] = int(found[1])
                position[found[2]] += 1
        return counters


class NftIptables(Iptables):
    """By iptables-nft; counters by netlink."""

    variant = "nft"

    def _table(
        self, name: str, rules: Container[tuple[str, int]] | None = None
    ) -> Entries | RuleCounters:
        return RuleCounters(self.namespace, self.family, name, rules)

    def cross_check(self) -> None:
        """Read the counters by libnftables too."""
        counted = self._rule_counters()
        other: dict[tuple[str, int], int] = {}
        position: Counter[str] = Counter()
        for item in Nft(self.namespace).listed(f"table {self.family} nat"):
            rule = item.get("rule")
            if rule is not None:
                chain = rule["chain"]
                other[chain, position[chain]] = sum(map(_packets, rule["expr"]))
                position[chain] += 1
        _check_counters(self._destinations, counted, other, "libnftables")


def _check_counters(
    rules: Iterable[tuple[str, int]], counted: _RuleCounters, other: _RuleCounters, name: str
) -> None:
    wrong = sum(counted[rule] != other.get(rule) for rule in rules)
    if wrong:
        raise LabError(f"the counters of {wrong} rules differ from those that {name} reads")


def _built_in(table: Table) -> list[Chain]:
    return [each for each in table.chains.values() if each.policy is not None]


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1].strip()


def _accounting_object(rule: Rule) -> str | None:
    for match in rule.matches:
        inner = match.match if isinstance(match, MatchNot) else match
        if isinstance(inner, MatchNfacct):
            return inner.name
    return None


def _packets(expression: dict[str, Any]) -> int:
    counter = expression.get("counter")
    return int(counter["packets"]) if isinstance(counter, dict) else 0
