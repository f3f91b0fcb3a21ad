"""What rules ask about the source of a flow.

Two sources that match the same rules on a flow's way fare alike, so one address for each set of
them is enough (`source_parts`). That holds only where every rule is looked at: those of others in
any table, before kube-proxy's chains, between them, and behind them in POSTROUTING.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import ip_network, summarize_address_range

from analyzer.kubeproxy import names
from analyzer.kubeproxy.sources import Asked, Marked
from analyzer.model.addresses import Network, network_from_text
from analyzer.model.hooks import TABLES
from analyzer.model.matches import (
    MatchComment,
    MatchConntrack,
    MatchIprange,
    MatchNot,
    MatchProtocol,
    MatchRecent,
    MatchSctp,
    MatchSource,
    MatchTcp,
    MatchUdp,
)
from analyzer.model.options import AddressRange, Option
from analyzer.model.rules import Rule, Ruleset, Table
from analyzer.model.targets import Dnat, Goto, Jump, Return
from analyzer.model.value import replace
from analyzer.parsers.rows import RuleRows
from analyzer.parsers.survey import plain_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.matches import Match
    from analyzer.semantics.base_chains import Rules

#: Hooks, by iptables' names, that a flow meets before the chains of its Service.
ENTERING: Final = ("PREROUTING", "OUTPUT")
#: And behind them, where sources are changed.
LEAVING: Final = ("POSTROUTING",)

#: Tables that a walk as far as nat asks, and those whose rules on the way out it asks.
_TABLES: Final = ("raw", "mangle", "nat")
#: Chains with rows for each Service, which are looked at Service by Service.
_OF_ALL: Final = frozenset({names.SERVICES, names.NODE_PORTS})
_OF_SERVICES: Final = (*names.SERVICE_PREFIXES, names.ENDPOINT_PREFIX)
#: Options that ask for sources, besides ``-s``.
_OTHER_OPTIONS: Final = ("--src-range", "--ctorigsrc", "--ctrepldst")
_PROTOCOLS: Final = {MatchTcp: "tcp", MatchUdp: "udp", MatchSctp: "sctp"}
#: What kube-proxy's rules ask for in a KUBE-SEP chain, the source apart.
_OF_ENDPOINT: Final = (MatchProtocol, MatchComment, MatchTcp, MatchUdp, MatchSctp, MatchRecent)


def asked_around(rulesets: Iterable[Rules], family: str, hooks: Sequence[str]) -> Asked:
    """Return what rules around the chains of Services ask, of all rulesets of a node.

    Those are the rules that packets of `family` meet at `hooks`. The Services are those of the
    first of `rulesets`.
    """
    found: set[Network | None] = set()
    for number, ruleset in enumerate(rulesets):
        if not isinstance(ruleset, Ruleset):
            from analyzer.kubeproxy.nft_asked import asked_in_hooks

            lower = [hook.lower() for hook in hooks]
            found.update(asked_in_hooks(ruleset, family, lower, whole=number > 0))
        elif ruleset.family == family:
            for name in _TABLES:
                table = ruleset.tables.get(name)
                bases = [hook for hook in hooks if name in TABLES[hook]]
                if table is not None:
                    found.update(_reached(table, bases))
    return Asked.of(found)


def asked_behind(
    table: Table, chain: str, protocol: str, *, bits: int | None, by_marks: bool
) -> Asked:
    """Return what the chains of one Service ask, but for what an endpoint's asks for the endpoint.

    Flows are of `protocol`. `bits` are those of the mark that KUBE-MARK-MASQ changes; None: it may
    do something else. `by_marks`: rules of the table match on marks, so that who is marked may go
    elsewhere.
    """
    marked: set[Marked] = set()

    def leave_out(name: str, rules: Sequence[Rule]) -> MatchSource | None:
        own = None if by_marks else _own(rules)
        if own is None or not _may_be_left(rules, own, protocol):
            return own
        if bits is None:
            return None
        marked.add(Marked(own.network.network_address, name, bits))
        return own

    found = Asked.of(_reached(table, [chain], protocol, leave_out))
    return replace(found, marked=frozenset(marked))


def _reached(
    table: Table,
    starts: Iterable[str],
    protocol: str | None = None,
    leave_out: Callable[[str, Sequence[Rule]], MatchSource | None] = lambda *_: None,
) -> Iterator[Network]:
    """Give the networks that the rules of some chains, and of those they lead to, ask for.

    `leave_out` tells of a chain, and its rules, the source that rules match on only to mark it.
    """
    rest = list(starts)
    seen = set(rest)
    while rest:
        name = rest.pop()
        chain = table.chains.get(name)
        if chain is None:
            continue
        rules: Iterable[Rule] = chain.rules
        own: MatchSource | None = None
        if name in _OF_ALL and isinstance(rules, RuleRows):
            # A row for each Service, which takes too long to understand.
            texts = set(re.findall(r" -s (\S+)", rules.text))
            yield from (n for n in map(network_from_text, texts) if n is not None)
            rules = _others(rules)
            rest.append(names.MARK_MASQUERADE)
        elif name.startswith(names.ENDPOINT_PREFIX):
            rules = tuple(rules)
            if is_of_endpoint(rules, protocol):
                continue
            own = leave_out(name, rules)
        for rule in rules:
            for match in rule.matches:
                # Only what comes back to the endpoint is marked then, which is a route of its own.
                if own is None or match != own or rule.target != Jump(names.MARK_MASQUERADE):
                    yield from _asked_by(match)
            match rule.target:
                case Jump(to) | Goto(to) if to not in seen:
                    if name not in _OF_ALL or not to.startswith(_OF_SERVICES):
                        seen.add(to)
                        rest.append(to)
                case _:
                    pass


def _own(rules: Iterable[Rule]) -> MatchSource | None:
    """Return what asks for the endpoint that a chain is of; None: it is of none, or of several."""
    to = {rule.target.to for rule in rules if isinstance(rule.target, Dnat)}
    addresses = {each.first_address for each in to if each.last_address is None}
    address = addresses.pop() if len(to) == len(addresses) == 1 else None
    return None if address is None else MatchSource(ip_network(address))


def _may_be_left(rules: Iterable[Rule], own: MatchSource, protocol: str) -> bool:
    """Tell whether a flow that a chain has marked may come out of it, or go to another one."""
    marked = False
    for rule in rules:
        match rule.target:
            case Jump(names.MARK_MASQUERADE):
                marked |= own in rule.matches
            case Dnat() if all(_holds_for(match, protocol) for match in rule.matches):
                return False
            case Jump() | Goto() | Return() if marked:
                return True
            case _:
                pass
    return marked


def _holds_for(match: Match, protocol: str | None) -> bool:
    """Tell whether a match holds for all flows of a protocol; None: of that which it asks for."""
    match match:
        case MatchProtocol(asked):
            return protocol in {None, asked}
        case MatchTcp() | MatchUdp() | MatchSctp():
            # It asks for its protocol too, with which kube-proxy writes it; and here for no more.
            return match == type(match)() and protocol in {None, _PROTOCOLS[type(match)]}
        case MatchRecent(action=Option("set", negated=False)) | MatchComment():
            return True
        case _:
            return False


def _others(rules: RuleRows) -> Iterator[Rule]:
    """Give the rules of a chain with rows for each Service that may be none of those."""
    for at, line in enumerate(rules.lines):
        target = plain_target(line)
        of_service = target is not None and target.startswith(
            (*_OF_SERVICES, names.MARK_MASQUERADE)
        )
        if not of_service or any(option in line for option in _OTHER_OPTIONS):
            yield rules.understand(rules.number(at), line)


def _asked_by(match: Match) -> Iterator[Network]:
    match match:
        case MatchNot(inner):
            yield from _asked_by(inner)
        case MatchSource(network):
            yield network
        case MatchIprange(source=Option(AddressRange(first, last))):
            yield from summarize_address_range(first, last)
        case MatchConntrack(original_source=source, reply_destination=back):
            yield from (option.value for option in (source, back) if option is not None)
        case _:
            pass


def is_of_endpoint(rules: Sequence[Rule], protocol: str | None) -> bool:
    """Tell whether the rules of a chain mark flows of one endpoint, send all on, and no more.

    All flows of `protocol`; None: of that of the endpoint. Then nobody but the endpoint itself is
    a source that fares otherwise.
    """
    if not rules:
        return False
    *before, last = rules
    match last.target:
        case Dnat(to) if to.first_address is not None and to.last_address is None:
            own = to.first_address
        case _:
            return False
    return all(_holds_for(match, protocol) for match in last.matches) and all(
        (rule.target is None or rule.target == Jump(names.MARK_MASQUERADE))
        and all(
            isinstance(match, _OF_ENDPOINT)
            or (
                isinstance(match, MatchSource)
                and match.network.num_addresses == 1
                and match.network.network_address == own
            )
            for match in rule.matches
        )
        for rule in before
    )
