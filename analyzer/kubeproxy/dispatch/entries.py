"""Frontends of Services as single iptables rules match them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from analyzer.kubeproxy import names
from analyzer.kubeproxy.matched.chain_rule import ChainRule
from analyzer.kubeproxy.rows.shapes import host
from analyzer.kubeproxy.view import Frontend, FrontendKind
from analyzer.model.addresses import Address, Network, address_from_text
from analyzer.model.iptables.matches import (
    MatchAddrtype,
    MatchDestination,
    MatchNot,
    MatchRecent,
    MatchSet,
    MatchSource,
    MatchUnknown,
)
from analyzer.model.iptables.rules import Rule, Ruleset, Table
from analyzer.model.iptables.targets import Drop, Goto, Jump, Reject
from analyzer.model.value import value
from analyzer.parsers.rows import RuleRows
from analyzer.parsers.survey import well_known_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.kubeproxy.dispatch.object_names import ObjectNames


@value
class Entry:
    """A rule that sends the flows of one frontend to a chain, or refuses them.

    Attributes:
        chain: None if the rule refuses the flows.
    """

    name: str
    protocol: str
    frontend: Frontend
    chain: str | None


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
                read = ChainRule(chain, rule)
                name = names.name_and_kind(read.comment)[0] or to
                one_place = read.host is not None or (
                    chain == names.NODE_PORTS and not _names_others(read)
                )
                lacks_port = read.host is not None and not read.asks_port
                if lacks_port and read.protocol is not None:
                    yield OddRule(rule, True, name)
                if (
                    one_place
                    and read.protocol is not None
                    and (lacks_port or read.port is not None)
                ):
                    assumed = next(k for p, k in _LIKELY.items() if to.startswith(p))
                    place = read.host, read.protocol, read.port
                    yield _entry(read.comment, *place, assumed, to, known)
                elif not (chain == names.NODE_PORTS and _is_over_loopback(read)):
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
    assumed = next(kind for prefix, kind in _LIKELY.items() if chain.startswith(prefix))
    return _entry(comment, host(address), protocol, int(port), assumed, chain, known)


def refusals(ruleset: Ruleset, known: ObjectNames | None = None) -> Iterator[tuple[Entry, str]]:
    """Yield the frontends without endpoints, and how their flows are refused: reject or drop."""
    table = ruleset.tables.get("filter")
    for name in (names.SERVICES, names.EXTERNAL_SERVICES, names.NODE_PORTS):
        chain = table.chains.get(name) if table is not None else None
        assumed = FrontendKind.CLUSTER_IP if name == names.SERVICES else FrontendKind.EXTERNAL_IP
        for rule in chain.rules if chain is not None else ():
            if not isinstance(rule.target, Reject | Drop):
                continue
            read = ChainRule(name, rule)
            # A port without an address is a NodePort only if the rule matches LOCAL addresses.
            named = read.host is not None or any(
                isinstance(match, MatchAddrtype) for match in rule.matches
            )
            if named and read.protocol is not None and read.port is not None:
                place = read.host, read.protocol, read.port
                entry = _entry(read.comment, *place, assumed, None, known)
                yield entry, "reject" if isinstance(rule.target, Reject) else "drop"


def _entry(
    comment: str,
    address: Address | None,
    protocol: str,
    port: int | None,
    assumed: FrontendKind,
    chain: str | None,
    known: ObjectNames | None,
) -> Entry:
    name, kind = names.name_and_kind(comment)
    if address is None:
        # In KUBE-NODEPORTS the comment is the bare name.
        name = name or comment or None
    if known is not None and (name is None or kind is None):
        told, likely = known.of(chain, address, port or 0, protocol)
        # Without endpoints, the comment has the name but not the kind.
        same = name is None or names.service_name(name).text == told
        kind = kind or (likely if same else None)
        name = name or told
    if address is None:
        frontend = Frontend(FrontendKind.NODE_PORT, None, port)
    else:
        frontend = Frontend(FrontendKind(kind) if kind else assumed, address, port)
    return Entry(name or str(frontend), protocol, frontend, chain)


def _names_others(rule: ChainRule) -> bool:
    """Return whether a rule matches on destinations other than one single address."""
    odd = any(isinstance(match, MatchSet | MatchUnknown) for match in rule.rule.matches)
    return odd or (rule.destination is not None and rule.host is None)


def _is_over_loopback(rule: ChainRule) -> bool:
    """Return whether a rule matches on the node's loopback addresses."""
    to = None if rule.host is not None or rule.destination_negated else rule.destination
    return to is not None and to.is_loopback


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
        if to is not None and to.startswith(names.SERVICE_PREFIXES):
            found = affinity(table, to, seen | {name})
            if found is not None:
                return found
    return None


def _leads_to(rule: Rule) -> str | None:
    """Return the chain that a rule jumps to; None: it does not jump."""
    match rule.target:
        case Jump(to) | Goto(to):
            return to
        case _:
            return None


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
            target = None if asks else well_known_target(line)
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
