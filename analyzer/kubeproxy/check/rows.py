"""One rule in the flat form that invariants use; usual shapes come straight from the row.

Nearly all rows of a large dump have one of a few shapes, from which one regular expression
extracts all that is needed. Every other rule is parsed first; a test compares the two on every
capture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from analyzer.model.iptables.matches import Match
from analyzer.model.iptables.rules import Chain, Rule, Table
from analyzer.model.iptables.targets import Dnat
from analyzer.model.value import value
from analyzer.parsers.rows import Chains, RuleRows

#: An address as iptables-save prints it.
_NETWORK: Final = r"((?:\d{1,3}\.){3}\d{1,3}/\d{1,2}|[0-9a-f]*:[0-9a-f:]*/\d{1,3})"
_USUAL: Final = re.compile(
    rf"(?:\[\d+:\d+\] )?-A (\S+)(?: (! )?-s {_NETWORK})?(?: (! )?-d {_NETWORK})?"
    r'(?: -p (tcp|udp|sctp))?(?: -m comment --comment (?:"([^"\\]*)"|([\w-]+)))?'
    r"(?: -m statistic --mode random --probability (\d\.\d+))?"
    r"(?: -m recent --(set|rcheck)(?: --seconds (\d{1,9}) --reap)? --name ([\w-]+)"
    r" --mask [0-9a-f.:]+ --rsource)?"
    r"(?: -m \6(?: --dport ([1-5]?\d{1,4}))?)?"
    r" -j (?:(KUBE-[\w-]+)|DNAT --to-destination (\d+\.\d+\.\d+\.\d+:\d{1,5}))"
)
_PROBABILITY: Final = re.compile(r" --probability (\S+)")
#: Targets after which a packet traverses no further rule of the base chain.
_FINAL: Final = frozenset(
    {"ACCEPT", "DROP", "REJECT", "DNAT", "SNAT", "MASQUERADE", "REDIRECT", "QUEUE", "NFQUEUE"}
)


@value
class Recent:
    """``-m recent`` as session affinity uses it: set or rcheck; `seconds` of an rcheck."""

    action: str
    name: str
    seconds: int | None


@value
class MarkBits:
    """``-m mark``, or what ``-j MARK`` sets."""

    value: int
    mask: int
    negated: bool = False


@value(kw_only=True)
class Row:
    """One rule.

    Attributes:
        chain: the chain that the rule is in.
        line: from 1.
        target: a chain or a target's name; None: it only counts.
        is_jump: whether `target` is a chain, declared or not.
        source: with its prefix length; None if none is matched, or not just one.
        probability: as printed; None: no ``-m statistic`` of random mode.
        dnat: address and port, or an empty text if it is not a single address and port.
        asks_port: whether it matches on the destination port, a single one or not.
        local: whether the destination has to be an address of the node.
        others: the number of other matches.
    """

    chain: str
    line: int
    target: str | None
    is_jump: bool
    source: str | None = None
    source_negated: bool = False
    destination: str | None = None
    destination_negated: bool = False
    protocol: str | None = None
    port: int | None = None
    asks_port: bool = False
    comment: str = ""
    probability: str | None = None
    recent: Recent | None = None
    mark: MarkBits | None = None
    sets_mark: MarkBits | None = None
    dnat: str | None = None
    local: bool = False
    others: int = 0

    @property
    def is_unconditional(self) -> bool:
        """Whether it matches every packet that reaches it."""
        return not (
            self.source
            or self.destination
            or self.protocol
            or self.asks_port
            or self.probability
            or self.recent
            or self.mark
            or self.local
            or self.others
        )

    @property
    def is_final(self) -> bool:
        """Whether a packet that it matches traverses no further rule of the base chain."""
        return self.target in _FINAL and not self.is_jump

    @property
    def host(self) -> str | None:
        """The single address that it matches as destination."""
        return None if self.destination_negated else host(self.destination)


def host(network: str | None) -> str | None:
    """Return the address of a network of one."""
    if network is None:
        return None
    address, _, length = network.partition("/")
    return address if length == ("128" if ":" in address else "32") else None


def rows_of_table(table: Table, wanted: Iterable[str]) -> dict[str, list[Row]]:
    """Return the rows of some chains of a table.

    Raises:
        ParseError: one is malformed.
    """
    if not isinstance(table.chains, Chains):
        return {name: list(rows_of(table.chains[name])) for name in wanted}
    block = table.chains.block
    found: dict[str, list[Row]] = {}
    line, at = 1, 0
    for name in sorted(wanted, key=lambda name: block.groups.get(name, (0, 0))):
        start, end = block.groups.get(name, (0, 0))
        if not end:  # it has no rows, or they were skimmed
            found[name] = list(rows_of(table.chains[name]))
            continue
        # Counted here: getting the lines of their rows from many chains takes longer.
        line, at = line + block.text.count("\n", at, start), start
        found[name] = []
        for number, text in enumerate(block.text[start:end].split("\n")[:-1], line):
            row = usual(number, text)
            if row is None:
                rules = table.chains[name].rules
                assert isinstance(rules, RuleRows)
                row = understood(name, rules.understand(number, text))
            found[name].append(row)
    return found


def rows_of(chain: Chain) -> Iterator[Row]:
    """Yield the rules of a chain."""
    if not isinstance(chain.rules, RuleRows):
        for rule in chain.rules:
            yield understood(chain.name, rule)
        return
    for line, text in chain.rules.rows:
        yield usual(line, text) or understood(chain.name, chain.rules.understand(line, text))


def usual(line: int, text: str) -> Row | None:
    """Return a row of one of the usual shapes; None for any other."""
    read = _USUAL.fullmatch(text)
    if read is None:
        return None
    (
        chain,
        source_not,
        source,
        destination_not,
        destination,
        protocol,
        comment,
        word,
        probability,
        action,
        seconds,
        name,
        port,
        jump,
        dnat,
    ) = read.groups()
    return Row(
        chain=chain,
        line=line,
        target=jump or "DNAT",
        is_jump=jump is not None,
        source=source,
        source_negated=source_not is not None,
        destination=destination,
        destination_negated=destination_not is not None,
        protocol=protocol,
        port=None if port is None else int(port),
        asks_port=port is not None,
        comment=comment or word or "",
        probability=probability,
        recent=None if action is None else Recent(action, name, int(seconds) if seconds else None),
        dnat=dnat,
    )


def understood(chain: str, rule: Rule) -> Row:
    """Return the row of a rule that was parsed."""
    from analyzer.model.iptables.targets import Dnat, Goto, Jump, SetMark, TargetUnknown

    fields: dict[str, object] = {"others": 0}
    for match in rule.matches:
        for field, told in _of_match(match).items():
            # A second match on the same field counts as another match.
            if field == "others" or field in fields:
                fields["others"] = int(str(fields["others"])) + 1
            else:
                fields[field] = told
    printed = _PROBABILITY.search(rule.raw)
    if "probability" in fields and printed is not None:
        fields["probability"] = printed[1]
    name: str | None = None
    is_jump = False
    match rule.target:
        case Jump(to) | Goto(to):
            name, is_jump = to, True
        case SetMark(number, mask):
            name = "MARK"
            fields["sets_mark"] = MarkBits(number, mask)
        case Dnat():
            name = "DNAT"
            fields["dnat"] = _destination(rule.target)
        case TargetUnknown(text):
            name = text.split()[1] if text.split()[1:] else text
        case None:
            pass
        case _:
            from analyzer.parsers.xt.targets import TARGET_NAMES

            name = TARGET_NAMES[type(rule.target)]
    made: Row = Row(
        chain=chain,
        line=rule.location.line,
        target=name,
        is_jump=is_jump,
        **fields,  # type: ignore[arg-type]  # names and types are those of _of_match
    )
    return made


def _of_match(match: Match) -> dict[str, object]:
    """Return the fields of a `Row` that a match fills."""
    from analyzer.model.addresses import network_to_text
    from analyzer.model.iptables import matches as m
    from analyzer.model.iptables.options import Option, Range

    match match:
        case m.MatchComment(text):
            return {"comment": text}
        case m.MatchNfacct():
            return {}  # it always matches
        case m.MatchSource(network):
            return {"source": network_to_text(network)}
        case m.MatchNot(m.MatchSource(network)):
            return {"source": network_to_text(network), "source_negated": True}
        case m.MatchDestination(network):
            return {"destination": network_to_text(network)}
        case m.MatchNot(m.MatchDestination(network)):
            return {"destination": network_to_text(network), "destination_negated": True}
        case m.MatchProtocol(protocol):
            return {"protocol": protocol}
        case m.MatchTcp() | m.MatchUdp() | m.MatchSctp():
            asked = match.destination_port
            found: dict[str, object] = {} if asked is None else {"asks_port": True}
            match asked:
                case Option(Range(first, last), negated=False) if first == last:
                    found["port"] = first
                case _:
                    pass
            bare = type(match)(destination_port=asked)
            return found if match == bare else {**found, "others": 1}
        case m.MatchRandom():
            return {"probability": "?"}
        case m.MatchRecent(action=Option(action, negated=False), name=name, seconds=seconds):
            return {"recent": Recent(action, name, seconds)}
        case m.MatchMark(masked):
            return {"mark": MarkBits(masked.value, masked.mask)}
        case m.MatchNot(m.MatchMark(masked)):
            return {"mark": MarkBits(masked.value, masked.mask, negated=True)}
        case m.MatchAddrtype(destination_type=Option(("LOCAL",), negated=False)):
            return {"local": True} if match.source_type is None else {"local": True, "others": 1}
        case _:
            return {"others": 1}


def _destination(target: Dnat) -> str:
    from analyzer.model.addresses import address_to_text

    to = target.to
    if (
        to.first_address is None
        or to.first_port is None
        or (to.last_address, to.last_port) != (None, None)
    ):
        return ""
    text = address_to_text(to.first_address)
    return f"[{text}]:{to.first_port}" if ":" in text else f"{text}:{to.first_port}"
