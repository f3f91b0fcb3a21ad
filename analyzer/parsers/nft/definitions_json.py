"""Chains, sets, maps, named objects and flowtables, from JSON.

Source: libnftables-json(5), "RULESET ELEMENTS"; src/json.c, ``chain_print_json``,
``set_print_json``, ``obj_print_json``, ``flowtable_print_json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analyzer.model.nft.expressions import Concat, Constant, Element, Expression
from analyzer.model.nft.lazy import Lazy
from analyzer.model.nft.ruleset import Chain, Flowtable, NamedObject, Rule, Set
from analyzer.model.nft.statements import Limit
from analyzer.parsers.nft import elements, set_types, statements
from analyzer.parsers.nft.definitions import limit_properties
from analyzer.parsers.nft.expressions import json_reader
from analyzer.parsers.nft.extension import NotUnderstood
from analyzer.parsers.nft.json_values import (
    boolean,
    integer,
    optional_integer,
    optional_string,
    string,
    strings,
)
from analyzer.parsers.nft.limit import LIMIT

OBJECTS: Final = frozenset(
    {
        "counter",
        "quota",
        "limit",
        "ct helper",
        "ct timeout",
        "ct expectation",
        "secmark",
        "synproxy",
        "tunnel",
    }
)


def read_chain(body: Mapping[str, Any], rules: Sequence[Rule]) -> Chain:
    """Return a chain with these rules."""
    hook = optional_string(body.get("hook"))
    priority = body.get("prio")
    if priority is not None and type(priority) is not int:
        raise NotUnderstood(priority)
    return Chain(
        name=string(body.get("name")),
        rules=rules,
        type=optional_string(body.get("type")),
        hook=hook,
        priority=priority,
        policy=optional_string(body.get("policy")) or (None if hook is None else "accept"),
        devices=strings(body.get("dev")),
        comment=optional_string(body.get("comment")),
    )


def read_set(name: str, family: str, body: Mapping[str, Any]) -> Set:
    """Return a set or map.

    Raises:
        NotUnderstood: it has a property that nft does not print.
    """
    reader = json_reader(family)

    def make(given: object) -> tuple[Element, ...]:
        held = given if isinstance(given, list) else [given]
        return tuple(elements.from_json(each, reader) for each in held)

    given = body.get("elem")
    stmt = body.get("stmt")
    return Set(
        name=name,
        key=_types(body.get("type"), family),
        value=_types(body["map"], family) if "map" in body else None,
        flags=strings(body.get("flags")),
        timeout=optional_integer(body.get("timeout")),
        gc_interval=optional_integer(body.get("gc-interval")),
        size=optional_integer(body.get("size")),
        policy=optional_string(body.get("policy")),
        auto_merge=boolean(body.get("auto-merge")),
        statements=() if stmt is None else statements.from_json(stmt, family),
        comment=optional_string(body.get("comment")),
        elements=() if given is None else Lazy(given, make),
    )


def _types(given: object, family: str) -> tuple[str, ...]:
    """Return the types of ``"ipv4_addr . mark"``, of an array of them, or of ``typeof``."""
    if isinstance(given, dict):
        found: Expression = json_reader(family)(given.get("typeof"))
        parts = found.parts if isinstance(found, Concat) else (found,)
        return tuple(map(set_types.type_of, parts))
    if isinstance(given, str):
        return set_types.types(given)
    return strings(given)


def read_flowtable(body: Mapping[str, Any]) -> Flowtable:
    """Return a flowtable."""
    return Flowtable(
        name=string(body.get("name")),
        hook=optional_string(body.get("hook")),
        priority=body["prio"] if type(body.get("prio")) is int else None,
        devices=strings(body.get("dev")),
    )


def read_object(kind: str, family: str, body: Mapping[str, Any]) -> NamedObject:
    """Return a named object."""
    return NamedObject(
        kind=kind,
        name=string(body.get("name")),
        properties=tuple(_properties(kind, family, body)),
        comment=optional_string(body.get("comment")),
    )


def _properties(kind: str, family: str, body: Mapping[str, Any]) -> list[tuple[str, Constant]]:
    if kind == "counter":
        return [(name, integer(body.get(name))) for name in ("packets", "bytes")]
    if kind == "quota":
        used = integer(body.get("used", 0))
        over = boolean(body.get("inv"))
        return [("bytes", integer(body.get("bytes"))), ("used", used), ("over", over)]
    if kind == "limit":
        names = ("rate", "per", "burst", "inv", "rate_unit", "burst_unit")
        given = {name: body[name] for name in names if name in body}
        if "unit" in body:
            given["rate_unit"] = body["unit"]
        limit = LIMIT.read_json("limit", given, json_reader(family))
        assert isinstance(limit, Limit)  # it is no reference
        return limit_properties(limit)
    if kind == "ct helper":
        return [(name, string(body.get(name))) for name in ("type", "protocol", "l3proto")]
    return [("text", elements.dumped(body))]
