"""Random rulesets and packets: does the kernel go only the ways that the tree allows, as often?

A program: it leaves the host's network. For each ruleset the rules are restored and saved again
by the real iptables, what is saved is read and walked by the analyzer, and packets are sent one
by one while the kernel tells which rules each of them matched. Every such path must be one of the
tree's; where the tree has nothing unknown in it, their counts must pass an exact binomial test.

    python -m tests.support.lab.kernel_check --rulesets 200 --backend legacy [--foreign]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Final

from analyzer.failure.binomial import binomial_p_value
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.packet import Packet
from analyzer.parsers.iptables_save import parse
from analyzer.semantics.tree import AnyRule, BySource, Chance, Either, Leaf, Tree
from netns_lab.command import run
from netns_lab.namespace import leave_host
from netns_lab.trace import LegacyTrace, Met, NftTrace
from tests.support.lab.findings import Findings
from tests.support.lab.foreign_rules import ForeignRules
from tests.support.lab.left_out import LeftOut
from tests.support.lab.nodes import SOURCES, Asked, Wired
from tests.support.lab.random_rules import ADDRESSES, PORTS, RandomRules

#: Seconds in which a busy kernel takes up what it has put off.
_LATE: Final = 0.05
#: What says where a packet goes on; others only change it, and show in what is matched later.
_LEADING: Final = (
    t.Jump | t.Goto | t.Accept | t.Drop | t.Return | t.Reject | t.Dnat | t.Redirect | t.Masquerade
)


class Node(Wired):
    """A node whose rules iptables loads."""

    def __init__(self, backend: str) -> None:
        super().__init__()
        self.backend = backend
        self._trace = (
            LegacyTrace(self.namespace) if backend == "legacy" else NftTrace(self.namespace)
        )

    def load(self, text: str) -> Ruleset:
        """Put rules in place and return them as they are saved again."""
        run(self.namespace, [f"iptables-{self.backend}-restore"], text)
        saved = run(self.namespace, [f"iptables-{self.backend}-save"]).stdout
        if isinstance(self._trace, NftTrace):
            self._trace.learn()
        self.met()
        return parse(saved, "saved")

    def send(self, asked: Asked) -> list[Met]:
        """Send the first packet of a new flow and return the rules that it matched."""
        self.emit(asked)
        return self.met()

    def met(self) -> list[Met]:
        """Return the rules that were matched since this was asked last."""
        match self._trace:
            case LegacyTrace():
                return self._trace.met()
            case NftTrace():
                told = self._trace.met()
                return [(e.table, e.chain, e.number) for e in told if e.number is not None]


Path = tuple[Met, ...]
#: The rules that a packet may meet behind a jump until it is back in the jump's chain.
Excursions = Mapping[Met, Sequence[Path]]


@dataclass
class Numbers:
    """Where each rule stands: its number in its chain, and whether it leads anywhere."""

    ruleset: Ruleset
    by_line: dict[int, Met] = field(default_factory=dict)
    leading: set[Met] = field(default_factory=set)

    def __post_init__(self) -> None:
        for table in self.ruleset.tables.values():
            for chain in table.chains.values():
                for number, rule in enumerate(chain.rules, 1):
                    met = (table.name, chain.name, number)
                    self.by_line[rule.location.line] = met
                    if isinstance(rule.target, _LEADING):
                        self.leading.add(met)

    def path(self, rules: Sequence[AnyRule]) -> Path:
        met = [self.by_line[rule.location.line] for rule in rules]
        return self.leading_only(met)

    def leading_only(self, met: Sequence[Met]) -> Path:
        return tuple(each for each in met if each in self.leading)

    def excursions(self, left_out: LeftOut) -> Excursions:
        """Return what the kernel may meet between a jump that the tree leaves out and its rest."""
        return {
            self.by_line[line]: [self.path(rules) for rules in met]
            for line, met in left_out.jumps.items()
        }


def fitting(tree: Tree, path: Path, numbers: Numbers, excursions: Excursions) -> Path | None:
    """Return the way through the tree that has just these rules; None: there is none."""
    own = numbers.path(tree.rules)
    for rest in dict.fromkeys(_behind(own, path, excursions)):
        match tree:
            case Leaf():
                if not rest:
                    return own
            case Chance() | Either():
                children = [each[1] if isinstance(each, tuple) else each for each in tree.branches]
                for child in children:
                    found = fitting(child, rest, numbers, excursions)
                    if found is not None:
                        return own + found
            case BySource():
                raise AssertionError(tree)
    return None


def _behind(own: Path, path: Path, excursions: Excursions) -> Iterator[Path]:
    """Give what may be left of a path behind the rules of a node of the tree."""
    for rest in dict.fromkeys(_onwards(path, excursions)):
        if not own:
            yield rest
        elif rest[:1] == own[:1]:
            yield from _behind(own[1:], rest[1:], excursions)


def _onwards(path: Path, excursions: Excursions) -> Iterator[Path]:
    """Give the path, and what is left of it behind each excursion with which it may begin."""
    yield path
    for met in excursions.get(path[0], ()) if path else ():
        for rest in _behind(met, path[1:], excursions):
            yield from _onwards(rest, excursions)


def chances(tree: Tree, numbers: Numbers) -> dict[Path, Fraction] | None:
    """Return the probability of each path; None where something is not known."""
    own = numbers.path(tree.rules)
    match tree:
        case Leaf():
            return {own: Fraction(1)}
        case Either():
            return None
        case BySource():
            raise AssertionError(tree)
        case Chance(branches):
            found: dict[Path, Fraction] = {}
            for weight, child in branches:
                inner = chances(child, numbers)
                if inner is None:
                    return None
                for path, chance in inner.items():
                    whole = own + path
                    found[whole] = found.get(whole, Fraction(0)) + chance * weight.as_fraction()
            return found


@dataclass
class IptablesFindings(Findings):
    """What a run of iptables came to: also the targets of its rules.

    Attributes:
        excursions: packets that met jumps which their tree leaves out.
    """

    excursions: int = 0
    targets: Counter[str] = field(default_factory=Counter)


def check(
    node: Node,
    text: str,
    questions: Iterable[Asked],
    packets: int,
    findings: IptablesFindings,
) -> None:
    """Hold one ruleset against the kernel."""
    ruleset = node.load(text)
    numbers = Numbers(ruleset)
    findings.rulesets += 1
    for asked in questions:
        left_out = LeftOut()
        with left_out.noted():
            found = trace([ruleset], _question(node, asked), ruleset.family)
        excursions = numbers.excursions(left_out)
        expected = chances(found.tree, numbers)
        findings.exact += expected is not None
        counts: Counter[Path] = Counter()
        for _ in range(packets // 2):
            met = node.send(asked)
            findings.packets += 1
            findings.matched += len(met)
            path = fitting(found.tree, numbers.leading_only(met), numbers, excursions)
            if path is None:
                time.sleep(_LATE)  # the kernel may have put off the rest of its work
                met += node.met()
                path = fitting(found.tree, numbers.leading_only(met), numbers, excursions)
            if path is None:
                findings.faults.append(_fault(text, asked, met))
                break
            findings.excursions += path != numbers.leading_only(met)
            counts[path] += 1
        else:
            for path, chance in (expected or {}).items():
                value = binomial_p_value(counts[path], packets // 2, float(chance))
                findings.p_values.append((value, f"{asked}: {path} {counts[path]} of {chance}"))
    for table in ruleset.tables.values():
        for chain in table.chains.values():
            findings.targets.update(type(rule.target).__name__ for rule in chain.rules)


def _questions(random: Random) -> Iterator[Asked]:
    for _ in range(2):
        device = random.choice(("eth0", "pod0", None))
        source = SOURCES[4][device]
        yield Asked(device, source, random.choice(ADDRESSES), random.choice(PORTS))


def _question(node: Node, asked: Asked) -> Question:
    packet = Packet(
        protocol=asked.protocol,
        source=asked.source,
        destination=asked.destination,
        destination_port=asked.port,
        in_interface=asked.device or "",
    )
    return Question(packet=packet, addresses=node.addresses, routes=node.routes)


def _fault(text: str, asked: Asked, met: Sequence[Met]) -> str:
    told = "\n".join(f"  {table} {chain} {number}" for table, chain, number in met)
    return f"{asked}\nthe kernel's path:\n{told}\nthe rules:\n{text}"


def main(words: Sequence[str] | None = None) -> int:
    """Run the check and print what it found as JSON; 1: the kernel disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rulesets", type=int, default=200)
    parser.add_argument("--packets", type=int, default=50)
    parser.add_argument("--backend", choices=["legacy", "nft"], default="legacy")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--foreign", action="store_true", help="rules of others beside captured ones of kube-proxy"
    )
    parser.add_argument(
        "--until-fault", action="store_true", help="end with the first disagreement"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="then begin no more")
    options = parser.parse_args(words)
    leave_host()
    node = Node(options.backend)
    random = Random(options.seed)  # the same run for the same seed
    rules = RandomRules(random)
    foreign = ForeignRules(random) if options.foreign else None
    findings = IptablesFindings()
    until = time.monotonic() + options.seconds
    for done in range(options.rulesets):
        if time.monotonic() > until or (options.until_fault and findings.disagreements):
            break
        if done % 500 == 0:
            node.forget()
        text = rules.text() if foreign is None else foreign.text()
        asked = _questions(random) if foreign is None else foreign.questions()
        check(node, text, asked, options.packets, findings)
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done + 1} of {options.rulesets} rulesets")
    json.dump(
        {
            "backend": options.backend,
            "rulesets": findings.rulesets,
            "packets": findings.packets,
            "matched_rules": findings.matched,
            "packets_by_jumps_left_out": findings.excursions,
            "questions_of_nothing_unknown": findings.exact,
            "counts_tested": len(findings.p_values),
            "least_p_value": min((v for v, _ in findings.p_values), default=1.0),
            "targets": findings.targets,
            "disagreements": findings.disagreements,
        },
        sys.stdout,
        indent=1,
    )
    return int(findings.disagreements != [])


if __name__ == "__main__":
    sys.exit(main())
