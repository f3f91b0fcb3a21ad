"""Generated rules, restored by the real iptables and saved again: is it still the same rule?

A program: it leaves the host's network. Prints what it found as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv6Address
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from analyzer.model.diagnostics import Location
from analyzer.model.iptables import matches as m
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.options import Option, Range
from analyzer.model.iptables.rules import Rule
from analyzer.model.value import fields_of, replace
from analyzer.parsers import listing
from analyzer.parsers.iptables_save import parse
from analyzer.parsers.xt.matches import MATCH_NAMES
from analyzer.parsers.xt.rule import render_rule
from analyzer.parsers.xt.targets import TARGET_NAMES
from netns_lab.command import run
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace, leave_host
from tests.support.lab import kernel_listings
from tests.support.strategies.iptables_matches import MATCHES
from tests.support.strategies.iptables_targets import TARGETS

#: What a match or a target needs beside it, or the kernel refuses it.
_PROTOCOLS: dict[type, str] = {
    m.MatchTcp: "tcp",
    m.MatchUdp: "udp",
    m.MatchSctp: "sctp",
    m.MatchMultiport: "udp",
    m.MatchIcmp: "icmp",
    m.MatchIcmp6: "ipv6-icmp",
    m.MatchTcpmss: "tcp",
    t.Dnat: "tcp",
    t.Snat: "tcp",
    t.Masquerade: "tcp",
    t.Redirect: "tcp",
    t.Tproxy: "tcp",
    t.SetMss: "tcp",
    t.RemoveEcn: "tcp",
    t.StripOptions: "tcp",
}
#: The one table that a target works in.
_TABLES: dict[type, str] = {
    t.Dnat: "nat",
    t.Snat: "nat",
    t.Masquerade: "nat",
    t.Redirect: "nat",
    t.Reject: "filter",
    t.ConnectionTracking: "raw",
    t.NoTrack: "raw",
    t.Trace: "raw",
    **dict.fromkeys((t.SetDscp, t.SetTos, t.ChangeTtl, t.ChangeHops, t.RemoveEcn), "mangle"),
    **dict.fromkeys((t.StripOptions, t.Classify, t.Tee), "mangle"),
}

#: Any name may be generated, and what bears it is not here: a chain, an extension, an object.
OF_ANY_NAME = {
    m.MatchNfacct, m.MatchSet, m.MatchIpvs, m.MatchUnknown, t.Jump, t.Goto, t.ChangeSet,
    t.TargetUnknown,
}  # fmt: skip
#: What only the other IP version's binaries take.
OTHER_VERSION: Final[dict[str, set[type]]] = {
    "iptables": {m.MatchIcmp6, m.MatchHl, t.ChangeHops},
    "ip6tables": {m.MatchFragment, m.MatchIcmp, m.MatchTtl, t.ChangeTtl, t.RemoveEcn},
}


class Trial:
    """Rules of one kind of binary, and what became of them."""

    def __init__(self, binary: str) -> None:
        self._binary = binary
        self._namespace = Namespace(binary)
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        #: Rules of which a listing told all.
        self.told: Counter[str] = Counter()
        self.faults: list[str] = []
        self.witnessed = 0

    def put(self, kind: type, rule: Rule) -> None:
        """Restore one rule; where the kernel takes it, hold what is saved against it."""
        table = _TABLES.get(type(rule.target), "mangle")
        text = render_rule("X", rule)
        try:
            saved = self._pass(table, text)
        except LabError:
            self.refused[kind.__name__] += 1
            return
        self.accepted[kind.__name__] += 1
        ruleset = parse(saved, "saved")
        (read,) = ruleset.tables[table].chains["X"].rules
        row = next(line for line in saved.split("\n") if line.startswith("-A X"))
        if render_rule("X", read) != row:
            self._fault("printed differently", row, render_rule("X", read))
        elif m.MatchUnknown in map(type, read.matches) or type(read.target) is t.TargetUnknown:
            self._fault("not understood", text, row)
        elif not _kept(rule, read):
            self._fault("changed", text, row)
        elif (seen := self._second_witness(table)) and seen != _names(read):
            self._fault(f"python-iptables sees {seen}", text, row)
        elif self._pass(table, row) != saved:
            self._fault("not the same the second time", text, row)
        else:
            self._list(kind, table, read)

    def _list(self, kind: type, table: str, saved: Rule) -> None:
        """Hold what is listed of the rule against it."""
        printed = run(self._namespace, [self._binary, "-t", table, "-nvL"]).stdout
        (listed,) = listing.parse(printed, "listed").tables[table].chains["X"].rules
        wrong = kernel_listings.fault(listed, saved)
        if wrong is not None:
            row = printed.split("Chain X ")[1].split("\n")[2]
            self._fault(f"listed as {listed.raw}: {wrong}", row, saved.raw)
        elif kernel_listings.is_whole(listed):
            self.told[kind.__name__] += 1

    def _second_witness(self, table: str) -> list[str]:
        """Return the extensions that python-iptables finds in the rule; none: not its table."""
        if self._binary != "iptables-legacy":
            return []
        with self._namespace:
            import iptc

            held = iptc.Table(table)
            held.refresh()
            (chain,) = [chain for chain in held.chains if chain.name == "X"]
            try:
                (rule,) = chain.rules
                seen = [match.name for match in rule.matches]
            except iptc.XTablesError:
                return []  # an extension that it cannot load
            target = rule.target.name if rule.target is not None else ""
            self.witnessed += 1
            return [*seen, target]

    def _fault(self, what: str, one: str, other: str) -> None:
        self.faults.append(f"{self._binary}, {what}:\n  {one}\n  {other}")

    def _pass(self, table: str, row: str) -> str:
        """Return the table as it is saved, without the comments that tell the time."""
        text = f"*{table}\n:X - [0:0]\n{row}\nCOMMIT\n"
        run(self._namespace, [f"{self._binary}-restore", "--table", table], text)
        saved = run(self._namespace, [f"{self._binary}-save", "-t", table]).stdout
        return "".join(
            f"{line}\n" for line in saved.split("\n") if line[:1] in {"*", ":", "-", "C"}
        )


def _kept(given_: Rule, read: Rule) -> bool:
    """Tell whether each thing that the first rule asks is asked by the second in the same way.

    iptables spells out what it takes for granted, so the second may say more.
    """
    ours = [v for v in (*given_.matches, given_.target) if v is not None]
    theirs = {type(_inner(v)): v for v in (*read.matches, read.target) if v is not None}
    return all(_says(each, theirs.get(type(_inner(each)))) for each in ours)


def _names(rule: Rule) -> list[str]:
    """Return the names of a rule's extensions and of its target."""
    kinds = [type(_inner(match)) for match in rule.matches]
    target = "" if rule.target is None else TARGET_NAMES[type(rule.target)]
    return [*(MATCH_NAMES[kind] for kind in kinds if kind in MATCH_NAMES), target]


def _inner(value: Any) -> Any:
    return value.match if isinstance(value, m.MatchNot) else value


def _says(ours: Any, theirs: Any) -> bool:
    if theirs is None or isinstance(ours, m.MatchNot) != isinstance(theirs, m.MatchNot):
        return theirs is None and _asks_nothing(ours)
    one, other = _inner(ours), _inner(theirs)
    if isinstance(one, m.MatchProtocol) and one.protocol.isdecimal():
        return True  # printed as the name in /etc/protocols
    for name in fields_of(type(one)):
        value = getattr(one, name)
        if value in (None, False, ()) or _usual(value) == _usual(getattr(other, name)):
            continue
        if not _asks_nothing(value):
            return False
    return True


def _usual(value: Any) -> Any:
    """One of the ways to say the same: iptables-nft prints another than it was given."""
    from analyzer.model.iptables.options import ChunkTypes, Option, Range

    match value:
        # ! 0:80 is 81:65535.
        case Option(Range(0, last), negated=True) if last < 0xFFFF:
            return Option(Range(last + 1, 0xFFFF))
        case Option(Range(first, 0xFFFF), negated=True) if first:
            return Option(Range(0, first - 1))
        case Option(ChunkTypes(scope, types), negated):
            # A type that is named twice is as it was named last, in the order of their numbers.
            named = {each.partition(":")[0]: each for each in types}
            return Option((scope, frozenset(named.values())), negated)
        case t.NatRange():
            # A range of one is printed as the one.
            address = None if value.last_address == value.first_address else value.last_address
            port = None if value.last_port == value.first_port else value.last_port
            return replace(value, last_address=address, last_port=port)
        # NONE has no bit.
        case Option(tuple(words), negated) if "NONE" in words and len(set(words)) > 1:
            return Option(tuple(word for word in words if word != "NONE"), negated)
        case _:
            return value


def _asks_nothing(value: Any) -> bool:
    """Tell whether iptables leaves it out: all ports, no flags, any address."""
    from analyzer.model.iptables.options import Option, Range, TcpFlags

    match value:
        case Option(TcpFlags(mask)):
            return not mask
        case Option(Range(0, 0xFFFF)) | Range(0, 0xFFFF):
            return True
        case m.MatchSource(network) | m.MatchDestination(network):
            return bool(network.prefixlen == 0)
        case m.MatchInInterface("+") | m.MatchOutInterface("+"):
            return True
        case _:
            return False


def _rule(value: Any) -> Rule:
    matches: list[Any] = []
    kind = type(_inner(value))
    if kind in _PROTOCOLS:
        matches.append(m.MatchProtocol(_PROTOCOLS[kind]))
    if kind is t.SetMss:
        from analyzer.model.iptables.options import Option, TcpFlags

        syn = TcpFlags(frozenset({"SYN", "RST"}), frozenset({"SYN"}))
        matches.append(m.MatchTcp(flags=Option(syn)))
    if kind in MATCHES:
        return Rule((*matches, value), None, Location("made", 1), "")
    return Rule(tuple(matches), value, Location("made", 1), "")


def _is_sensible(value: Any) -> bool:
    """Tell whether the kernel has just this to say; it cuts and converts some values."""
    match _inner(value):
        case m.MatchString(last=0xFFFF):
            return False  # as without --to, which is how it is printed
        case m.MatchString(text=text) if text is not None:
            # One that ends with a backslash is printed as bytes (libxt_string.c, is_hex_string).
            plain = text.value.isascii() and text.value.isprintable()
            return bool(plain and not text.value.endswith("\\"))
        case m.MatchPolicy(policy="none", elements=elements):
            return not elements  # which are neither held nor printed
        case m.MatchConnlimit(mask=mask):
            return mask is None or mask <= 32  # an IPv4 prefix
        case t.ConnectionTracking(zone=zone, zone_original=one, zone_reply=other):
            return [zone, one, other].count(None) > 1
        case t.Log(prefix=prefix) | t.NfLog(prefix=prefix):
            return prefix is None or len(prefix.encode("utf-8", "surrogateescape")) < 29
        case m.MatchSource(network) | m.MatchDestination(network):
            return bool(network.prefixlen)
        case m.MatchSctp(source_port=source, destination_port=to):
            return _ALL_PORTS not in (source, to)  # a listing does not print it
        case t.Tee(IPv6Address() as gateway):
            return gateway.ipv4_mapped is None  # which iptables takes for one of IPv4
        case _:
            return True


_ALL_PORTS: Final = Option(Range(0, 0xFFFF))
BINARIES: Final = ("iptables-legacy", "ip6tables-legacy", "iptables-nft", "ip6tables-nft")
#: Rules of one kind that are offered at most before a binary has taken one of them.
_TRIES: Final = 60


def offered(binary: str) -> set[type]:
    """Return the kinds of which a binary has to take some."""
    return {*MATCHES, *TARGETS} - OF_ANY_NAME - OTHER_VERSION[binary.partition("-")[0]]


def main(words: Sequence[str] | None = None) -> int:
    """Offer each binary rules of each kind until it took so many, or refused too many of them.

    What each of them took is printed as JSON; 1: something came back as another rule.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", choices=BINARIES, action="append", help="only this one")
    parser.add_argument("--examples", type=int, default=5, help="of each kind")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(words)
    leave_host()
    warnings.simplefilter("ignore")
    found = {}
    for binary in options.binary or BINARIES:
        trial = Trial(binary)
        for kind, values in (*MATCHES.items(), *TARGETS.items()):
            if kind in offered(binary):
                _try(trial, kind, values, options)
        found[binary] = {
            "accepted": trial.accepted,
            "refused": trial.refused,
            "told": trial.told,
            "faults": trial.faults,
            "witnessed": trial.witnessed,
        }
    json.dump(found, sys.stdout)
    return int(any(trial["faults"] for trial in found.values()))


def _try(
    trial: Trial, kind: type, values: st.SearchStrategy[Any], options: argparse.Namespace
) -> None:
    class Enough(Exception):  # noqa: N818  # no error
        """So many were taken."""

    @seed(options.seed)
    @settings(
        max_examples=max(_TRIES, 20 * options.examples),
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(values.filter(_is_sensible))
    def each(value: Any) -> None:
        if trial.accepted[kind.__name__] >= options.examples:
            raise Enough
        trial.put(kind, _rule(value))

    with contextlib.suppress(Enough):
        each()


if __name__ == "__main__":
    sys.exit(main())
