"""Where one packet can end, at the node whose rules these are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Final

from analyzer.errors import UsageError
from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.packet import UNKNOWN_MARK, Address, Packet
from analyzer.model.routing import Routes
from analyzer.model.rules import Ruleset
from analyzer.model.targets import Dnat
from analyzer.model.value import replace, value
from analyzer.semantics.assumptions import assumptions
from analyzer.semantics.fate import End, ends
from analyzer.semantics.flow_matching import FIRST
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Tree

_BROADCAST: Final = IPv4Address("255.255.255.255")


@value(kw_only=True)
class Question:
    """What is asked.

    Attributes:
        packet: with ``in_interface=""`` the node makes it.
        state: what conntrack calls it.
        affinity: the endpoint that the client's session affinity holds, if any.
        under_limits: whether traffic is within the rates of limit and hashlimit; None: not known.
        addresses: all of the node's; None: not known.
    """

    packet: Packet
    state: str = "NEW"
    affinity: Endpoint | None = None
    under_limits: bool | None = None
    addresses: tuple[Address, ...] | None = None
    routes: Routes = Routes()


@value(kw_only=True)
class Trace:
    """The answer: all ways, their ends, and what they rest on.

    Attributes:
        visited: the chains that the packet comes to, by table.
    """

    tree: Tree
    ends: tuple[End, ...]
    assumptions: tuple[str, ...]
    visited: Mapping[str, Sequence[str]]


def trace(ruleset: Ruleset, question: Question) -> Trace:
    """Walk a packet through all hooks.

    Raises:
        UsageError: the packet or the endpoint of its affinity is none of these rules'.
        ParseError: a rule on the way is malformed.
    """
    packet = question.packet
    version = 4 if ruleset.family == "ip" else 6
    for address in (packet.source, packet.destination):
        if address is not None and address.version != version:
            raise UsageError(f"{address} is not of IPv{version}, of which these rules are")
    to = packet.destination
    if to is not None and to.is_loopback and packet.in_interface != "":
        raise UsageError(f"{to}: what comes in for loopback the kernel drops; say --from-node")
    if to is not None and (to.is_multicast or to == _BROADCAST or to.is_unspecified):
        raise UsageError(f"{to} is nobody's own address: only packets to one are traced")
    if question.state not in FIRST:  # what earlier packets left on the flow nobody tells
        packet = replace(packet, flow_mark=UNKNOWN_MARK)
    own = question.addresses
    situation = Situation(
        local_addresses=None if own is None else frozenset(own),
        state=question.state,
        has_entry=question.state != "INVALID",
        flow=packet,
        lists=frozenset(_lists(ruleset, question.affinity)),
        affinity_lists=names.ENDPOINT_PREFIX,
        under_limits=question.under_limits,
    )
    hooks = Hooks(ruleset, situation, question.routes)
    tree = hooks.way(packet)
    return Trace(
        tree=tree,
        ends=ends(tree),
        assumptions=tuple(assumptions(ruleset, situation, tree, hooks.judged)),
        visited=hooks.visited,
    )


def _lists(ruleset: Ruleset, endpoint: Endpoint | None) -> Iterator[str]:
    """Give the affinity lists of an endpoint; kube-proxy names each after the KUBE-SEP chain."""
    if endpoint is None:
        return
    found = False
    nat = ruleset.tables.get("nat")
    for name, chain in nat.chains.items() if nat is not None else ():
        if not name.startswith(names.ENDPOINT_PREFIX):
            continue
        for rule in chain.rules:
            match rule.target:
                case Dnat(to) if (to.first_address, to.first_port) == (
                    endpoint.address,
                    endpoint.port,
                ):
                    found = True
                    yield name
                case _:
                    pass
    if not found:
        raise UsageError(f"--affinity {endpoint}: no Service of this dump has that endpoint")
