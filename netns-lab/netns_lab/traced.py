"""Comparison of one flow of a route, as the kernel traced it, with the predicted tree.

The tree of a packet leaves out what has no effect: chains that only accept, jumps that return. So
each rule on one of its paths must be among those that the kernel matched, in order, and no other
rule that the kernel matched may end or translate a flow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.addresses import IPV4, VERSIONS, Address
from analyzer.model.flow_trace import FlowTrace
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.packet import Packet
from analyzer.parsers.nft.rendering import render_rule as render_nft
from analyzer.parsers.xt.rule import render_rule
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.tree import AnyRule, BySource, Chance, Either, Leaf, Tree
from netns_lab.command import run
from netns_lab.experiment import Lab
from netns_lab.measure import RouteRun
from netns_lab.nft import Nft
from netns_lab.topology import OUTSIDE
from netns_lab.trace import TRACING_TABLE, LegacyTrace, NftTrace

#: Statements that end, translate or take over a flow, in iptables and nft; not those words in
#: comments and names of chains.
_TARGETS: Final = re.compile(
    r" -j (?:DROP|REJECT|DNAT|SNAT|MASQUERADE|REDIRECT|NFQUEUE|QUEUE|TPROXY)\b"
)
_STATEMENTS: Final = re.compile(r"\b(?:drop|reject|dnat|snat|masquerade|redirect|queue|tproxy)\b")
_NAMES: Final = re.compile(r'"[^"]*"|\b(?:jump|goto) \S+')
#: Before anything else sees packets.
_TABLE: Final = """
table inet {name} {{
    chain prerouting {{ type filter hook prerouting priority -2000000000; {which} meta nftrace set 1; }}
    chain output {{ type filter hook output priority -2000000000; {which} meta nftrace set 1; }}
}}
"""  # noqa: E501  # as nft has it
_MOST: Final = 10_000

#: A matched rule: its text, itself, and whether it ends or translates a flow.
Matched = tuple[str, AnyRule, bool]


class _OneFlow(RouteRun):
    """A route's flows, of which one is sent."""

    def source(self) -> tuple[Address, int]:
        """Return the address and port that the flow comes from."""
        return self._flows.source(0)

    def destination(self) -> tuple[Address, int]:
        """Return the address and port that the flow is sent to."""
        return self._to

    def once(self) -> None:
        """Send the flow, and wait until it has arrived somewhere."""
        self._send(0, 1)
        self._wait_for_the_rest(1)


def traced(lab: Lab, given: Input, service: ServicePort, route: Route) -> FlowTrace | None:
    """Send one flow of a route, and return its trace; None for hairpin routes, which send none.

    Raises:
        LabError: the kernel gives no trace, or part of it got lost.
    """
    if route.source is Source.HAIRPIN:
        return None
    flow = _OneFlow(lab, service, route, 1, None)
    (source, port), (address, to_port) = flow.source(), flow.destination()
    listener = _listener(lab, service.protocol, (source, port))
    with lab.muted():
        lab.forget_flows()
        if service.affinity is not None:
            lab.backend.forget_clients()
        try:
            listener.begin()
            flow.once()
            met = listener.met()
        finally:
            listener.end()
    ruleset = lab.question.ruleset
    matched = [found for where in met if (found := _rule(ruleset, where)) is not None]
    packet = Packet(
        protocol=service.protocol,
        source=source,
        source_port=port,
        destination=address,
        destination_port=to_port,
        in_interface=_device(lab, route.source),
    )
    rulesets = (ruleset, *lab.question.others)
    question = Question(
        packet=packet,
        assumed=given.assumed,
        addresses=lab.topology.plan.node_addresses,
    )
    family = next(name for name, version in VERSIONS.items() if version == address.version)
    tree = trace(rulesets, question, family).tree
    differs = (
        first_difference(tree, matched, ruleset.file)
        if matched
        else ("the kernel reported no rule")
    )
    return FlowTrace(
        service=service.name.text,
        source=route.source.value,
        flow=f"{_ends(source, port)} to {_ends(address, to_port)}",
        matched=tuple(text for text, _, _ in matched),
        differs=differs,
    )


def _ends(address: Address, port: int) -> str:
    return f"{address}:{port}" if address.version == IPV4 else f"[{address}]:{port}"


def _device(lab: Lab, source: Source) -> str:
    match source:
        case Source.NODE:
            return ""
        case Source.EXTERNAL:
            return OUTSIDE
        case Source.POD_ELSEWHERE:
            return "eth0"
        case _:
            plan = lab.topology.plan
            return plan.bridge or plan.client_device


# --- what the kernel matched ----------------------------------------------------------


class _Listener:
    """Reports the rules that one flow matches: table, chain and number."""

    def __init__(self, lab: Lab, which: Sequence[str]) -> None:
        self._node, self._which = lab.topology.node, which

    def begin(self) -> None:
        """Turn tracing on."""

    def met(self) -> list[tuple[str, str, int]]:
        """Return the rules that were matched since."""
        return []

    def end(self) -> None:
        """Turn tracing off."""


class _Legacy(_Listener):
    @property
    def _version(self) -> int:
        return 6 if ":" in self._which[1] else IPV4

    def begin(self) -> None:
        self._trace = LegacyTrace(self._node, self._version)
        self._change("I")
        self._trace.met()

    def met(self) -> list[tuple[str, str, int]]:
        # Our rule is the first of these chains.
        return [
            (table, chain, number - (table == "raw" and chain in {"PREROUTING", "OUTPUT"}))
            for table, chain, number in self._trace.met()
        ]

    def end(self) -> None:
        self._change("D")
        self._trace.close()

    def _change(self, how: str) -> None:
        protocol, source, port = self._which
        rule = f"-s {source} -p {protocol} -m {protocol} --sport {port} -j TRACE"
        lines = [f"-{how} {chain} {rule}" for chain in ("PREROUTING", "OUTPUT")]
        text = "\n".join(["*raw", *lines, "COMMIT"]) + "\n"
        program = "iptables" if self._version == IPV4 else "ip6tables"
        run(self._node, [f"{program}-legacy-restore", "--noflush"], text)


class _Nft(_Listener):
    def begin(self) -> None:
        protocol, source, port = self._which
        family = "ip6" if ":" in source else "ip"
        which = f"{family} saddr {source} {protocol} sport {port}"
        Nft(self._node).run(_TABLE.format(name=TRACING_TABLE, which=which))
        self._trace = NftTrace(self._node)
        self._trace.learn()
        self._trace.met()

    def met(self) -> list[tuple[str, str, int]]:
        return [
            (f"{each.family} {each.table}", each.chain, each.number)
            for each in self._trace.met()
            if each.number is not None
        ]

    def end(self) -> None:
        Nft(self._node).run(f"delete table inet {TRACING_TABLE}")
        self._trace.close()


def _listener(lab: Lab, protocol: str, source: tuple[Address, int]) -> _Listener:
    which = protocol, str(source[0]), str(source[1])
    if lab.question.backend != "legacy":
        return _Nft(lab, which)
    return _Legacy(lab, which)


def _rule(ruleset: Rules, where: tuple[str, str, int]) -> Matched | None:
    """Return a rule of the dump; None if it is another table's, or the end of a chain."""
    name, chain_name, number = where
    if isinstance(ruleset, NftRuleset):
        family, _, table_name = name.partition(" ")
        table = ruleset.tables.get((family, table_name))
        chain = None if table is None else table.chains.get(chain_name)
        if chain is None or not 1 <= number <= len(chain.rules):
            return None
        rule = chain.rules[number - 1]
        text = render_nft(rule)
        decides = _STATEMENTS.search(_NAMES.sub("", text)) is not None
        return f"{name} {chain_name}: {text}", rule, decides
    assert isinstance(ruleset, Ruleset)
    table_name = name.rpartition(" ")[2]
    own = ruleset.tables.get(table_name)
    held = None if own is None else own.chains.get(chain_name)
    if held is None or not 1 <= number <= len(held.rules):
        return None
    found = held.rules[number - 1]
    text = render_rule(chain_name, found)
    decides = _TARGETS.search(_NAMES.sub("", text)) is not None
    return f"{table_name}: {text}", found, decides


# --- beside what was predicted --------------------------------------------------------


def first_difference(tree: Tree, matched: Sequence[Matched], file: str) -> str | None:
    """Return where the kernel's path left the tree; None if it is one of the tree's.

    Only rules of `file` are compared; the node's other dumps are not traced here.
    """
    places = [(each.location.file, each.location.line) for _, each, _ in matched]
    texts = [text for text, _, _ in matched]
    decides = [each for _, _, each in matched]
    furthest, expected = 0, ""

    def onwards(node: Tree, at: int) -> bool:
        nonlocal furthest, expected
        for rule in node.rules:
            if rule.location.file != file:
                continue
            place, begun = (rule.location.file, rule.location.line), at
            while at < len(places) and places[at] != place and not decides[at]:
                at += 1
            if at >= len(places) or places[at] != place:
                # If nothing else decides, it is missing right after the rule before it.
                wrong = begun if at >= len(places) else at
                if wrong >= furthest:
                    furthest, expected = wrong, str(rule.location)
                return False
            at += 1
        match node:
            case Leaf():
                rest = next((n for n in range(at, len(texts)) if decides[n]), None)
                if rest is not None and rest >= furthest:
                    furthest, expected = rest, "no such rule"
                return rest is None
            case Chance() | Either() | BySource():
                return any(onwards(child, at) for child in _children(node))

    if onwards(tree, 0):
        return None
    there = texts[furthest] if furthest < len(texts) else "nothing more"
    return f"rule {furthest + 1}: the kernel matched {there}; expected {expected}"


def _children(node: Chance | Either | BySource) -> Iterator[Tree]:
    for each in node.branches:
        yield each[1] if isinstance(each, tuple) else each
