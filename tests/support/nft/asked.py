"""What is asked of the traversal about a flow of which everything is known, and its answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction
from typing import Any, Final

from analyzer.model.iptables import targets as t
from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.nft.ruleset import Rule
from analyzer.model.packet import Mark, Packet
from analyzer.model.value import replace
from analyzer.semantics.assumed import Assumed
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Chance, FellThrough, Leaf, Tree
from tests.support.naive.nft import Flow, Verdict

AFFINITY: Final = ("affinity-",)
_HOLDING: Final = (s.Match, s.Limit, s.SetUpdate)
_PASSING: Final = (s.Counter, s.Log, e.Continue)


def asked(flow: Flow) -> tuple[Packet, Situation]:
    """The packet and the situation that say all of `flow`."""
    packet = Packet(
        protocol=flow.protocol,
        source=flow.source,
        source_port=flow.source_port,
        destination=flow.destination,
        destination_port=flow.destination_port,
        mark=Mark(flow.mark),
        flow_mark=Mark(flow.flow_mark),
        in_interface=flow.iif,
        out_interface=flow.oif,
        tracked=not flow.untracked,
    )
    known = flow.seen is not None
    situation = Situation(
        local_addresses=flow.own,
        state="NEW" if known else "INVALID",
        has_entry=known,
        flow=packet,
        lists=flow.lists,
        affinity_lists=AFFINITY,
        assumed=Assumed({"limits": "under" if flow.under_limits else "over"}),
    )
    return packet, situation


def ways(tree: Tree) -> Iterator[tuple[Leaf, Fraction]]:
    """Each way through `tree`, as a leaf with all rules on it, with its weight.

    Raises:
        AssertionError: there is something unknown in it.
    """
    match tree:
        case Leaf():
            yield tree, Fraction(1)
        case Chance(branches):
            for weight, child in branches:
                for leaf, share in ways(child):
                    whole = replace(leaf, rules=(*tree.rules, *leaf.rules))
                    yield whole, share * weight.as_fraction()
        case _:
            raise AssertionError(tree)


def verdict_of(leaf: Leaf) -> Verdict:
    """The verdict of one table, as the naive interpreter says it."""
    match leaf.outcome:
        case FellThrough():
            return Verdict("end")
        case t.Accept():
            return Verdict("accept")
        case t.Drop():
            return Verdict("drop")
        case t.Reject(how):
            return Verdict("reject", (how,))
        case t.Dnat(to):
            assert to.last_address is None
            assert to.last_port is None
            return Verdict("dnat", (to.first_address, to.first_port))
        case t.Snat(to):
            return Verdict("snat", (to.first_address,))
        case t.Redirect():
            return Verdict("dnat", ("redirect",))
        case t.Masquerade():
            return Verdict("snat", ("masquerade",))
        case _:
            raise AssertionError(leaf)


_ANSWERS: Final = {
    ("icmpx", "port-unreachable", "ip"): "icmp-port-unreachable",
    ("icmpx", "port-unreachable", "ip6"): "icmp6-port-unreachable",
    ("icmp", "admin-prohibited", "ip"): "icmp-admin-prohibited",
    ("icmpv6", "admin-prohibited", "ip6"): "icmp6-adm-prohibited",
}


def as_iptables(verdict: Verdict, family: str) -> Verdict:
    """A verdict whose answer is said as iptables says it."""
    if verdict.kind != "reject":
        return verdict
    return Verdict("reject", (_ANSWERS[(*verdict.how, family)],))


def tells(rule: Rule) -> bool:
    """Whether it can be seen that a rule was met to its end: it did something there."""
    doing = [each for each in rule.statements if not isinstance(each, _PASSING)]
    return bool(doing) and not isinstance(doing[-1], _HOLDING) and not _looks_up(doing[-1])


def _looks_up(last: s.Statement) -> bool:
    """Whether a statement may do nothing but look up: a translation for another family."""
    return isinstance(last, s.Dnat | s.Snat) and isinstance(last.address, e.MapLookup)


def path_of(leaf: Leaf) -> tuple[str, ...]:
    """The rules that were met to their ends."""
    return tuple([rule.raw for rule in leaf.rules if isinstance(rule, Rule) and tells(rule)])


def state_of(packet: Packet) -> tuple[Any, ...]:
    """The packet behind all rules, as far as `state_behind` says it."""
    return (
        packet.mark,
        packet.flow_mark,
        packet.tracked,
        packet.masqueraded,
        packet.translated,
        packet.destination,
        packet.destination_port,
    )


def state_behind(flow: Flow, verdict: Verdict) -> tuple[Any, ...]:
    """The packet behind all rules."""
    redirected = verdict.how == ("redirect",)
    return (
        Mark(flow.mark),
        Mark(flow.flow_mark),
        not flow.untracked,
        flow.snat,
        # Whether it was redirected to the very address that it went to is not known.
        flow.dnat or (None if redirected else False),
        None if redirected else flow.destination,
        flow.destination_port,
    )


#: What may be forgotten of a packet, and what is said then.
_OF_PACKETS: Final[dict[str, dict[str, Any]]] = {
    "protocol": {"protocol": None},
    "source": {"source": None},
    "source_port": {"source_port": None},
    "destination": {"destination": None},
    "destination_port": {"destination_port": None},
    "devices": {"in_interface": None, "out_interface": None},
    "tracked": {"tracked": None},
}
_OF_NODES: Final[dict[str, dict[str, Any]]] = {
    "own": {"local_addresses": None},
    "lists": {"lists": None},
    "limits": {"assumed": None},
    "flow": {"flow": None},
}
#: All that may be forgotten.
FORGOTTEN: Final = ("mark", "flow_mark", *_OF_PACKETS, *_OF_NODES)


def forgetting(
    packet: Packet, situation: Situation, forgotten: Collection[str]
) -> tuple[Packet, Situation]:
    """The same with some of it not known."""
    for each in forgotten:
        packet = replace(packet, **_OF_PACKETS.get(each, {}))
        situation = replace(situation, **_OF_NODES.get(each, {}))
    if situation.flow is not None:
        situation = replace(situation, flow=packet)
    if "mark" in forgotten:
        packet = replace(packet, mark=packet.mark.blurred(1))
    if "flow_mark" in forgotten:
        packet = replace(packet, flow_mark=packet.flow_mark.blurred(2))
    return packet, situation


def agree(marks: tuple[Mark, Mark], real: tuple[int, int]) -> bool:
    """Whether marks, as far as they are known, are the real ones."""
    return not any(
        (mark.value ^ known) & ~mark.unknown for mark, known in zip(marks, real, strict=True)
    )
