"""nft rules and elements as templates, with the names and addresses taken out.

A template is a text without its comments and counters in which the names of chains, single
addresses, and ports that are matched on have been replaced; these are kept separately as tokens, in
their order. Text of nft and its JSON are split as they are, without being parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.addresses import address_from_text
from analyzer.model.nft.lazy import Lazy
from analyzer.model.nft.ruleset import Chain, Set, Table
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: ``chain``, ``to`` (the destination address that a rule matches), ``host``, ``port``, ``list``
    #: (an affinity set without elements) or ``name`` of any other set; and the text that was there.
    Token: TypeAlias = tuple[str, str]

_HOST: Final = (
    r"(?<![\w.:/-])(?:\d{1,3}(?:\.\d{1,3}){3}(?![\w./-])"
    r"|(?=[\da-f:]*:[\da-f:]*:)[\da-f:]+(?:\d{1,3}(?:\.\d{1,3}){3})?(?![\w:./-]))"
)
_CHAIN: Final = r"[^\s,;{}\"]+"
#: Text without a meaning for packets, which differs from one rule to the next.
_IDLE: Final = re.compile(
    r' comment "(?:[^"\\]|\\.)*"| # handle \d+|(?<=counter) packets \d+ bytes \d+'
    r'|(?<="counter": )\{[^{}]*\}'
)
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
#: What a chain begins with before its rules, and such a line as nft prints it.
_HEADS: Final = ("type ", "policy ", "comment ", "devices ", "device ")
_HEAD: Final = re.compile(r'type [^;]*; policy \w+;|comment "(?:[^"\\]|\\.)*"')
#: JSON of networks and ranges, which is converted to their text.
_PREFIX: Final = re.compile(r'\{"prefix": \{"addr": "([^"]+)", "len": (\d+)\}\}')
_RANGE: Final = re.compile(r'\{"range": \["?([^",]+)"?, "?([^"\]]+)"?\]\}')
_TOKENS: Final = re.compile(
    rf"(?:(?<=jump )|(?<=goto )|(?<=\"target\": \"))(?P<chain>{_CHAIN})"
    rf"|(?:(?<=[46] daddr )|(?<=ip daddr )|(?<=\"field\": \"daddr\"\}}\}}, \"right\": \"))"
    rf"(?P<to>{_HOST})"
    rf"|(?P<host>{_HOST})"
    r"|(?:(?<=dport )|(?<=\"field\": \"dport\"\}\}, \"right\": ))(?P<port>\d+)(?![\w.-])"
    rf"|@(?P<set>{_CHAIN})"
)
#: JSON of a comparison other than for equality.
_UNEQUAL: Final = re.compile(
    r'("op": "(?!==")[^"]*", "left": \{"payload": \{[^{}]*\}\}), "right": '
)
_NUMBER: Final = re.compile(r"(?<![\w.:/-])\d{1,5}(?![\w.:/-])")
_PORTS: Final = re.compile(r"(?<![\w.:/-])\d{1,5}(?:-\d{1,5})?(?![\w.:/-])")
#: Networks and ranges of addresses.
_LITERAL: Final = re.compile(
    r"(?<![\w.:/-])(?:\d{1,3}(?:\.\d{1,3}){3}|[\da-f]*:[\da-f:.]+)(?:/[\d.:a-f]+|-[\d.:a-f]+)(?!\w)"
)
_TO: Final = re.compile(
    rf"(?<!\w)dnat (?:ip6? )?to (?:\[?({_HOST})\]?:(\d+)(?![\w-])"
    r"|numgen random mod \d+ map \{ ([^{}]*) \})"
)
#: Keys of a named verdict map that depend on nothing but the destination.
_SENT_TO: Final = r"(?:ip6? daddr|meta l4proto|(?:th|tcp|udp|sctp) dport)"
_ASKED_BY: Final = re.compile(rf"(?:^|\s){_SENT_TO}(?: \. {_SENT_TO})* vmap @({_CHAIN})")
_ASKED: Final = re.compile(rf" vmap @({_CHAIN})")
#: Statements that a rule may evaluate before a match, also for packets that then do not match.
_DONE: Final = re.compile(
    r"\b(?:set|update|add|delete|limit|quota|dup|notrack|queue|synproxy|last|meter)\b"
    r'|"(?:mangle|set|limit|quota|dup|notrack|queue|synproxy|last|meter)"'
)
#: What changes the destination of packets; ``ct status dnat`` only matches on it.
_TRANSLATES: Final = re.compile(
    r'"(?:dnat|redirect|tproxy)":|\bdnat (?:\w+ )*to\b|(?<!type )\b(?:redirect|tproxy)\b(?!")'
)
_PAIR: Final = re.compile(rf"({_HOST}) \. (\d+)")


@value
class RuleTemplate:
    """The text of a rule or an element, and what it names.

    Attributes:
        text: without the text of `tokens`.
        chains: those that packets are sent to.
        hosts: single addresses; in a rule those that the destination must equal.
        ports: likewise.
        literals: networks and ranges of addresses.
        asked_ports: in text that does not match on a single port, every number that may be a port.
        endpoints: the DNAT destinations, in their order.
    """

    text: str
    tokens: tuple[Token, ...]
    chains: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    literals: tuple[str, ...] = ()
    asked_ports: tuple[str, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()

    @property
    def is_for_one(self) -> bool:
        """Whether a flow to another address, or another port, does not match it."""
        return bool(self.hosts or self.ports)


def rules_of(chain: Chain) -> Sequence[str] | None:
    """Return the rules of a chain as text; None: they are not as nft printed them."""
    if not isinstance(chain.rules, Lazy):
        return None if len(chain.rules) else ()
    source = chain.rules.source
    if isinstance(source, tuple):
        lines = [line for each in source[0].split("\n") if (line := each.strip())]
        heads = [line for line in lines if line.startswith(_HEADS)]
        rules = [line for line in lines if not line.startswith(_HEADS)]
        if any(_HEAD.fullmatch(line) is None for line in heads) or not all(map(_is_rule, rules)):
            return None  # as people write them: several statements on a line, or one on several
        return rules
    return [json.dumps(body.get("expr")) for _, body in source]


def pieces_of(held: Set) -> Sequence[str] | None:
    """Return the elements of a set or map as text; None: they are not as nft printed them."""
    if not isinstance(held.elements, Lazy):
        return None if len(held.elements) else ()
    source = held.elements.source
    if isinstance(source, str):
        if '"' in source:
            source = _IDLE.sub("", source)
        return None if '"' in source else [p for each in source.split(",") if (p := each.strip())]
    return [json.dumps(each) for each in (source if isinstance(source, list) else [source])]


def _is_rule(line: str) -> bool:
    """Return whether a line holds one rule, and all of it."""
    if line[0] == "#" or line[-1] == "\\" or line.count("{") != line.count("}"):
        return False
    return ";" not in line or ";" not in _QUOTED.sub("", line)


@lru_cache(maxsize=1 << 16)
def of_element(piece: str) -> RuleTemplate:
    """Return the template of an element."""
    text, tokens = _taken_apart(_plain(piece))
    hosts = tuple([of for kind, of in tokens if kind in {"to", "host"}])
    key, *data = text.partition(" : ")
    numbers = _NUMBER.findall(key)
    text = "".join((_NUMBER.sub("", key), *data))
    return RuleTemplate(
        text=text,
        tokens=(*tokens, *[("port", number) for number in numbers]),
        chains=tuple([of for kind, of in tokens if kind == "chain"]),
        hosts=hosts,
        ports=tuple(map(int, numbers)),
        literals=tuple(_LITERAL.findall(text)),
        asked_ports=tuple(_PORTS.findall(text)),
    )


def of_rule(rule: str, table: Table) -> RuleTemplate | None:
    """Return the template of a rule; None: it is not certain what it names."""
    plain = _plain(rule)
    text, tokens = _taken_apart(plain)
    is_json = plain.startswith("[")
    # Without its counter JSON is none.
    endpoints = _endpoints(rule if is_json else plain, is_json=is_json)
    if endpoints is None or ('"' in text and not is_json):
        return None
    certain = _compared_first(text, tokens)
    ports = [int(of) for kind, of in certain if kind == "port"]
    lists = [of for kind, of in tokens if kind == "set" and _is_list(of, table)]
    kept = [
        (kind if kind != "set" else "list" if of in lists else "name", of) for kind, of in tokens
    ]
    return RuleTemplate(
        text=text + "".join(_definition(table.sets[of]) for of in lists),
        tokens=tuple(kept),
        chains=tuple([of for kind, of in tokens if kind == "chain"]),
        hosts=tuple([of for kind, of in certain if kind == "to"]),
        ports=tuple(ports),
        literals=tuple(_LITERAL.findall(text)),
        asked_ports=(
            (*_PORTS.findall(text), *[of for kind, of in tokens if kind == "port"])
            if "port" in text or "th" in text
            else ()
        ),
        endpoints=endpoints,
    )


def _compared_first(text: str, tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens that a rule compares before it does anything to a packet."""
    at = 0
    for number, piece in enumerate(text.split("#")[: len(tokens)]):
        if _DONE.search(piece):
            break
        at = number + 1
    return tokens[:at]


def asked_otherwise(chain: Chain) -> Iterator[str]:
    """Yield the named verdict maps whose key in rules of a chain is more than the destination.

    Their elements are not only for flows to the address or port that they name.
    """
    if not isinstance(chain.rules, Lazy):
        return
    source = chain.rules.source
    if isinstance(source, tuple):
        if " vmap @" in source[0]:
            for line in source[0].split("\n"):
                by_destination = set(_ASKED_BY.findall(line))
                yield from (name for name in _ASKED.findall(line) if name not in by_destination)
        return
    for _, body in source:
        expressions = body.get("expr")
        for each in expressions if isinstance(expressions, list) else ():
            vmap = each.get("vmap") if isinstance(each, dict) else None
            if isinstance(vmap, dict) and isinstance(vmap.get("data"), str):
                key = vmap.get("key")
                joined = key.get("concat") if isinstance(key, dict) else None
                parts = joined if isinstance(joined, list) else [key]
                if not all(map(_is_sent_to, parts)):
                    yield vmap["data"].removeprefix("@")


def _is_sent_to(part: object) -> bool:
    match part:
        case {"payload": {"protocol": "ip" | "ip6", "field": "daddr"}}:
            return True
        case {"payload": {"protocol": "th" | "tcp" | "udp" | "sctp", "field": "dport"}}:
            return True
        case {"meta": {"key": "l4proto"}}:
            return True
        case _:
            return False


def _is_list(name: str, table: Table) -> bool:
    """Return whether a set is one of session affinity without elements: all those are alike."""
    held = table.sets.get(name)
    return held is not None and name.startswith(names.AFFINITY_PREFIX) and not len(held.elements)


def _definition(held: Set) -> str:
    return f" {held.key} {held.flags} {held.timeout} {held.size} {held.statements}"


def _plain(text: str) -> str:
    text = _IDLE.sub("", text)
    if '{"' in text:
        text = _RANGE.sub(r'"\1-\2"', _PREFIX.sub(r'"\1/\2"', text))
        text = _UNEQUAL.sub(r'\1, "unlike": ', text)
    return text


def _taken_apart(text: str) -> tuple[str, list[Token]]:
    tokens: list[Token] = []
    kept: list[str] = []
    at = 0
    for found in _TOKENS.finditer(text):
        kind = found.lastgroup
        assert kind is not None  # each alternative is a named group
        begin, end = found.span(kind)
        kept.append(text[at:begin])
        at = end
        tokens.append((kind, found[kind]))
    kept.append(text[at:])
    return "#".join(kept), tokens


def _endpoints(rule: str, *, is_json: bool) -> tuple[Endpoint, ...] | None:
    """Return the DNAT destinations of a rule; None: anywhere."""
    if not _TRANSLATES.search(rule):
        return ()
    pairs = list(_of_json(json.loads(rule)) if is_json else _of_text(rule))
    found = [(address_from_text(address), port) for address, port in pairs]
    # In JSON a port may be true, or negative.
    known = [Endpoint(a, int(port)) for a, port in found if a is not None and port.isdecimal()]
    return tuple(known) if known and len(known) == len(found) else None


def _of_text(rule: str) -> Iterator[tuple[str, str]]:
    for address, port, inner in _TO.findall(rule):
        if address:
            yield address, port
            continue
        pairs = _PAIR.findall(inner)
        # Anything but pairs is reported as no endpoint.
        yield from pairs if len(pairs) == inner.count(",") + 1 else [("", "0")]


def _of_json(rule: list[object]) -> Iterator[tuple[str, str]]:
    for each in rule:
        if not isinstance(each, dict):
            continue
        match each.get("dnat"):
            case None:
                pass
            case {"addr": str(address), "port": int(port)}:
                yield address, str(port)
            case {"addr": {"map": {"data": {"set": list(elements)}}}, **rest} if "port" not in rest:
                for element in elements:
                    match element:
                        case [_, {"concat": [str(address), int(port)]}]:
                            yield address, str(port)
                        case _:
                            yield "", "0"
            case _:
                yield "", "0"
