"""A table as ``nft -j list ruleset`` prints it, converted from the text of its rules.

Only what a table of ClusterIP Services in the layout of 1.36 needs is supported.

Source: libnftables-json(5); nft 1.0.6, src/json.c; the captures of 1.36.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from analyzer.kubeproxy.generate.nft_table import NftSet, NftTable
from analyzer.model.addresses import address_to_text

_META: Final = {"version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1}
_PRIORITIES: Final = {"dstnat - 10": -110, "dstnat": -100, "srcnat": 100, "filter": 0}
_COMMENT: Final = re.compile(r' ?comment "([^"]*)"$')
_BASE: Final = re.compile(r"type (\w+) hook (\w+) priority ([^;]+); policy (\w+);")
_MARK: Final = {"meta": {"key": "mark"}}
#: One statement each, by the words that it begins with in a rule.
_STATEMENTS: Final[list[tuple[re.Pattern[str], Callable[[re.Match[str]], Any]]]] = []


def table_to_json(table: NftTable) -> str:
    """Return a table, with handles that number its parts.

    Raises:
        ValueError: it has a rule that is not supported.
    """
    return json.dumps({"nftables": [{"metainfo": _META}, *_parts(table)]}) + "\n"


def _parts(table: NftTable) -> Iterator[Any]:
    """Yield the table, its sets, its chains, and then all rules, as nft does."""
    family, name = table.ip, "kube-proxy"
    yield {"table": {"family": family, "name": name, "handle": 1}}
    handle = 2
    for key, held in table.sets.items():
        yield {held.kind: {"family": family, "name": key, "table": name, **_set(held, handle)}}
        handle += 1
    of_chains = []
    for key, lines in table.chains.items():
        chain: dict[str, Any] = {"family": family, "table": name, "name": key, "handle": handle}
        handle += 1
        base = _BASE.fullmatch(lines[0])
        if base is not None:
            kind, hook, priority, policy = base.groups()
            number = _PRIORITIES[priority] if priority in _PRIORITIES else int(priority)
            chain |= {"type": kind, "hook": hook, "prio": number, "policy": policy}
        yield {"chain": chain}
        headed = base is not None or lines[0].startswith("comment ")
        of_chains.append((key, lines[1:] if headed else lines))
    for key, lines in of_chains:
        for line in lines:
            place = {"family": family, "table": name, "chain": key, "handle": handle}
            yield {"rule": place | _rule(line)}
            handle += 1


def _set(held: NftSet, handle: int) -> dict[str, Any]:
    types, says = held.lines
    of_key, _, of_value = types.removeprefix("type ").partition(" : ")
    parts = of_key.split(" . ")
    made: dict[str, Any] = {"type": parts if len(parts) > 1 else of_key, "handle": handle}
    made["comment"] = says.removeprefix("comment ").strip('"')
    if of_value:
        made["map"] = of_value
    elements = [_element(key, held.elements[key]) for key in held.sorted_keys()]
    return made | ({"elem": elements} if elements else {})


def _element(key: Sequence[Any], value: str) -> Any:
    words = [part if isinstance(part, str | int) else address_to_text(part) for part in key]
    found = {"concat": words} if len(words) > 1 else words[0]
    if not value:
        return found
    return [found, {"goto": {"target": value.removeprefix(" : goto ")}}]


def _rule(line: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    says = _COMMENT.search(line)
    if says is not None:
        made["comment"] = says[1]
        line = line[: says.start()]
    made["expr"] = [*_statements(line)]
    return made


def _statements(line: str) -> Iterator[Any]:
    rest = line
    while rest:
        for pattern, read in _STATEMENTS:
            found = pattern.match(rest)
            if found is not None:
                yield read(found)
                rest = rest[found.end() :].lstrip()
                break
        else:
            raise ValueError(f"{line}: expected words with a known JSON, not {rest}")


def _add(pattern: str, read: Callable[[re.Match[str]], Any]) -> None:
    _STATEMENTS.append((re.compile(pattern), read))


def _match(left: Any, right: Any, operator: str = "==") -> Any:
    return {"match": {"op": operator, "left": left, "right": right}}


def _value(text: str) -> Any:
    address, slash, length = text.partition("/")
    return {"prefix": {"addr": address, "len": int(length)}} if slash else text


def _read_key(text: str) -> Any:
    parts = [_field(part) for part in text.split(" . ")]
    return {"concat": parts} if len(parts) > 1 else parts[0]


def _field(text: str) -> Any:
    first, second = text.split(" ")
    if first == "meta":
        return {"meta": {"key": second}}
    return {"payload": {"protocol": first, "field": second}}


def _draw(found: re.Match[str]) -> Any:
    pairs = [part.split(" : ") for part in found["drawn"].split(", ")]
    drawn = []
    for at, end in pairs:
        address, port = end.split(" . ")
        drawn.append([int(at), {"concat": [address, int(port)]}])
    numgen = {"mode": "random", "mod": int(found["number"]), "offset": 0}
    where = {"map": {"key": {"numgen": numgen}, "data": {"set": drawn}}}
    return {"dnat": {"family": found["ip"], "addr": where}}


_KEY: Final = r"(?P<key>(?:ip6?|meta|th) \w+(?: \. (?:ip6?|meta|th) \w+)*)"
_add(
    r"dnat (?P<ip>ip6?) to numgen random mod (?P<number>\d+) map \{ (?P<drawn>[^}]*) \}",
    _draw,
)
_add(r"ct (state|status) (\w+)", lambda m: _match({"ct": {"key": m[1]}}, m[2], "in"))
_add(r"(jump|goto) (\S+)", lambda m: {m[1]: {"target": m[2]}})
_add(
    r"meta mark & 0x00004000 != 0x00000000",
    lambda _: _match({"&": [_MARK, 0x4000]}, 0, "!="),
)
_add(
    r"meta mark set meta mark ([|^]) 0x00004000",
    lambda m: {"mangle": {"key": _MARK, "value": {m[1]: [_MARK, 0x4000]}}},
)
_add(r"masquerade fully-random", lambda _: {"masquerade": {"flags": "fully-random"}})
_add(r"reject", lambda _: {"reject": {"type": "icmp", "expr": "port-unreachable"}})
_add(r"drop", lambda _: {"drop": None})
_add(_KEY + r" vmap (@\S+)", lambda m: {"vmap": {"key": _read_key(m["key"]), "data": m[2]}})
_add(
    _KEY + r" (?:(!=) )?(\S+)",
    lambda m: _match(_read_key(m["key"]), _value(m[3]), m[2] or "=="),
)
