"""Random rulesets of nft and packets: does the kernel go only the ways that the tree allows?

A program: it leaves the host's network. Each ruleset is loaded, read back from nft's text and from
its JSON and walked by the analyzer; packets are sent one by one while the kernel tells which rules
each matched, and sockets all around the node see where it comes out. Rules and end must be those of
one way through the tree; where the tree has nothing unknown in it, the counts of its ways must
pass an exact binomial test.

    python -m tests.support.lab.nft_check --rulesets 200
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any, Final, TypeAlias, assert_never

from analyzer.errors import InputError
from analyzer.failure.binomial import binomial_p_value
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.model.addresses import Address
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.iptables.targets import Drop, Reject
from analyzer.model.nft.ruleset import NftRuleset, Rule
from analyzer.model.packet import Packet
from analyzer.parsers.iptables_save import parse, render
from analyzer.semantics.tree import (
    BySource,
    Chance,
    Delivered,
    Either,
    Leaf,
    PolicyDrop,
    Tree,
    Unresolved,
)
from netns_lab.command import run
from netns_lab.errors import LabError
from netns_lab.namespace import leave_host
from netns_lab.trace import TRACING_TABLE
from tests.support.lab.findings import Findings
from tests.support.lab.nft_node import NftNode, Path, Rules, Went
from tests.support.lab.nodes import ADDRESSES6, SOURCES, Asked
from tests.support.lab.random_nft import RandomNft
from tests.support.lab.random_rules import ADDRESSES, PORTS, RandomRules

_QUESTIONS: Final = 3
#: Ways of one tree that are looked at; beyond, the question is left out, and counted.
_MOST_WAYS: Final = 20_000

_SET: Final = re.compile(r"^\t(?:set|map) (\w+) \{", re.MULTILINE)

End: TypeAlias = tuple[str, str | None, int | None, str | None]


@dataclass(frozen=True)
class Way:
    """One way through a tree.

    Attributes:
        chance: None where something on it is not known.
    """

    path: Path
    leaf: Leaf
    chance: Fraction | None

    def __str__(self) -> str:
        met = " ".join(f"{chain}/{number}" for _, _, chain, number in self.path)
        return f"{met} {self.leaf.outcome} {end_of(self.leaf)}"


class TooManyWaysError(Exception):
    """A tree has more ways than are looked at."""


def ways(tree: Tree, rules: Rules) -> list[Way]:
    """Return all ways through a tree.

    Raises:
        TooManyWaysError: there are more than can be looked at.
    """
    found = []
    for way in _ways(tree, rules, (), Fraction(1)):
        found.append(way)
        if len(found) > _MOST_WAYS:
            raise TooManyWaysError
    return found


def _ways(tree: Tree, rules: Rules, before: Path, chance: Fraction | None) -> Iterator[Way]:
    own = [rule for rule in tree.rules if isinstance(rule, Rule)]
    path = (*before, *rules.path(own))
    match tree:
        case Leaf():
            yield Way(path, tree, chance)
        case Chance(branches):
            for weight, child in branches:
                part = None if chance is None else chance * weight.as_fraction()
                yield from _ways(child, rules, path, part)
        case Either(_, branches):
            for child in branches:
                yield from _ways(child, rules, path, None)
        case BySource():
            raise AssertionError(tree)
        case _:
            assert_never(tree)


def end_of(leaf: Leaf) -> End:
    """Return how a way ends, as far as a packet can show it."""
    packet = leaf.packet
    match leaf.outcome:
        case Drop() | Reject() | PolicyDrop():
            return "lost", None, None, None
        case Delivered(here):
            to = None if packet.destination is None else str(packet.destination)
            source = None if packet.source is None else str(packet.source)
            return "here" if here else "out", to, packet.destination_port, source
        case _:
            return "anything", None, None, None


def _shown(end: End, asked: Asked) -> End:
    """Return an end as a packet shows it: masquerade may choose the address that it has."""
    kind, to, port, source = end
    unchanged = str(asked.source) if asked.device is None and kind in {"here", "out"} else None
    return kind, to, port, source or unchanged


def fits(way: Way, went: Went, path: Path, asked: Asked, *, beside: bool) -> bool:
    """Tell whether a packet may have gone that way; `beside`: what iptables drops nobody tells."""
    leaf = way.leaf
    if isinstance(leaf.outcome, Unresolved):
        return path[: len(way.path)] == way.path
    if path != way.path:
        return False
    seen = went.seen
    kind, to, port, source = end_of(leaf)
    if kind == "lost":
        return (went.lost or beside) and seen is None
    if seen is None or (seen.device is None) != (kind == "here"):
        return False
    masqueraded = leaf.packet.masqueraded
    same = seen.source == asked.source and seen.source_port is None
    return (
        to in {None, str(seen.destination)}
        and port in {None, seen.port}
        and source in {None, str(seen.source)}
        # Masqueraded to the very address that it had: it shows nowhere.
        and (masqueraded is not False or same)
        and leaf.packet.out_interface in {None, "", seen.device}
    )


@dataclass
class NftFindings(Findings):
    """What a run of nft: also what it took, and what the packets met."""

    offered: int = 0
    taken: int = 0
    questions: int = 0
    too_many: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    statements: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)


class Check:
    """Holds rulesets against the kernel."""

    def __init__(self, random: Random, packets: int) -> None:
        self._random = random
        self._packets = packets
        self._node = NftNode()
        #: What iptables-legacy holds beside the rules of nft.
        self._beside: list[Ruleset] = []
        self.findings = NftFindings()

    def beside(self, text: str) -> None:
        """Let iptables-legacy load a ruleset beside those to come.

        Its rules are in no path: of those the kernel tells by another way, in an order of its own.
        """
        namespace = self._node.namespace
        run(namespace, ["iptables-legacy-restore"], text)
        self._beside = [parse(run(namespace, ["iptables-legacy-save"]).stdout, "saved")]

    def ruleset(self, frames: Sequence[str], rules: Sequence[str]) -> None:
        """Load one ruleset, and send packets through it."""
        found = self.findings
        found.offered += len(rules)
        taken = self._node.load(frames, rules)
        found.taken += len(taken)
        found.rulesets += 1
        read = self._node.listings()
        for held in read[0].tables.values():
            for chain in held.chains.values():
                for rule in chain.rules:
                    found.statements.update(type(each).__name__ for each in rule.statements)
        for asked in self._questions(read[0]):
            found.questions += 1
            try:
                fault = self._fault(asked, *read)
            except TooManyWaysError:
                found.too_many += 1
                continue
            if fault is not None:
                found.faults.append(self._shrunk([*frames, *taken], asked) or fault)
                return

    def _questions(self, ruleset: NftRuleset) -> Iterator[Asked]:
        random = self._random
        families = {family for family, _ in ruleset.tables}
        versions = [4] * bool(families & {"ip", "inet"}) + [6] * bool(families & {"ip6", "inet"})
        for _ in range(_QUESTIONS):
            version = random.choice(versions)
            device = random.choice(("eth0", "pod0", None))
            addresses: Sequence[Address] = ADDRESSES if version == 4 else ADDRESSES6
            protocol = random.choice(("udp", "tcp"))
            to, port = random.choice(addresses), random.choice(PORTS)
            yield Asked(device, SOURCES[version][device], to, port, protocol)

    def _tree(self, asked: Asked, ruleset: NftRuleset) -> Tree:
        packet = Packet(
            protocol=asked.protocol,
            source=asked.source,
            destination=asked.destination,
            destination_port=asked.port,
            in_interface=asked.device or "",
        )
        four = asked.source.version == 4
        routes = self._node.routes if four else self._node.routes6
        question = Question(packet=packet, addresses=self._node.addresses, routes=routes)
        return trace([*self._beside, ruleset], question, "ip" if four else "ip6").tree

    def _fault(
        self, asked: Asked, text: NftRuleset, listed: NftRuleset, times: int = 1
    ) -> str | None:
        """Return how the kernel and the tree disagree, if one packet of so many shows it."""
        found = self.findings
        family = "ip" if asked.source.version == 4 else "ip6"
        rules = Rules(text, family)
        tree = ways(self._tree(asked, text), rules)
        beside = bool(self._beside)
        counts: Counter[tuple[Path, End]] = Counter()
        for _ in range(self._packets * times):
            went = self._node.send(asked)
            path = rules.leading_only(went.path)
            fitting = [way for way in tree if fits(way, went, path, asked, beside=beside)]
            if not fitting:  # the kernel may have put off the rest of its work
                went = self._node.late(went)
                path = rules.leading_only(went.path)
                fitting = [way for way in tree if fits(way, went, path, asked, beside=beside)]
            found.packets += 1
            found.matched += len(went.path)
            found.met.update(each.verdict for each in went.told)
            if not fitting:
                return self._disagreement(asked, f"the kernel:\n{went}", tree)
            # A source that the kernel chose may be any, so also the packet's own.
            shown = went.seen is not None and went.seen.source != asked.source
            end = end_of(
                min(fitting, key=lambda way: way.leaf.packet.masqueraded is not shown).leaf
            )
            found.ends[end[0]] += 1
            counts[path, end] += 1
        if times == 1 and all(way.chance is not None for way in tree):
            found.exact += 1
            self._count(asked, tree, counts)
        of_json = ways(self._tree(asked, listed), Rules(listed, family))
        if not _alike(_summed(tree), _summed(of_json)):
            said = "\n".join(map(str, _summed(of_json).items()))
            return self._disagreement(asked, f"of JSON:\n{said}", tree)
        return None

    def _count(self, asked: Asked, tree: list[Way], counts: Counter[tuple[Path, End]]) -> None:
        loaded = self._loaded()
        expected: dict[tuple[Path, End], Fraction] = {}
        seen: Counter[tuple[Path, End]] = Counter()
        for (path, end), chance in _summed(tree).items():
            assert chance is not None
            key = path, _shown(end, asked)
            expected[key] = expected.get(key, Fraction(0)) + chance
            seen[key] += counts[path, end]
        for key, chance in expected.items():
            value = binomial_p_value(seen[key], self._packets, float(chance))
            says = f"{asked}: {key} {seen[key]} of {chance}\n{loaded}"
            self.findings.p_values.append((value, says))

    def _shrunk(self, kept: list[str], asked: Asked) -> str | None:
        """Return the disagreement with as little as shows it; None: it does not show again."""
        said = None
        for each in reversed(kept[:]):
            fewer = [other for other in kept if other is not each]
            try:
                self._node.load(fewer)
                fault = self._fault(asked, *self._node.listings(), times=4)
            except (TooManyWaysError, LabError, InputError):
                continue  # without it the rest is no ruleset
            if fault is not None:
                kept, said = fewer, fault
        return said

    def _disagreement(self, asked: Asked, other: str, tree: list[Way]) -> str:
        said = "\n".join(f"  {way}" for way in tree[:8])
        return f"{asked}\n{other}\nthe tree ({len(tree)}):\n{said}\n{self._loaded()}"

    def _loaded(self) -> str:
        """Return the rules, without the sets that none of them names."""
        listed = self._node.nft.run("list ruleset").partition(f"table inet {TRACING_TABLE}")[0]
        found = []
        for table in re.split(r"^(?=table )", listed, flags=re.MULTILINE)[1:]:
            head, _, rest = table.partition("\n")
            blocks = rest.rpartition("}")[0].split("\n\n")
            named = set(re.findall(r"@(\w+)", table))
            kept = (
                block
                for block in blocks
                if (held := _SET.search(block)) is None or held[1] in named
            )
            found.append("\n".join([head, *kept, "}"]))
        return "\n".join([*found, *map(render, self._beside)])


def _alike(text: dict[tuple[Path, End], Any], listed: dict[tuple[Path, End], Any]) -> bool:
    """Tell whether JSON says what text says: it does not tell which sets packets may fill."""
    unknown = any(chance is None for chance in text.values())
    return set(listed) <= set(text) if unknown else text == listed


def _summed(tree: list[Way]) -> dict[tuple[Path, End], Fraction | None]:
    found: dict[tuple[Path, End], Fraction | None] = {}
    for way in tree:
        key = way.path, end_of(way.leaf)
        before = found.get(key, Fraction(0))
        found[key] = None if before is None or way.chance is None else before + way.chance
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Run the check and print what it found as JSON; 1: the kernel disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rulesets", type=int, default=200)
    parser.add_argument("--packets", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--beside", action="store_true", help="rules of iptables-legacy too")
    parser.add_argument(
        "--until-fault", action="store_true", help="end with the first disagreement"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="then begin no more")
    options = parser.parse_args(words)
    leave_host()
    random = Random(options.seed)  # the same run for the same seed
    made, beside = RandomNft(random), RandomRules(random)
    check = Check(random, options.packets)
    until = time.monotonic() + options.seconds
    for done in range(options.rulesets):
        if time.monotonic() > until or (options.until_fault and check.findings.disagreements):
            break
        held = made.ruleset()
        if options.beside:
            check.beside(re.sub(r".* -j TRACE\n", "", beside.text()))
        check.ruleset(held.frames, held.rules)
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done + 1} of {options.rulesets} rulesets")
    found = check.findings
    json.dump(
        {
            "rulesets": found.rulesets,
            "rules": found.taken,
            "refused": found.offered - found.taken,
            "packets": found.packets,
            "matched_rules": found.matched,
            "questions": found.questions,
            "questions_of_nothing_unknown": found.exact,
            "questions_left_out": found.too_many,
            "counts_tested": len(found.p_values),
            "least_p_value": min((v for v, _ in found.p_values), default=1.0),
            "ends": found.ends,
            "verdicts": found.met,
            "statements": found.statements,
            "disagreements": found.disagreements,
        },
        sys.stdout,
        indent=1,
    )
    return int(found.disagreements != [])


if __name__ == "__main__":
    sys.exit(main())
