"""A naive interpreter of nft's rules: one packet of which everything is known, rule by rule.

It shares no code with analyzer/semantics, and takes nothing from there but the values of the
model. It is nft_do_chain() written out, with its stack of jumps; each draw is asked of a script.

Source: Linux, net/netfilter/nf_tables_core.c, nft_cmp.c, nft_range.c, nft_lookup.c,
nft_bitwise.c, nft_meta.c, nft_ct.c, nft_fib.c, nft_payload.c, nft_numgen.c, nft_nat.c,
nft_masq.c, nft_redir.c, nft_reject.c, nft_dynset.c, nft_objref.c.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, TypeAlias

from analyzer.model.addresses import Address
from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.nft.ruleset import Rule, Table
from tests.support.naive.draws import Script, scaled
from tests.support.naive.values import NUMBERS, STATES, Sample, covers, number

ALL_BITS: Final = 0xFFFFFFFF


class Break(Exception):  # noqa: N818  # NFT_BREAK, no error
    """The rule ends here."""


#: The direction for which a zone of the other one is not.
_OTHER_WAY: Final = ("reply", "original")


@dataclass(kw_only=True)
class Flow:
    """A packet, its flow and the node: nothing of it is unknown.

    `seen` is the packet as it was when conntrack looked at it; None: it has not, or was told not
    to, which `untracked` tells apart. `answers` is the flow's first packet, as it was then, if this
    one answers it. `done` are the directions for which nat is settled. `zones` are those of the
    flow and of its answers, if a rule has chosen them.
    """

    family: str
    protocol: str
    source: Address
    source_port: int
    destination: Address
    destination_port: int
    hops: int = 64
    mark: int = 0
    flow_mark: int = 0
    iif: str = "eth0"
    oif: str = ""
    own: frozenset[Address] = frozenset()
    lists: frozenset[str] = frozenset()
    under_limits: bool = True
    counter: int = 0
    untracked: bool = False
    seen: tuple[Address, int, Address, int] | None = None
    dnat: bool = False
    snat: bool = False
    done: set[str] = field(default_factory=set)
    answers: tuple[Address, int, Address, int] | None = None
    zones: tuple[int, int] | None = None

    def exempt(self) -> None:
        """What ``notrack`` does: the first rule that says anything to conntrack decides."""
        self.untracked = self.untracked or (self.seen is None and self.zones is None)

    def track(self) -> None:
        """What conntrack does: an entry for what has none and is not to have none."""
        if not self.untracked and self.seen is None:
            self.seen = self.source, self.source_port, self.destination, self.destination_port


@dataclass(frozen=True)
class Verdict:
    """What ended a base chain: accept, drop, reject, a translation or, as ``end``, nothing."""

    kind: str
    how: tuple[Any, ...] = ()


_Step: TypeAlias = e.Jump | e.Goto | e.Return | Verdict | None


@dataclass
class Walk:
    """One packet in one table."""

    table: Table
    flow: Flow
    script: Script
    path: list[str] = field(default_factory=list)

    def base(self, chain: str) -> Verdict:
        """nft_do_chain()."""
        stack: list[tuple[str, int]] = []
        at = 0
        while True:
            rules = self.table.chains[chain].rules
            step: _Step = e.Return()
            if at < len(rules):
                step = self.rule(rules[at])
                at += 1
            match step:
                case None:
                    pass
                case e.Jump(to):
                    stack.append((chain, at))
                    chain, at = to, 0
                case e.Goto(to):
                    chain, at = to, 0
                case e.Return():
                    if not stack:
                        return Verdict("end")
                    chain, at = stack.pop()
                case Verdict():
                    return step

    def rule(self, rule: Rule) -> _Step:
        for each in rule.statements:
            try:
                step = self.statement(each)
            except Break:
                return None
            if step is not None:
                self.path.append(rule.raw)
                return step
        self.path.append(rule.raw)
        return None

    def statement(self, given: s.Statement) -> _Step:
        flow = self.flow
        match given:
            case s.Match("==" | "!=" as operator, left, e.Range(first, last)) if number(
                first
            ) > number(last):  # two comparisons, that nft lists as one
                signs = ("<", ">") if operator == "!=" else (">=", "<=")
                self.holds(self.compared(signs[0], self.value(left), first))
                self.holds(self.compared(signs[1], self.value(left), last))
            case s.Match(operator, left, right):
                self.holds(self.compared(operator, self.value(left), right))
            case s.Vmap(key, where):
                return self.verdict(self.found(key, where))
            case e.Accept() | e.Drop() | e.Jump() | e.Goto() | e.Return() | e.Continue():
                return self.verdict(given)
            case s.Counter() | s.Log():
                pass
            case s.Limit() | s.CtCount():
                self.holds(flow.under_limits is not given.over)
            case s.SetUpdate():
                self.value(given.element.key)
            case s.MetaSet("mark", operand):
                flow.mark = self.value(operand) & ALL_BITS
            case s.MetaSet(_, operand):
                self.value(operand)
            case s.CtSet("mark", operand):
                mark = self.value(operand) & ALL_BITS
                if flow.seen is not None:
                    flow.flow_mark = mark
            case s.CtSet("zone", int(zone), direction):
                if flow.seen is None and flow.zones is None:  # nft_ct_set_zone_eval()
                    first, second = (0 if direction == other else zone for other in _OTHER_WAY)
                    flow.zones = first, second
                    flow.untracked = False
            case s.Notrack():
                flow.exempt()
            case s.Mangle(e.Payload(_, name) as key, operand):
                self.value(key)
                setattr(flow, _FIELDS[name], self.value(operand))
            case s.Reject(kind, code):
                # nft puts `meta nfproto` before it where the table has both families.
                self.holds({"icmp": "ip", "icmpv6": "ip6"}.get(kind, flow.family) == flow.family)
                return Verdict("reject", (kind, code))
            case s.Dnat() | s.Snat():
                return self.translated(given)
            case s.Masquerade():
                flow.snat = True
                return Verdict("snat", ("masquerade",))
            case s.Redirect():
                before = flow.destination, flow.destination_port
                if given.port is not None:
                    flow.destination_port = self.value(given.port)
                flow.dnat |= before != (next(iter(flow.own), None), flow.destination_port)
                return Verdict("dnat", ("redirect",))
            case _:
                raise AssertionError(given)
        return None

    def verdict(self, given: Any) -> _Step:
        match given:
            case e.Accept():
                return Verdict("accept")
            case e.Drop():
                return Verdict("drop")
            case e.Continue():
                return None
            case e.Jump() | e.Goto() | e.Return():
                return given
            case _:
                raise AssertionError(given)

    def translated(self, given: s.Dnat | s.Snat) -> _Step:
        flow = self.flow
        # Expressions of their own, before the one that translates.
        to = None if given.address is None else self.value(given.address)
        port = None if given.port is None else self.value(given.port)
        if given.family not in {None, flow.family}:
            return None  # nft_nat_inet_eval()
        if isinstance(to, tuple):
            to, port = to
        if isinstance(given, s.Snat):
            flow.snat = True
            return Verdict("snat", (to,))
        before = flow.destination, flow.destination_port
        flow.destination = to or flow.destination
        flow.destination_port = port or flow.destination_port
        flow.dnat = flow.dnat or before != (flow.destination, flow.destination_port)
        return Verdict("dnat", (to, port))

    # --- expressions ---

    def holds(self, whether: bool) -> None:
        if not whether:
            raise Break

    def value(self, given: e.Expression) -> Any:
        flow = self.flow
        match given:
            case e.Payload(header, name):
                return self.payload(header, name)
            case e.Meta(key):
                return {
                    "mark": flow.mark,
                    "l4proto": NUMBERS[flow.protocol],
                    "nfproto": 2 if flow.family == "ip" else 10,
                    "iifname": flow.iif,
                    "oifname": flow.oif,
                    "random": Sample(32),
                }[key]
            case e.Ct(key, direction):
                return self.conntrack(key, direction)
            case e.Exthdr("exthdr", _, field):
                self.holds(field is None)  # its header is not there
                return False
            case e.Fib("type", flags):
                asked = flow.destination if "daddr" in flags else flow.source
                return "local" if asked in flow.own or asked.is_loopback else "unicast"
            case e.Numgen("inc", modulus, offset):
                return flow.counter % modulus + offset
            case e.Numgen(_, modulus, offset):
                return self.script.draw(scaled(modulus)) + offset
            case e.Concat(parts):
                return tuple([self.value(part) for part in parts])
            case e.Binary(operator, left, right):
                return self.computed(operator, self.value(left), self.value(right))
            case e.MapLookup(key, where):
                return self.value(self.found(key, where))
            case _:
                return number(given)

    def payload(self, header: str, name: str) -> Any:
        flow = self.flow
        if header in {"ip", "ip6"}:
            self.holds(header == flow.family)
        elif header != "th":
            self.holds(header == flow.protocol)
        if name in {"protocol", "nexthdr"}:
            return NUMBERS[flow.protocol]
        return getattr(flow, _FIELDS[name])

    def conntrack(self, key: str, direction: str | None) -> Any:
        flow = self.flow
        if key == "state":
            if flow.untracked:
                return STATES["untracked"]
            if flow.seen is None:
                return STATES["invalid"]
            return STATES["new" if flow.answers is None else "established"]
        if flow.seen is None:
            raise Break
        now = flow.source, flow.source_port, flow.destination, flow.destination_port
        reply = direction == "reply"
        if flow.answers is not None:
            source, port, destination, to_port = now if reply else flow.answers
        else:
            source, port, destination, to_port = (
                (now[2], now[3], now[0], now[1]) if reply else flow.seen
            )
        family, _, name = key.rpartition(" ")
        self.holds(family in {"", flow.family})
        return {
            "mark": flow.flow_mark,
            "status": 32 * flow.dnat | 16 * flow.snat | (0 if flow.answers is None else 8 | 2),
            "direction": int(flow.answers is not None),
            "saddr": source,
            "daddr": destination,
            "proto-src": port,
            "proto-dst": to_port,
        }[name]

    def computed(self, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, IPv4Address | IPv6Address):
            return type(left)(self.computed(operator, int(left), int(right)))
        if isinstance(left, Sample):
            assert operator == "&", operator
            assert right & (right + 1) == 0, right
            left = Sample(right.bit_length())
            return self.script.draw(left.weights) if right <= NUMBERS["few"] else left
        match operator:
            case "&":
                return left & right
            case "|":
                return left | right
            case "^":
                return left ^ right
            case "<<":
                return left << right & ALL_BITS
            case ">>":
                return left >> right
            case _:
                raise AssertionError(operator)

    # --- comparisons and look-ups ---

    def compared(self, operator: str, left: Any, right: Any) -> bool:
        if isinstance(left, Sample):
            # Too many to draw one by one: how many of them hold.
            low, high = left.held(operator, number(right))
            share = Fraction(high - low, 1 << left.bits)
            return self.script.draw((share, 1 - share)) == 0
        match operator:
            case "==" | "!=":
                return self.within(left, right) is (operator == "==")
            case "in":
                return bool(left & number(right))
            case "!":
                return not left & number(right)
            case "<":
                return bool(left < number(right))
            case "<=":
                return bool(left <= number(right))
            case ">":
                return bool(left > number(right))
            case _:
                return bool(left >= number(right))

    def within(self, left: Any, right: Any) -> bool:
        if isinstance(right, e.SetRef) and right.name.startswith("affinity-"):
            return right.name in self.flow.lists
        if isinstance(right, e.SetRef | e.AnonymousSet):
            return self.element(left, right) is not None
        return covers(right, left)

    def found(self, key: e.Expression, where: Any) -> Any:
        element = self.element(self.value(key), where)
        if element is None:
            raise Break
        return element.value

    def element(self, key: Any, where: Any) -> e.Element | None:
        elements = self.table.sets[where.name] if isinstance(where, e.SetRef) else where
        others = None
        for each in elements.elements:
            if isinstance(each.key, e.Wildcard):
                others = each
            elif covers(each.key, key):
                return each
        return others


_FIELDS: Final = {
    "saddr": "source",
    "daddr": "destination",
    "sport": "source_port",
    "dport": "destination_port",
    "ttl": "hops",
    "hoplimit": "hops",
}
