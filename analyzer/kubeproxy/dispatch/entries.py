"""Frontends of Services as single iptables rules match them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from analyzer.kubeproxy import names
from analyzer.kubeproxy.rows.shapes import host
from analyzer.kubeproxy.view import Frontend, FrontendKind
from analyzer.model.addresses import Address, Network, address_from_text
from analyzer.model.iptables.matches import (
    MatchAddrtype,
    MatchComment,
    MatchDestination,
    MatchNot,
    MatchProtocol,
    MatchRecent,
    MatchSctp,
    MatchSet,
    MatchSource,
    MatchTcp,
    MatchUdp,
    MatchUnknown,
)
from analyzer.model.iptables.options import Option, Range
from analyzer.model.iptables.rules import Rule, Ruleset, Table
from analyzer.model.iptables.targets import Drop, Goto, Jump, Reject
from analyzer.model.value import value
from analyzer.parsers.rows import RuleRows
from analyzer.parsers.survey import plain_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.kubeproxy.dispatch.object_names import ObjectNames


@value
class Entry:
    """A rule that sends the flows of one frontend to a chain, or refuses them.

    Attributes:
        chain: empty if the rule refuses the flows.
    """

    name: str
    protocol: str
    frontend: Frontend
    chain: str


@value(kw_only=True)
class _Read:
    """What the matches of a rule match, as far as frontends are concerned.

    Attributes:
        other_destination: it matches destinations other than one single address.
        names_port: it matches on the destination port, a single one or not.
    """

    address: Address | None
    protocol: str | None
    port: int | None
    comment: str
    local: bool
    other_destination: bool
    names_port: bool
    loopback: bool


@value
class OddRule:
    """A rule that sends flows to a Service's chain, of more than one address or port.

    `name` is that of the Service, or of the chain if the comment does not give the Service's name.

    kube-proxy writes no such rule. If the port is missing altogether, an iptables older than the
    rules has left it out when it saved them: then the frontend is yielded too, without a port.
    """

    rule: Rule
    lacks_port: bool
    name: str


#: The kind of a frontend that is not otherwise known, by the chain that the rule jumps to.
_LIKELY: Final = {
    "KUBE-FW-": FrontendKind.LOAD_BALANCER_IP,
    "KUBE-EXT-": FrontendKind.EXTERNAL_IP,
    "KUBE-XLB-": FrontendKind.EXTERNAL_IP,
    "": FrontendKind.CLUSTER_IP,
}


#: Rows that match one source address.
_FROM_HOST: Final = re.compile(
    r"(?:\[\d+:\d+\] )?-A \S+ -s ([\d.]+|[\da-f:.]+(?=/128))/(?:32|128) "
)


def entries(
    chain: str, rules: Iterable[Rule], known: ObjectNames | None = None
) -> Iterator[Entry | OddRule]:
    """Yield the frontends whose flows `rules` of `chain` send to a Service's chain.

    `known` names those whose rule has no comment.
    """
    for rule in rules:
        match rule.target:
            case Jump(to) | Goto(to) if to.startswith(names.SERVICE_PREFIXES):
                read = _read(rule)
                name = names.name_and_kind(read.comment)[0] or to
                one_place = read.address is not None or (
                    chain == names.NODE_PORTS and not read.other_destination
                )
                lacks_port = read.address is not None and not read.names_port
                if lacks_port and read.protocol is not None:
                    yield OddRule(rule, True, name)
                if (
                    one_place
                    and read.protocol is not None
                    and (lacks_port or read.port is not None)
                ):
                    assumed = next(k for p, k in _LIKELY.items() if to.startswith(p))
                    yield _entry(read, read.protocol, read.port, assumed, to, known)
                elif not (chain == names.NODE_PORTS and read.loopback):
                    # From 1.33 on this rule only counts packets over loopback; the next rule
                    # matches them too.
                    yield OddRule(rule, lacks_port, name)
            case _:
                pass


def every_entry(
    chain: str, given: Iterable[Rule | re.Match[str]], known: ObjectNames | None = None
) -> Iterator[Entry | OddRule]:
    """Yield the same for rules, and for rows of KUBE-SERVICES with the shape `Shapes.entry`."""
    for each in given:
        if isinstance(each, Rule):
            yield from entries(chain, (each,), known)
        else:
            yield _entry_of(each, known)


def _entry_of(row: re.Match[str], known: ObjectNames | None) -> Entry:
    _, address, protocol, comment, port, chain = row.groups()
    read = _Read(
        address=host(address),
        protocol=protocol,
        port=int(port),
        comment=comment,
        local=False,
        other_destination=False,
        names_port=True,
        loopback=False,
    )
    assumed = next(kind for prefix, kind in _LIKELY.items() if chain.startswith(prefix))
    return _entry(read, protocol, read.port, assumed, chain, known)


def refusals(ruleset: Ruleset, known: ObjectNames | None = None) -> Iterator[tuple[Entry, str]]:
    """Yield the frontends without endpoints, and how their flows are refused: reject or drop."""
    table = ruleset.tables.get("filter")
    for name in (names.SERVICES, names.EXTERNAL_SERVICES, names.NODE_PORTS):
        chain = table.chains.get(name) if table is not None else None
        assumed = FrontendKind.CLUSTER_IP if name == names.SERVICES else FrontendKind.EXTERNAL_IP
        for rule in chain.rules if chain is not None else ():
            if not isinstance(rule.target, Reject | Drop):
                continue
            read = _read(rule)
            # A port without an address is a NodePort only if the rule matches LOCAL addresses.
            named = read.address is not None or read.local
            if named and read.protocol is not None and read.port is not None:
                entry = _entry(read, read.protocol, read.port, assumed, "", known)
                yield entry, "reject" if isinstance(rule.target, Reject) else "drop"


def _entry(
    read: _Read,
    protocol: str,
    port: int | None,
    assumed: FrontendKind,
    chain: str,
    known: ObjectNames | None,
) -> Entry:
    name, kind = names.name_and_kind(read.comment)
    if read.address is None:
        # In KUBE-NODEPORTS the comment is the bare name.
        name = name or read.comment or None
    if known is not None and (name is None or kind is None):
        told, likely = known.of(chain, read.address, port or 0, protocol)
        # Without endpoints, the comment has the name but not the kind.
        same = name is None or names.service_name(name).text == told
        kind = kind or (likely if same else None)
        name = name or told
    if read.address is None:
        frontend = Frontend(FrontendKind.NODE_PORT, None, port)
    else:
        frontend = Frontend(FrontendKind(kind) if kind else assumed, read.address, port)
    return Entry(name or str(frontend), protocol, frontend, chain)


def _read(rule: Rule) -> _Read:
    address, protocol, port, comment = None, None, None, ""
    local = other_destination = names_port = loopback = False
    for match in rule.matches:
        match match:
            case MatchDestination(network) if network.num_addresses == 1:
                address = network.network_address
            case MatchDestination(network) if network.is_loopback:
                loopback = other_destination = True
            case MatchDestination() | MatchNot(MatchDestination()) | MatchSet() | MatchUnknown():
                other_destination = True
            case MatchProtocol(text):
                protocol = text
            case MatchComment(text):
                comment = text
            case MatchTcp() | MatchUdp() | MatchSctp():
                port = _single(match.destination_port)
                names_port = match.destination_port is not None
            case MatchAddrtype():
                local = True
            case _:
                pass
    return _Read(
        address=address,
        protocol=protocol,
        port=port,
        comment=comment,
        local=local,
        other_destination=other_destination,
        names_port=names_port,
        loopback=loopback,
    )


def _single(option: Option[Range] | None) -> int | None:
    match option:
        case Option(Range(first, last), negated=False) if first == last:
            return first
        case _:
            return None


def affinity(table: Table, name: str, seen: frozenset[str] = frozenset()) -> int | None:
    """Return the session affinity timeout of a Service's chain in seconds; None: no affinity."""
    chain = table.chains.get(name)
    if chain is None or name in seen:
        return None
    for each in _asking(chain.rules):
        if not isinstance(each, str):
            for match in each.matches:
                if isinstance(match, MatchRecent) and match.action.value == "rcheck":
                    return match.seconds
        to = each if isinstance(each, str) else _leads_to(each)
        if to.startswith(names.SERVICE_PREFIXES):
            found = affinity(table, to, seen | {name})
            if found is not None:
                return found
    return None


def _leads_to(rule: Rule) -> str:
    """Return the chain that a rule jumps to; empty: none."""
    match rule.target:
        case Jump(to) | Goto(to):
            return to
        case _:
            return ""


def _asking(rules: Sequence[Rule]) -> Iterator[Rule | str]:
    """Yield the rules that may implement session affinity, or jump to chains of Services.

    Of one that only jumps, just the chain.
    """
    if not isinstance(rules, RuleRows):
        yield from rules
        return
    leads = [f" -{how} {prefix}" for prefix in names.SERVICE_PREFIXES for how in "jg"]
    for at, line in enumerate(rules.lines):
        asks = " recent " in line
        if asks or any(each in line for each in leads):
            target = None if asks else plain_target(line)
            yield rules.understand(rules.number(at), line) if target is None else target


def unmarked_network(table: Table, chains: Iterable[str]) -> Network | None:
    """Return the cluster's CIDR as the masquerade rules write it: ``! -s CIDR``.

    Only rules of `chains`, and of the Services' chains that these jump to, are considered.
    kube-proxy's masquerade rules match on the destination too.
    """
    rest = list(dict.fromkeys(chains))[::-1]
    seen: set[str] = set()
    while rest:
        name = rest.pop()
        if name in seen or name not in table.chains:
            continue
        seen.add(name)
        for rule in table.chains[name].rules:
            match rule.target:
                case Jump(names.MARK_MASQUERADE) if any(
                    isinstance(match, MatchDestination) for match in rule.matches
                ):
                    for match in rule.matches:
                        match match:
                            case MatchNot(MatchSource(network)):
                                return network
                            case _:
                                pass
                case Jump(to) | Goto(to) if to.startswith(names.SERVICE_PREFIXES):
                    rest.append(to)
                case _:
                    pass
    return None


def network_of_pods(table: Table) -> Network | None:
    """Return the pods' network: its flows go to all endpoints even under a local traffic policy.

    With ``--masquerade-all`` this is the only rule that names it.
    """
    for name in table.chains:
        if name.startswith(("KUBE-EXT-", "KUBE-XLB-")):
            for rule in table.chains[name].rules:
                match rule:
                    case Rule(matches=matches, target=Jump(to)) if to.startswith("KUBE-SVC-"):
                        found = [m.network for m in matches if isinstance(m, MatchSource)]
                        if found:
                            return found[0]
                    case _:
                        pass
    return None


def endpoint_sources(table: Table, is_known: Callable[[str], bool]) -> set[Address]:
    """Return the addresses of endpoints whose KUBE-SEP chains `is_known` does not accept."""
    found: set[Address] = set()
    for name in table.chains:
        if name.startswith(names.ENDPOINT_PREFIX) and not is_known(name):
            rules = table.chains[name].rules
            if not isinstance(rules, RuleRows):
                found.update(*map(_sources, rules))
                continue
            for at, line in enumerate(rules.lines):
                plainly = _FROM_HOST.match(line)
                host = None if plainly is None else address_from_text(plainly[1])
                if host is not None:
                    found.add(host)
                elif " -s " in line:
                    found.update(_sources(rules.understand(rules.number(at), line)))
    return found


def _sources(rule: Rule) -> list[Address]:
    return [m.network.network_address for m in rule.matches if isinstance(m, MatchSource)]
