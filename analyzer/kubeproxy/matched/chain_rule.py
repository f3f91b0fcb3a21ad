"""What a rule of kube-proxy's chains matches on, and where it leads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final, TypeAlias

from analyzer.kubeproxy import names
from analyzer.model.addresses import Address, Network, address_to_text, network_to_text
from analyzer.model.iptables.matches import (
    Match,
    MatchAddrtype,
    MatchComment,
    MatchDestination,
    MatchMark,
    MatchNfacct,
    MatchNot,
    MatchProtocol,
    MatchRandom,
    MatchRecent,
    MatchSctp,
    MatchSource,
    MatchTcp,
    MatchUdp,
)
from analyzer.model.iptables.options import Masked, Option
from analyzer.model.iptables.rules import Chain, Rule
from analyzer.model.iptables.targets import Dnat, Goto, Jump, NatRange, SetMark, TargetUnknown
from analyzer.parsers.rows import RuleRows
from analyzer.parsers.xt.targets import TARGET_NAMES

#: Address as a number (None: any of the node), protocol and port of a frontend.
FrontendKey: TypeAlias = tuple[int | None, str, int | None]

_PROBABILITY: Final = re.compile(r" --probability (\S+)")
#: Targets after which a packet traverses no further rule of the base chain.
_FINAL: Final = frozenset(
    {"ACCEPT", "DROP", "REJECT", "DNAT", "SNAT", "MASQUERADE", "REDIRECT", "QUEUE", "NFQUEUE"}
)


class ChainRule:
    """A rule and the chain that it is in.

    Attributes:
        target: a chain or a target's name; None: it only counts.
        is_jump: whether `target` is a chain, declared or not.
        source: the network; None if none is matched.
        host: the single address that it matches as destination.
        port: the destination port; None if none is matched, or not a single one.
        asks_port: whether it matches on the destination port, a single one or not.
        comment: empty if it has none.
        is_random: whether it has ``-m statistic`` of random mode.
        recent: ``-m recent``, not negated, as session affinity uses it.
        local: whether the destination has to be an address of the node.
        others: whether it has other matches, or more than one on the same.
    """

    source: Network | None = None
    source_negated = False
    destination: Network | None = None
    destination_negated = False
    host: Address | None = None
    protocol: str | None = None
    port: int | None = None
    asks_port = False
    comment = ""
    is_random = False
    recent: MatchRecent | None = None
    mark: Masked | None = None
    mark_negated = False
    local = False
    others = False

    def __init__(self, chain: str, rule: Rule) -> None:
        self.chain = chain
        self.rule = rule
        self.target, self.is_jump = _target(rule)
        for match in rule.matches:
            self._take(match)

    def _take(self, match: Match) -> None:
        match match:
            case MatchComment(text) if not self.comment:
                self.comment = text
            case MatchProtocol(protocol) if self.protocol is None:
                self.protocol = protocol
            case MatchDestination(network) if self.destination is None:
                self.destination = network
                if network.prefixlen == network.max_prefixlen:
                    self.host = network.network_address
            case MatchTcp() | MatchUdp() | MatchSctp():
                self._take_ports(match)
            case MatchSource(network) if self.source is None:
                self.source = network
            case MatchNot(inner):
                self._take_negated(inner)
            case MatchRandom() if not self.is_random:
                self.is_random = True
            case MatchRecent(action=Option(negated=False)) if self.recent is None:
                self.recent = match
            case MatchMark(masked) if self.mark is None:
                self.mark = masked
            case MatchAddrtype(destination_type=Option(("LOCAL",), negated=False)) if (
                not self.local
            ):
                self.local = True
                self.others = self.others or match.source_type is not None
            case MatchNfacct():
                pass  # it always matches
            case _:
                self.others = True

    def _take_ports(self, match: MatchTcp | MatchUdp | MatchSctp) -> None:
        asked = match.destination_port
        bare = type(match)(destination_port=asked)
        if match != bare or (asked is not None and self.asks_port):
            self.others = True
        if asked is not None and not self.asks_port:
            self.asks_port = True
            first, last = asked.value.first, asked.value.last
            self.port = first if first == last and not asked.negated else None

    def _take_negated(self, match: Match) -> None:
        match match:
            case MatchSource(network) if self.source is None:
                self.source, self.source_negated = network, True
            case MatchDestination(network) if self.destination is None:
                self.destination, self.destination_negated = network, True
            case MatchMark(masked) if self.mark is None:
                self.mark, self.mark_negated = masked, True
            case _:
                self.others = True

    @property
    def line(self) -> int:
        """The line, from 1."""
        return self.rule.location.line

    @cached_property
    def service(self) -> str:
        """The name of the ServicePort in its comment; empty if there is none."""
        name = names.name_and_kind(self.comment)[0]
        if name is None and self.host is None and "/" in self.comment:
            return self.comment.split(" ")[0]
        return name or ""

    @property
    def kind(self) -> str:
        """The kind of frontend in its comment, as in the API; empty if there is none."""
        return names.name_and_kind(self.comment)[1] or ""

    @property
    def frontend_key(self) -> FrontendKey:
        """The frontend whose flows it matches, if those of a single one."""
        host = None if self.host is None else int(self.host)  # an address takes long to hash
        return host, self.protocol or "", self.port

    @property
    def is_loopback(self) -> bool:
        """Whether it only counts packets to a NodePort over loopback, as from 1.33 on."""
        return self.chain == names.NODE_PORTS and self.destination is not None and not self.host

    @property
    def place(self) -> str:
        """The frontend in words: address (``*``: any of the node), port and protocol."""
        address = "*" if self.host is None else address_to_text(self.host)
        if ":" in address:
            address = f"[{address}]"
        port = "any port" if self.port is None else str(self.port)
        return f"{address}:{port}/{self.protocol or 'any protocol'}"

    def __str__(self) -> str:
        return f"{self.place} ({self.service})" if self.service else self.place

    @property
    def source_text(self) -> str | None:
        """The network as it is printed."""
        return None if self.source is None else network_to_text(self.source)

    @property
    def probability(self) -> str | None:
        """The probability as printed, which has fewer digits in some versions; None: not random."""
        printed = _PROBABILITY.search(self.rule.raw) if self.is_random else None
        return printed[1] if printed is not None else "?" if self.is_random else None

    @property
    def sets_mark(self) -> SetMark | None:
        """What it sets in the mark."""
        return self.rule.target if isinstance(self.rule.target, SetMark) else None

    @property
    def has_dnat(self) -> bool:
        """Whether its target is DNAT."""
        return isinstance(self.rule.target, Dnat)

    @property
    def dnat(self) -> str | None:
        """Address and port of its DNAT; None if it has none, or not exactly one of each."""
        match self.rule.target:
            case Dnat(NatRange(address, None, int(port), None)) if address is not None:
                text = address_to_text(address)
                return f"[{text}]:{port}" if ":" in text else f"{text}:{port}"
            case _:
                return None

    @property
    def is_unconditional(self) -> bool:
        """Whether it matches every packet that reaches it."""
        return not (
            self.protocol
            or self.source
            or self.destination
            or self.is_random
            or self.asks_port
            or self.recent
            or self.mark
            or self.local
            or self.others
        )

    @property
    def is_final(self) -> bool:
        """Whether a packet that it matches traverses no further rule of the base chain."""
        return self.target in _FINAL and not self.is_jump


def rules_of(chain: Chain) -> Iterator[ChainRule]:
    """Yield the rules of a chain that are in the dump, each parsed and not kept.

    Raises:
        ParseError: one is malformed.
    """
    rules = chain.rules
    if isinstance(rules, RuleRows):
        for number, text in rules.rows:
            yield ChainRule(chain.name, rules.understand(number, text))
    else:
        for rule in rules:
            yield ChainRule(chain.name, rule)


def _target(rule: Rule) -> tuple[str | None, bool]:
    """Return the name of a rule's target, and whether it is a chain."""
    match rule.target:
        case Jump(chain) | Goto(chain):
            return chain, True
        case TargetUnknown(text):
            return (text.split()[1] if text.split()[1:] else text), False
        case None:
            return None, False
        case target:
            return TARGET_NAMES[type(target)], False
