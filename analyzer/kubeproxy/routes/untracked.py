"""Flows exempt from conntrack, which nat never translates; NodeLocal DNSCache.

Theory of operation
===================

NodeLocal DNSCache assigns the ClusterIP of the cluster's DNS to the node, beside a link-local
address of its own, and exempts flows to both from conntrack: kube-proxy's nat rules never match
them. What it cannot answer it forwards to another Service with the same endpoints,
``kube-dns-upstream``, for which kube-proxy's rules apply. It is recognised by what its rules do,
whatever their comments are.

Source: kubernetes, cluster/addons/dns/nodelocaldns, and kubernetes/dns, cmd/node-cache/app,
``initIptables``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.kubeproxy.rows.texts import EXEMPTING
from analyzer.kubeproxy.view import Frontend, FrontendKind, FrontendState, ServicePort
from analyzer.model.addresses import Address
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.iptables.matches import (
    Match,
    MatchComment,
    MatchDestination,
    MatchProtocol,
    MatchTcp,
    MatchUdp,
)
from analyzer.model.iptables.rules import Rule, Ruleset
from analyzer.model.iptables.targets import ConnectionTracking, NoTrack
from analyzer.model.value import value
from analyzer.parsers.rows import RuleRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_DNS: Final = 53
#: The name that its manifest gives to the Service that it queries.
_UPSTREAM: Final = "upstream"


@value
class Untracked:
    """A rule that exempts flows to one address and port from conntrack.

    Attributes:
        protocol: None: any.
        port: None: any.
    """

    address: Address
    protocol: str | None
    port: int | None
    line: int

    def holds(self, frontend: Frontend, protocol: str) -> bool:
        """Return whether the rule matches flows to a frontend."""
        return (
            frontend.address == self.address
            and self.protocol in {None, protocol}
            and self.port in {None, frontend.port}
        )


def untracked(ruleset: Ruleset) -> tuple[Untracked, ...]:
    """Return which incoming flows the node's rules exempt from conntrack, by address."""
    raw = ruleset.tables.get("raw")
    if raw is None:
        return ()
    # The base chain and those reached from it: which of them a flow hits is found by its route.
    return tuple(
        found
        for chain in raw.chains.values()
        if chain.name != "OUTPUT"
        for rule in _likely(chain.rules)
        if (found := _read(rule)) is not None
    )


def node_local_dns(
    services: Iterable[ServicePort], places: Sequence[Untracked], file: str
) -> list[Diagnostic]:
    """Return a warning that NodeLocal DNSCache answers for Services, and which one it queries."""
    of_dns = [each for each in places if each.port == _DNS]
    own = dict.fromkeys(each.address for each in of_dns if each.address.is_link_local)
    if not own:
        return []
    hidden: dict[str, None] = {}
    asked: dict[str, None] = {}
    for service in services:
        for frontend in service.frontends:
            if frontend.port != _DNS or frontend.kind is not FrontendKind.CLUSTER_IP:
                continue
            told = f"{service.name.namespace}/{service.name.service} at {frontend}"
            here = any(each.holds(frontend, service.protocol) for each in places)
            # A rule exempts it, and the evaluation of all rules confirms that.
            is_hidden = here and service.state(frontend) is FrontendState.ASTRAY
            (hidden if is_hidden else asked)[told] = None
    named = [each for each in asked if _UPSTREAM in each]
    asked = dict.fromkeys(named or asked)
    cache = ", ".join(map(str, own))
    answers = f"flows to {cache}" + "".join(f" and to {each}" for each in hidden)
    if asked:
        rest = (
            "for DNS, what counts is the cache's own queries: the shares and losses of "
            f"{' and '.join(asked)}, from the node"
        )
    else:
        rest = (
            "the Service that the cache itself queries, kube-dns-upstream, is not in the dump: "
            "what DNS queries lose is not known"
        )
    message = (
        f"NodeLocal DNSCache answers on this node: {answers} are kept from conntrack (NOTRACK) and "
        f"never translated; {rest}"
    )
    return [
        Diagnostic(
            severity=Severity.WARNING,
            code="node-local-dns",
            message=message,
            file=file,
            line=of_dns[0].line,
        )
    ]


def _likely(rules: Sequence[Rule]) -> Iterator[Rule]:
    """Yield the rules that may exempt flows from conntrack; the others need not be parsed."""
    if not isinstance(rules, RuleRows):
        yield from rules
        return
    for at, line in enumerate(rules.lines):
        if any(word in line for word in EXEMPTING):
            yield rules.understand(rules.number(at), line)


def _read(rule: Rule) -> Untracked | None:
    match rule.target:
        case NoTrack() | ConnectionTracking(no_track=True):
            return _place(rule.matches, rule.location.line)
        case _:
            return None


def _place(matches: tuple[Match, ...], line: int) -> Untracked | None:
    address: Address | None = None
    protocol: str | None = None
    port: int | None = None
    for match in matches:
        match match:
            case MatchDestination(network) if network.num_addresses == 1:
                address = network.network_address
            case MatchProtocol(text):
                protocol = text
            case MatchTcp() | MatchUdp() if match.source_port is None:
                asked = match.destination_port
                if asked is None:
                    continue
                if asked.negated or asked.value.first != asked.value.last:
                    return None
                port = asked.value.first
            case MatchComment():
                continue
            case _:
                return None  # it matches on something else too
    return None if address is None else Untracked(address, protocol, port, line)
