"""The ipsets that rules refer to, created in a namespace before the rules are loaded.

They are rendered from the parsed sets, as rules are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address

from analyzer.model.addresses import IPV6
from analyzer.model.intervals import networks_of
from analyzer.model.ipsets import NO_SETS, EntryPart, Ipset, IpsetEntry, Ipsets, Opaque, PortKey
from analyzer.model.iptables.matches import Match, MatchNot, MatchSet
from analyzer.model.iptables.rules import Rule, Ruleset
from analyzer.model.iptables.targets import ChangeSet
from netns_lab.command import run
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace


def make_sets(
    namespace: Namespace, ruleset: Ruleset, rules: Iterable[Rule], there: set[str] | None = None
) -> None:
    """Create the sets that some rules of `ruleset` name; sets that are not known stay empty.

    Sets in `there` exist already; those that are created are added to it.

    Raises:
        LabError: one of them is of a type that is not understood, or ipset is missing.
    """
    there = set() if there is None else there
    names = dict.fromkeys(name for rule in rules for name in _named(rule) if name not in there)
    if not names:
        return
    sets = ruleset.ipsets or NO_SETS
    known = [each for each in _with_members(names, sets) if each.name not in there]
    there.update(names, (each.name for each in known))
    for each in known:
        if not each.understood:
            raise LabError(f"set {each.name} is of a type that the lab cannot make: {each.type}")
    family = "inet" if ruleset.family == "ip" else "inet6"
    lines = [f"create {name} hash:net family {family}" for name in names if name not in sets]
    lines += [line for each in known for line in rendered(each)]
    run(namespace, ["ipset", "restore"], "\n".join(lines) + "\n")


def rendered(of: Ipset) -> Iterator[str]:
    """Yield the lines of ``ipset restore`` that create a set with the same entries."""
    method, _, kinds = of.type.partition(":")
    options = ""
    if of.type == "bitmap:port":
        options = " range 0-65535"
    elif method == "bitmap":
        method = "hash"  # which needs no range
    if method == "hash":
        options = " family inet6" if of.version == IPV6 else " family inet"
    if "mark" in of.kinds and of.mask is not None:
        options += f" markmask {of.mask:#x}"
    yield f"create {of.name} {method}:{kinds}{options}"
    for entry in of.entries:
        for texts in _texts(entry, of.version):
            yield f"add {of.name} {texts}{' nomatch' if entry.nomatch else ''}"


def _texts(entry: IpsetEntry, version: int | None) -> Iterator[str]:
    found = [""]
    for part in entry.parts:
        spelled = list(_spelled(part, version))
        found = [f"{before},{each}" if before else each for before in found for each in spelled]
    yield from found


def _spelled(part: EntryPart, version: int | None) -> Iterator[str]:
    match part:
        case (int() as first, int() as last):
            assert version is not None  # of a set of addresses
            if first == last:
                yield str(IPv6Address(first) if version == IPV6 else IPv4Address(first))
            else:
                yield from map(str, networks_of(version, ((first, last),)))
        case PortKey(None, port):
            yield str(port)
        case PortKey(protocol, port):
            yield f"{protocol}:{port}"
        case Opaque(text):
            yield text
        case _:
            yield str(part)


def _named(rule: Rule) -> Iterator[str]:
    matches: Iterable[Match] = rule.matches
    for match in matches:
        inner = match.match if isinstance(match, MatchNot) else match
        if isinstance(inner, MatchSet):
            yield inner.match_set.value[0]
    if isinstance(rule.target, ChangeSet):
        yield rule.target.name


def _with_members(names: Iterable[str], sets: Ipsets) -> Iterator[Ipset]:
    """Yield the sets of these names; members of a list:set come before it."""
    seen: set[str] = set()
    for name in names:
        of = sets.get(name)
        if of is None:
            continue
        members = [str(e.parts[0]) for e in of.entries] if of.kinds == ("set",) else []
        for each in (*members, name):
            if each in sets and each not in seen:
                seen.add(each)
                yield sets[each]
