"""The rules that one flow matches on the node, as the kernel reports them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analyzer.model.addresses import IPV4, Address
from analyzer.model.iptables.rules import Chain
from analyzer.model.nft.ruleset import Chain as NftChain
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.value import replace
from analyzer.parsers.nft.rendering import render_rule as render_nft
from analyzer.parsers.xt.rule import render_rule
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.tree import AnyRule
from netns_lab.backend import LEFT_OUT, Backend
from netns_lab.command import run
from netns_lab.iptables import LegacyIptables
from netns_lab.loaded_nodes import LoadedNode
from netns_lab.namespace import Namespace
from netns_lab.nft import Nft
from netns_lab.trace import TRACING_TABLE, LegacyTrace, NftEvent, NftTrace

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

#: Statements that end, translate or take over a flow, in iptables and nft; not those words in
#: comments and names of chains.
_TARGETS: Final = re.compile(
    r" -j (?:DROP|REJECT|DNAT|SNAT|MASQUERADE|REDIRECT|NFQUEUE|QUEUE|TPROXY)\b"
)
_STATEMENTS: Final = re.compile(r"\b(?:drop|reject|dnat|snat|masquerade|redirect|queue|tproxy)\b")
_ENDS: Final = re.compile(r" -j (?:DROP|REJECT)\b")
_NAMES: Final = re.compile(r'"[^"]*"|\b(?:jump|goto) \S+')
#: Before anything else sees packets.
_TABLE: Final = """
table inet {name} {{
    chain prerouting {{ type filter hook prerouting priority -2000000000; {rules} }}
    chain output {{ type filter hook output priority -2000000000; {rules} }}
}}
"""
#: A matched rule: its text, itself, and whether it ends or translates a flow.
Matched = tuple[str, AnyRule, bool]
#: A rule: table (of nft and iptables-nft with its family), chain, and number from 1.
Where = tuple[str, str, int]
#: Verdicts after which the kernel does not continue with a packet.
_OVER: Final = frozenset({"drop", "stolen"})
#: Files and lines of rules.
LeftOut = frozenset[tuple[str, int | None]]
_NONE: Final[LeftOut] = frozenset()
#: In place of a policy's number.
_BEHIND: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedFlows:
    """The packets that are traced.

    Attributes:
        sources: their addresses and ports; a port of None is any.
        opening: of TCP, only those that open connections.
    """

    protocol: str
    sources: tuple[tuple[Address, int | None], ...]
    opening: bool = False

    @property
    def version(self) -> int:
        """Their IP version."""
        return self.sources[0][0].version


class Listener:
    """Reports the rules that one flow matches: table, chain and number from 1.

    A number behind that of the last rule is the end of the chain.
    """

    def __init__(self, node: Namespace, flows: TracedFlows) -> None:
        self._node, self._flows = node, flows

    def begin(self) -> None:
        """Turn tracing on."""

    def met(self) -> list[Where]:
        """Return the rules that were matched since."""
        return []

    def ended(self) -> Where | None:
        """Return where the flow ended, of those that were matched last; None if it went on.

        What matched a rule last may have been accepted by it.
        """
        return None

    def end(self) -> None:
        """Turn tracing off."""


class _Legacy(Listener):
    def begin(self) -> None:
        self._trace = LegacyTrace(self._node, self._flows.version)
        self._change("I")
        self._trace.met()

    def met(self) -> list[Where]:
        # Our rules are the first of these chains.
        ours = dict.fromkeys((("raw", "PREROUTING"), ("raw", "OUTPUT")), len(self._flows.sources))
        self._met = [
            (table, chain, number - ours.get((table, chain), 0))
            for table, chain, number in self._trace.met()
        ]
        return self._met

    def ended(self) -> Where | None:
        return self._met[-1] if self._met else None

    def end(self) -> None:
        self._change("D")
        self._trace.close()

    def _change(self, how: str) -> None:
        protocol = self._flows.protocol
        opening = " --syn" if self._flows.opening and protocol == "tcp" else ""
        lines = [
            f"-{how} {chain} -s {source} -p {protocol} -m {protocol}"
            f"{'' if port is None else f' --sport {port}'}{opening} -j TRACE"
            for source, port in self._flows.sources
            for chain in ("PREROUTING", "OUTPUT")
        ]
        text = "\n".join(["*raw", *lines, "COMMIT"]) + "\n"
        program = "iptables" if self._flows.version == IPV4 else "ip6tables"
        run(self._node, [f"{program}-legacy-restore", "--noflush"], text)


class _Nft(Listener):
    def begin(self) -> None:
        protocol = self._flows.protocol
        family = "ip" if self._flows.version == IPV4 else "ip6"
        of_protocol = f"meta l4proto {protocol}"
        if self._flows.opening and protocol == "tcp":
            of_protocol = "tcp flags & (syn | ack) == syn"
        rules = [
            f"{family} saddr {source} "
            f"{of_protocol if port is None else f'{of_protocol} {protocol} sport {port}'} "
            "meta nftrace set 1;"
            for source, port in self._flows.sources
        ]
        Nft(self._node).run(_TABLE.format(name=TRACING_TABLE, rules=" ".join(rules)))
        self._trace = NftTrace(self._node)
        self._trace.learn()
        self._trace.met()

    def met(self) -> list[Where]:
        events = self._trace.met()
        over = [_place(each) for each in events if each.verdict in _OVER]
        self._ended = over[-1] if over else None
        return [_place(each) for each in events if each.number is not None]

    def ended(self) -> Where | None:
        return self._ended

    def end(self) -> None:
        Nft(self._node).run(f"delete table inet {TRACING_TABLE}")
        self._trace.close()


def _place(event: NftEvent) -> Where:
    number = _BEHIND if event.number is None else event.number
    return f"{event.family} {event.table}", event.chain, number


def listeners(
    lab: Lab, protocol: str, source: tuple[Address, int], by: Sequence[Address] = ()
) -> list[Listener]:
    """Return what reports the rules that flows from an address and port match.

    The first one reports those of the dump; one more reports the node's other rules, if the
    dump's reports none of that kind. Nodes with the addresses `by` may have masqueraded the flows.
    """
    flows = _flows(protocol, source, by)
    return _listeners(lab.topology.node, (lab.backend, *lab.beside), flows)


def listeners_at(
    node: LoadedNode, protocol: str, source: tuple[Address, int], by: Sequence[Address]
) -> list[Listener]:
    """Return what reports the rules of another node, as `listeners` does of the lab's own."""
    return _listeners(node.namespace, node.backends, _flows(protocol, source, by))


def _flows(protocol: str, source: tuple[Address, int], by: Sequence[Address]) -> TracedFlows:
    """Return the packets of flows from an address and port, also masqueraded by any of `by`.

    Then only what opens a connection is traced: nodes' own answers have their addresses, too.
    """
    sources = tuple((each, None) for each in dict.fromkeys(by))
    # Each packet is to match once.
    own = () if source[0] in by else (source,)
    return TracedFlows(protocol=protocol, sources=(*sources, *own), opening=bool(by))


def _listeners(node: Namespace, backends: Sequence[Backend], flows: TracedFlows) -> list[Listener]:
    of_legacy = [isinstance(each, LegacyIptables) for each in backends]
    return [
        _Legacy(node, flows) if each else _Nft(node, flows) for each in dict.fromkeys(of_legacy)
    ]


def not_loaded(lab: Lab) -> LeftOut:
    """Return the rules of the node's dumps that were not loaded: their files and lines."""
    return frozenset((note.file, note.line) for note in lab.notes if note.code == LEFT_OUT)


def rule_at(ruleset: Rules, where: Where, left_out: LeftOut = _NONE) -> Matched | None:
    """Return a rule of the dump; None if it is another table's, or the end of a chain.

    The kernel does not count the rules that were `left_out`.
    """
    name, chain_name, number = where
    chain = _chain(ruleset, where, left_out)
    if chain is None or not 1 <= number <= len(chain.rules):
        return None
    if isinstance(chain, NftChain):
        found = chain.rules[number - 1]
        text = render_nft(found)
        decides = _STATEMENTS.search(_NAMES.sub("", text)) is not None
        return f"{name} {chain_name}: {text}", found, decides
    rule = chain.rules[number - 1]
    text = render_rule(chain_name, rule)
    decides = _TARGETS.search(_NAMES.sub("", text)) is not None
    return f"{name.rpartition(' ')[2]}: {text}", rule, decides


def ending_at(ruleset: Rules, where: Where, left_out: LeftOut = _NONE) -> str | None:
    """Return the rule or the policy of a dump that ended a flow; None if it ends none."""
    name, chain_name, number = where
    chain = _chain(ruleset, where, left_out)
    if chain is None:
        return None
    if number > len(chain.rules):
        if (chain.policy or "").lower() != "drop":
            return None
        is_nft = isinstance(chain, NftChain)
        return (
            f"{name} {chain_name}: policy drop"
            if is_nft
            else f"{name.rpartition(' ')[2]}: -P {chain_name} DROP"
        )
    found = rule_at(ruleset, where, left_out)
    if found is None or (isinstance(chain, Chain) and not _ENDS.search(found[0])):
        return None
    return found[0]


def _chain(ruleset: Rules, where: Where, left_out: LeftOut) -> Chain | NftChain | None:
    name, chain_name, _ = where
    family, _, table_name = name.rpartition(" ")
    chain: Chain | NftChain | None
    if isinstance(ruleset, NftRuleset):
        nft_table = ruleset.tables.get((family, table_name))
        chain = None if nft_table is None else nft_table.chains.get(chain_name)
    elif family not in {"", ruleset.family}:
        return None
    else:
        table = ruleset.tables.get(table_name)
        chain = None if table is None else table.chains.get(chain_name)
    if chain is None or not left_out:
        return chain
    places = [(rule.location.file, rule.location.line) for rule in chain.rules]
    kept = [rule for rule, at in zip(chain.rules, places, strict=True) if at not in left_out]
    return replace(chain, rules=kept)
