"""Whether nft rejects a packet, and how, in the words of iptables."""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.statements import Reject, Statement
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.semantics.situation import PROTOCOL, Situation

#: iptables' names for nft's ICMP codes, if they are not just concatenated.
_ICMP: Final = {
    "prot-unreachable": "proto-unreachable",
    "no-route": "net-unreachable",
}
_ICMP6: Final = {
    "admin-prohibited": "adm-prohibited",
    "host-unreachable": "addr-unreachable",
}


def is_rejected(given: Statement, packet: Packet, family: str, situation: Situation) -> Ternary:
    """Return whether a rule with a reject applies to a packet, which nft does not print; others do.

    nft inserts a match on the protocol or family of some rejects at the beginning of the rule, and
    omits it from listings. It also omits one that was written right before the reject, so that what
    the rule changes in between may happen or not.

    Source: nftables, src/evaluate.c, ``stmt_reject_gen_dependency``.
    """
    match given:
        case Reject("tcp reset") if packet.protocol is None:
            situation.ask(PROTOCOL)
            return Ternary.UNKNOWN
        case Reject("tcp reset"):
            return Ternary.of(packet.protocol == "tcp")
        case Reject("icmp"):
            return Ternary.of(family == "ip")
        case Reject("icmpv6"):
            return Ternary.of(family == "ip6")
        case _:
            return Ternary.TRUE


def reject_name(given: Reject, family: str) -> str:
    """Return how a packet of a family is rejected, in the words of iptables.

    Source: nftables, src/datatype.c, ``icmpx_code_type``; Linux, nft_reject.c,
    ``nft_reject_icmp_code``.
    """
    if given.type == "tcp reset":
        return "tcp-reset"
    code = str(given.code)
    if family == "ip":
        return f"icmp-{_ICMP.get(code, code)}"
    return f"icmp6-{_ICMP6.get(code, code)}"
