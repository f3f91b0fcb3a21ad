"""What a node makes of one new flow to a Service: by the naive interpreters, as far as nat tells.

It shares no code with analyzer/semantics or analyzer/kubeproxy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from analyzer.model.addresses import IPV4, Address
from analyzer.model.iptables import matches as m
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.options import AddressRange, Option, Range
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.nft.ruleset import NftRuleset, Table
from analyzer.semantics.base_chains import Rules
from tests.support.naive import hooks
from tests.support.naive.draws import Script, distribution
from tests.support.naive.nft import Flow, Verdict
from tests.support.naive.node import Ended, Node, registrations

#: Matches of IPv6 on headers that packets of the flows asked about do not have.
_OPTIONAL_HEADERS: Final = frozenset({"ipv6header", "frag", "rt", "dst"})
#: Where nat changes destinations; what is called later is met behind it.
_DSTNAT: Final = -100


@dataclass(frozen=True)
class Sent:
    """Where nat sends a flow, and whether it then gets another source; None: it is lost there."""

    address: Address
    port: int
    masqueraded: bool | None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A new flow: where from, where to, and the device by which an endpoint's answer comes."""

    source: Address
    destination: Address
    port: int
    protocol: str
    device: str
    made_here: bool
    device_of: Callable[[Address], str] = lambda _: "eth0"
    #: A pod of this node gets no answer to what returns to it with its own address as the source.
    is_pod_here: bool = False


def truth(
    rulesets: Sequence[Rules], own: Sequence[Address], asked: Asked
) -> dict[Sent | None, Fraction]:
    """Return the exact distribution over where nat sends a flow; None: to no endpoint."""

    return distribution(
        lambda script: _node(rulesets, own, asked, script).sent(made_here=asked.made_here)
    )


def kinds(rulesets: Sequence[Rules], own: Sequence[Address], asked: Asked) -> dict[str, Fraction]:
    """Return the exact distribution over how a flow ends: drop, reject, sent or here."""
    return distribution(
        lambda script: _node(rulesets, own, asked, script).fate(made_here=asked.made_here).kind
    )


def _node(rulesets: Sequence[Rules], own: Sequence[Address], asked: Asked, script: Script) -> _Node:
    flow = Flow(
        family="ip" if asked.destination.version == IPV4 else "ip6",
        protocol=asked.protocol,
        source=asked.source,
        source_port=40000,
        destination=asked.destination,
        destination_port=asked.port,
        iif="" if asked.made_here else asked.device,
        own=frozenset(own),
    )
    node = _Node(
        flow,
        script,
        "eth0",
        client=asked.source,
        came_by=asked.device,
        device_of=asked.device_of,
        is_pod_here=asked.is_pod_here,
    )
    given = [r if isinstance(r, Ruleset) else _tables(r) for r in rulesets]
    for row in registrations(given):
        for each in row:
            each(node)
    return node


def _tables(ruleset: Rules) -> list[Table]:
    assert isinstance(ruleset, NftRuleset)
    return list(ruleset.tables.values())


@dataclass
class _Node(Node):
    """One flow through the hooks, nat's verdict looked at on the way."""

    decided: bool = field(default=False)
    client: Address = field(kw_only=True)
    came_by: str = field(kw_only=True)
    device_of: Callable[[Address], str] = field(kw_only=True)
    is_pod_here: bool = field(kw_only=True)

    def iptables(self, ruleset: Ruleset, table: str, hook: str) -> None:
        walk = _Walk(self, ruleset)
        try:
            walk.base(table, hook)
        except hooks.Ended as ended:
            raise Ended(str(ended)) from None

    def sent(self, *, made_here: bool) -> Sent | None:
        flow = self.flow
        hook = "OUTPUT" if made_here else "PREROUTING"
        flow.oif = self.out() if made_here else ""
        try:
            for priority, calls in self.hooks[hook].entries:
                if priority <= _DSTNAT:
                    calls(self)
        except Ended:
            return None
        if not self.decided:
            return None
        to = flow.destination, flow.destination_port
        return Sent(*to, self._masqueraded(hook, made_here=made_here))

    def _masqueraded(self, hook: str, *, made_here: bool) -> bool | None:
        flow = self.flow  # all of OUTPUT sees the device of the first destination
        try:
            for priority, calls in self.hooks[hook].entries:
                if priority > _DSTNAT:
                    calls(self)
            stays = not made_here and flow.destination in flow.own
            flow.oif = "" if stays else self.out()
            if not stays and not made_here:
                self.call("FORWARD")
            self.call("INPUT" if stays else "POSTROUTING")
            if made_here and flow.destination in flow.own:
                flow.iif, flow.oif = "lo", ""
                self.call("PREROUTING")
                self.call("INPUT")
        except Ended:
            return None
        if self.is_pod_here and flow.destination == self.client and not flow.snat:
            return None
        return flow.snat if self._is_answered(made_here=made_here) else None

    def _is_answered(self, *, made_here: bool) -> bool:
        """Send the endpoint's answer back through the hooks; tell whether it gets there."""
        flow = self.flow
        here = flow.destination in flow.own
        client = self.client, 40000
        self.flow = answer = replace(
            flow,
            source=flow.destination,
            source_port=flow.destination_port,
            destination=next(iter(flow.own)) if flow.snat else client[0],
            destination_port=50000 if flow.snat else client[1],
            mark=0,
            untracked=False,
            seen=None,
            zones=None,
            answers=flow.seen,
            done={"source", "destination"},
            iif="" if here else self.device_of(flow.destination),
            oif=self._back(made_here=made_here) if here else "",
        )
        entering, leaving = "OUTPUT" if here else "PREROUTING", "POSTROUTING"
        try:
            self._around(entering, _DSTNAT, before=True)
            if answer.untracked or _zone_of_answers(answer) != _zone_of_answers(flow):
                return False
            answer.destination, answer.destination_port = client
            self._around(entering, _DSTNAT, before=False)
            if made_here and not here:
                leaving = "INPUT"
            else:
                answer.oif = self._back(made_here=made_here)
            if not made_here and not here:
                self.call("FORWARD")
            self._around(leaving, -_DSTNAT, before=True)
            assert flow.seen is not None
            answer.source, answer.source_port = flow.seen[2:]
            self._around(leaving, -_DSTNAT, before=False)
            if made_here and here:
                answer.iif, answer.oif = "lo", ""
                self.call("PREROUTING")
                self.call("INPUT")
        except Ended:
            return False
        return True

    def out(self) -> str:
        to = self.flow.destination
        return "lo" if to in self.flow.own else self.device_of(to)

    def _back(self, *, made_here: bool) -> str:
        return "lo" if made_here else self.came_by

    def _around(self, hook: str, nat: int, *, before: bool) -> None:
        for priority, calls in self.hooks[hook].entries:
            if (priority <= nat) is before:
                calls(self)

    def settled(self, verdict: Verdict, hook: str) -> None:
        super().settled(verdict, hook)
        self.decided |= verdict.kind == "dnat"


def _zone_of_answers(flow: Flow) -> int:
    return 0 if flow.zones is None else flow.zones[1]


class _Walk:
    """One table of iptables, every match of captures understood."""

    def __init__(self, node: _Node, ruleset: Ruleset) -> None:
        self._node = node
        self._flow = node.flow
        self._ruleset = ruleset

    def base(self, table: str, hook: str) -> None:
        held = self._ruleset.tables[table]
        if hook not in held.chains:
            return
        flow = self._flow
        match self._chain(table, hook):
            case None | t.Return():
                if held.chains[hook].policy == "DROP":
                    raise hooks.Ended("drop")
            case t.Accept():
                pass
            case t.Drop():
                raise hooks.Ended("drop")
            case t.Reject():
                raise hooks.Ended("reject")
            case t.Dnat(to):
                assert to.first_address is not None
                before = flow.destination, flow.destination_port
                flow.destination = to.first_address
                flow.destination_port = to.first_port or flow.destination_port
                flow.dnat |= before != (flow.destination, flow.destination_port)
                flow.done.add("destination")
                self._node.decided = True
            case t.Masquerade() | t.Snat():
                flow.snat = True
                flow.done.add("source")
            case other:
                raise AssertionError(other)

    def _chain(self, table: str, name: str) -> t.Target | None:
        flow = self._flow
        for rule in self._ruleset.tables[table].chains[name].rules:
            if not all(self._holds(match) for match in rule.matches):
                continue
            match rule.target:
                case None:
                    pass
                case t.Jump(to):
                    found = self._chain(table, to)
                    if found is not None:
                        return found
                case t.Goto(to):
                    return self._chain(table, to)
                case t.Return():
                    return None
                case t.SetMark(value, mask):
                    flow.mark = flow.mark & ~mask ^ value
                case t.SetConnmark(value, mask):
                    if flow.seen is not None and not flow.untracked:
                        flow.flow_mark = flow.flow_mark & ~mask ^ value
                case t.NoTrack() | t.ConnectionTracking(no_track=True):
                    flow.exempt()
                case t.ConnectionTracking(zone=both, zone_original=first, zone_reply=second):
                    if flow.seen is None and flow.zones is None and not flow.untracked:
                        flow.zones = int(both or first or 0), int(both or second or 0)
                case _:
                    return rule.target
        return None

    def _holds(self, match: m.Match) -> bool:
        flow = self._flow
        match match:
            case m.MatchNot(inner):
                return not self._holds(inner)
            case m.MatchComment() | m.MatchNfacct():
                return True
            case m.MatchMark(mark):
                return flow.mark & mark.mask == mark.value
            case m.MatchConnmark(mark):
                return not flow.untracked and flow.flow_mark & mark.mask == mark.value
            case m.MatchSource(network):
                return flow.source in network
            case m.MatchDestination(network):
                return flow.destination in network
            case m.MatchProtocol(name):
                return flow.protocol == name
            case m.MatchInInterface(name):
                return flow.iif == name
            case m.MatchOutInterface(name):
                return flow.oif == name
            case m.MatchTcp(source_port=source, destination_port=to):
                return self._ports("tcp", source, to)
            case m.MatchUdp(source_port=source, destination_port=to):
                return self._ports("udp", source, to)
            case m.MatchSctp(source_port=source, destination_port=to):
                return self._ports("sctp", source, to)
            case m.MatchIprange(source=Option(AddressRange(first, last), negated)):
                return (int(first) <= int(flow.source) <= int(last)) is not negated
            case m.MatchAddrtype(source_type=source, destination_type=to):
                return self._is(source, flow.source) and self._is(to, flow.destination)
            case m.MatchRecent(action=action):
                # Nobody is in a list yet.
                return (action.value == "set") is not action.negated
            case m.MatchPhysdev(is_in=Option(True, negated)):
                return negated
            case m.MatchConntrack(state=state) if state is not None:
                return self._state(state)
            case m.MatchIcmp() | m.MatchIcmp6():
                return False  # a flow to a Service is of another protocol
            case m.MatchTtl() | m.MatchHl():
                equal, least = match.equal, -1 if match.above is None else match.above
                assert (match.below, equal is not None and equal.negated) == (None, False)
                return flow.hops > least and (equal is None or flow.hops == equal.value)
            case m.MatchUnknown(text) if text.split()[1] in _OPTIONAL_HEADERS:
                return False  # before it comes to a `!`
            case m.MatchRandom(threshold):
                chance = Fraction(threshold, 1 << 31)
                return self._node.script.draw((chance, 1 - chance)) == 0
            case _:
                raise AssertionError(match)

    def _state(self, state: Option[tuple[str, ...]]) -> bool:
        flow = self._flow
        seen = "NEW" if flow.answers is None else "ESTABLISHED"
        now = {"UNTRACKED" if flow.untracked else "INVALID" if flow.seen is None else seen}
        if flow.dnat:
            now.add("DNAT")
        return bool(now & set(state.value)) is not state.negated

    def _ports(self, protocol: str, source: Option[Range] | None, to: Option[Range] | None) -> bool:
        flow = self._flow
        asked = ((source, flow.source_port), (to, flow.destination_port))
        return flow.protocol == protocol and all(
            option is None or (port in option.value) is not option.negated for option, port in asked
        )

    def _is(self, kinds: Option[tuple[str, ...]] | None, address: Address) -> bool:
        if kinds is None:
            return True
        assert kinds.value == ("LOCAL",)
        local = address in self._flow.own or address.is_loopback
        return local is not kinds.negated
