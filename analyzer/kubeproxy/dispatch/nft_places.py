"""Addresses and ports that nft rules and verdict maps match, followed from the hooks.

Theory of operation
===================

A chain is followed with what is known of the packets that reach it: their destination, their
protocol, their port. Matches and the keys of verdict maps add to it, in any order and over any
number of chains. Once protocol and port are known, what the rule does with such packets is what
a frontend leads to, and nothing after it is followed. The names of chains and maps do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address

from analyzer.kubeproxy.dispatch.nft_chains import elements_of
from analyzer.model.addresses import Address
from analyzer.model.nft.expressions import (
    Concat,
    Drop,
    Expression,
    Fib,
    Goto,
    Jump,
    Meta,
    Payload,
    SetRef,
)
from analyzer.model.nft.ruleset import Rule, Table
from analyzer.model.nft.statements import Dnat, Match, Reject, Vmap
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Protocols with ports that a Service can have.
_PROTOCOLS: Final = frozenset({"tcp", "udp", "sctp"})


@value(kw_only=True)
class PacketPattern:
    """What is known of packets, and what is done with them.

    Attributes:
        address: their destination; None: not matched on.
        among: a named set of addresses that has their destination, as for NodePorts.
        is_local: any address of the node is matched.
        verdict: Jump, Goto, Drop, Reject or Dnat; None: not known yet.
        comment: of the element or the rule.
    """

    address: Address | None = None
    among: str | None = None
    is_local: bool = False
    protocol: str | None = None
    port: int | None = None
    verdict: Expression | Reject | Dnat | None = None
    comment: str | None = None

    @property
    def is_of_service(self) -> bool:
        """Whether some destination is matched, as for a Service, and not only a port."""
        return self.address is not None or self.among is not None or self.is_local


#: Nothing is known.
_ANY: Final = PacketPattern()


def places(
    table: Table, starts: Iterable[str], take: Callable[[str], bool] | None = None
) -> Iterator[PacketPattern]:
    """Yield what the rules reached from the chains `starts` do with packets to an address and port.

    Or to a port of any address, which belongs to no Service. `take` is called with the names of
    maps
    from address, protocol and port in which all packets are looked up; the elements of a map for
    which it returns True are not yielded.
    """
    seen: set[tuple[str, PacketPattern]] = set()
    rest: list[tuple[str, PacketPattern]] = [(name, _ANY) for name in starts]
    while rest:
        at = rest.pop(0)
        if at in seen or at[0] not in table.chains:
            continue
        seen.add(at)
        for rule in table.chains[at[0]].rules:
            for place in of_rule(rule, table, at[1], take):
                if place.protocol is not None and place.port is not None:
                    yield place
                    continue
                match place.verdict:
                    case Jump(chain) | Goto(chain):
                        rest.append((chain, replace(place, verdict=None, comment=None)))
                    case _:
                        pass


def of_rule(
    rule: Rule,
    table: Table,
    known: PacketPattern = _ANY,
    take: Callable[[str], bool] | None = None,
) -> Iterator[PacketPattern]:
    """Yield what one rule does with the packets that it matches, of which `known` is known."""
    for statement in rule.statements:
        match statement:
            case Match("==", left, right):
                known = _with(known, left, right) or known
            case Jump() | Goto() | Drop() | Reject() | Dnat():
                yield replace(known, verdict=statement, comment=rule.comment)
            case Vmap(key, SetRef(name)) if (
                take is not None and known == _ANY and _is_whole(key) and take(name)
            ):
                pass
            case Vmap(key):
                yield from _of_map(statement, _roles(key), known, table)
            case _:
                pass


def _of_map(
    given: Vmap, roles: Sequence[Expression], known: PacketPattern, table: Table
) -> Iterator[PacketPattern]:
    for element in elements_of(given, table):
        keys = element.key.parts if isinstance(element.key, Concat) else (element.key,)
        if len(keys) != len(roles):
            continue
        place: PacketPattern | None = known
        for role, key in zip(roles, keys, strict=True):
            place = place and _with(place, role, key)
        if place is not None:
            yield replace(place, verdict=element.value, comment=element.comment)


def _is_whole(key: Expression) -> bool:
    """Return whether a key is address, protocol and port, in this order."""
    match key:
        case Concat((Payload("ip" | "ip6", "daddr"), Meta("l4proto"), Payload("th", "dport"))):
            return True
        case _:
            return False


def _roles(key: Expression) -> Sequence[Expression]:
    return key.parts if isinstance(key, Concat) else (key,)


def _with(known: PacketPattern, left: Expression, right: Expression) -> PacketPattern | None:
    """Return what is known after ``left == right``; None: nothing new."""
    match left, right:
        case Payload("ip" | "ip6", "daddr"), _:
            match right:
                case IPv4Address() | IPv6Address():
                    return replace(known, address=right)
                case SetRef(name):
                    return replace(known, among=name)
                case _:
                    return None
        case Fib("type", flags), "local" if "daddr" in flags:
            return replace(known, is_local=True)
        case ((Meta("l4proto") | Payload("ip", "protocol")), str(protocol)):
            return replace(known, protocol=protocol) if protocol in _PROTOCOLS else None
        case Payload("th", "dport"), int(port):
            return replace(known, port=port)
        case Payload(protocol, "dport"), int(port) if protocol in _PROTOCOLS:
            return replace(known, protocol=protocol, port=port)
        case _:
            return None
