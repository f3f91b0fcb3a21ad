"""A ruleset as ``nft -j`` prints it; it parses to the same values.

What is unknown becomes an object that no reader knows, ``{"unknown": null}``.

Source: libnftables-json(5).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from analyzer.model.addresses import Address, address_to_text
from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.nft.ruleset import Chain, NamedObject, NftRuleset, Set, Table
from analyzer.parsers.nft.expressions import words_of
from analyzer.parsers.nft.limit import LIMIT


def render_json(ruleset: NftRuleset) -> str:
    """Return the tables as ``nft -j list ruleset`` prints them."""
    version = {"version": ruleset.version} if ruleset.version else {}
    found: list[Any] = [{"metainfo": {**version, "json_schema_version": 1}}]
    for table in ruleset.tables.values():
        found += _table(table)
    return json.dumps({"nftables": found}) + "\n"


_UNKNOWN: Final = {"unknown": None}


def _some(**given: Any) -> dict[str, Any]:
    """Return the properties without those that nft leaves out."""
    return {
        name.replace("_", "-") if name in {"gc_interval", "auto_merge"} else name: held
        for name, held in given.items()
        if held is not None and held != () and held is not False
    }


def _listed(given: tuple[str, ...]) -> Any:
    """Return a single string alone, several as an array, none as None."""
    return given[0] if len(given) == 1 else list(given) or None


def _table(table: Table) -> Iterator[Any]:
    where = {"family": table.family, "table": table.name}
    head = _some(comment=table.comment, flags=_listed(table.flags))
    yield {"table": {"family": table.family, "name": table.name, **head}}
    if not table.complete:
        yield {"unknown": {"family": table.family, "table": table.name}}
    for chain in table.chains.values():
        yield {"chain": where | _chain(chain)}
    for held in table.objects.values():
        yield {held.kind: where | {"name": held.name} | _object(held)}
    for each in table.sets.values():
        yield {"set" if each.value is None else "map": where | {"name": each.name} | _set(each)}
    for flowtable in table.flowtables.values():
        own = {"name": flowtable.name, "hook": flowtable.hook, "prio": flowtable.priority}
        yield {"flowtable": where | own}
    for chain in table.chains.values():
        for rule in chain.rules:
            body = {"chain": chain.name, "expr": [statement(each) for each in rule.statements]}
            yield {"rule": where | body | _some(comment=rule.comment)}


def _chain(chain: Chain) -> dict[str, Any]:
    return _some(
        name=chain.name,
        type=chain.type,
        hook=chain.hook,
        policy=chain.policy,
        dev=_listed(chain.devices),
        comment=chain.comment,
    ) | ({} if chain.priority is None else {"prio": chain.priority})


def _object(held: NamedObject) -> dict[str, Any]:
    renamed = {("inv" if name == "over" else name): each for name, each in held.properties}
    return renamed | _some(comment=held.comment)


def _set(each: Set) -> dict[str, Any]:
    found = _some(
        type=_listed(each.key),
        map=None if each.value is None else " . ".join(each.value),
        flags=list(each.flags) or None,
        policy=each.policy,
        auto_merge=each.auto_merge,
        comment=each.comment,
        elem=[element(held) for held in each.elements] or None,
        stmt=[statement(held) for held in each.statements] or None,
    )
    numbers = {"timeout": each.timeout, "gc-interval": each.gc_interval, "size": each.size}
    return found | {name: number for name, number in numbers.items() if number is not None}


def element(given: e.Element) -> Any:
    """Return an element of a set or map as JSON."""
    more: dict[str, Any] = {
        name: held
        for name, held in (
            ("timeout", given.timeout),
            ("expires", given.expires),
            ("comment", given.comment),
        )
        if held is not None
    }
    if given.counter is not None:
        more["counter"] = {"packets": given.counter[0], "bytes": given.counter[1]}
    if given.limit is not None:
        more["limit"] = _limit(_limit_of(given.limit))
    key = expression(given.key)
    key = {"elem": {"val": key, **more}} if more else key
    return key if given.value is None else [key, expression(given.value)]


def _limit_of(text: str) -> s.Limit:
    """Return the limit that an element keeps as text."""
    found = LIMIT.read_text(words_of(f"limit {text}", "ip"))
    assert isinstance(found, s.Limit)
    return found


def expression(given: e.Expression) -> Any:
    """Return an expression as JSON."""
    match given:
        case bool() | int() | str():
            return given
        case _ if isinstance(given, Address):
            return address_to_text(given)
        case e.Payload(protocol, field):
            return {"payload": {"protocol": protocol, "field": field}}
        case e.RawPayload(base, offset, length):
            return {"payload": {"base": base, "offset": offset, "len": length}}
        case e.Exthdr(kind, name, field):
            return {kind: _some(name=name, field=field)}
        case e.Meta(key):
            return {"meta": {"key": key}}
        case e.Ct(key, direction):
            return {"ct": _some(key=key, dir=direction)}
        case e.Rt(key, family):
            return {"rt": _some(key=key, family=family)}
        case e.Socket(key):
            return {"socket": {"key": key}}
        case e.Osf(key):
            return {"osf": {"key": key}}
        case e.Ipsec(direction, key, family, number):
            return {"ipsec": _some(key=key, family=family, dir=direction) | {"spnum": number}}
        case e.Fib(result, flags):
            return {"fib": {"result": result, "flags": list(flags)}}
        case e.Numgen(mode, mod, offset):
            return {"numgen": {"mode": mode, "mod": mod, "offset": offset}}
        case e.Jhash(inner, mod, seed, offset):
            shown = {"mod": mod, "offset": offset, "expr": expression(inner)}
            return {"jhash": shown if seed is None else shown | {"seed": seed}}
        case e.Symhash(mod, offset):
            return {"symhash": {"mod": mod, "offset": offset}}
        case e.Concat(parts):
            return {"concat": [expression(part) for part in parts]}
        case e.Prefix(base, length):
            return {"prefix": {"addr": address_to_text(base), "len": length}}
        case e.Range(first, last):
            return {"range": [expression(first), expression(last)]}
        case e.Wildcard():
            return "*"
        case e.Flags(held):
            return [expression(name) for name in held]
        case e.Binary(operator, left, right):
            return {operator: [expression(left), expression(right)]}
        case e.SetRef(name):
            return f"@{name}"
        case e.AnonymousSet(elements):
            return {"set": [element(each) for each in elements]}
        case e.MapLookup(key, data):
            return {"map": {"key": expression(key), "data": expression(data)}}
        case e.Jump(chain) | e.Goto(chain):
            return {type(given).__name__.lower(): {"target": chain}}
        case e.Unknown():
            return _UNKNOWN
        case _:
            return {type(given).__name__.lower(): None}


def _limit(given: s.Limit) -> dict[str, Any]:
    found = {"rate": given.rate, "burst": given.burst, "per": given.per} | _some(inv=given.over)
    if given.rate_unit != "packets":
        found |= {"rate_unit": given.rate_unit, "burst_unit": given.burst_unit}
    return found


def _nat(given: s.Dnat | s.Snat | s.Masquerade | s.Redirect) -> Any:
    found = {} if given.port is None else {"port": expression(given.port)}
    flags = given.flags
    if isinstance(given, s.Dnat | s.Snat):
        found |= _some(family=given.family)
        if given.address is not None:
            found["addr"] = expression(given.address)
        if given.prefix:
            found["type_flags"] = "prefix"
            flags = (*flags, "netmap")
    return {type(given).__name__.lower(): (found | _some(flags=_listed(flags))) or None}


def statement(given: s.Statement) -> Any:
    """Return a statement as JSON."""
    match given:
        case s.Match(operator, left, right):
            sides = {"left": expression(left), "right": expression(right)}
            return {"match": {"op": operator, **sides}}
        case s.Vmap(key, data):
            return {"vmap": {"key": expression(key), "data": expression(data)}}
        case s.Counter(None):
            return {"counter": None}
        case s.Counter(packets, octets):
            return {"counter": {"packets": packets, "bytes": octets}}
        case s.ObjectRef(kind, name):
            return {kind: expression(name)}
        case s.Limit():
            return {"limit": _limit(given)}
        case s.Quota():
            shown = {"val": given.amount, "val_unit": given.unit, "used": given.used}
            return {"quota": shown | {"used_unit": given.used_unit} | _some(inv=given.over)}
        case s.Log():
            numbers = {
                "group": given.group,
                "snaplen": given.snaplen,
                "queue-threshold": given.queue_threshold,
            }
            found = {name: number for name, number in numbers.items() if number is not None}
            found |= _some(prefix=given.prefix, level=given.level, flags=_listed(given.flags))
            return {"log": found or None}
        case s.Reject(kind, code):
            return {"reject": _some(type=kind, expr=code)}
        case s.Dnat() | s.Snat() | s.Masquerade() | s.Redirect():
            return _nat(given)
        case s.MetaSet(key, value):
            return {"mangle": {"key": {"meta": {"key": key}}, "value": expression(value)}}
        case s.CtSet(key, value, direction):
            shown = {"ct": _some(key=key, dir=direction)}
            return {"mangle": {"key": shown, "value": expression(value)}}
        case s.Mangle(field, value):
            return {"mangle": {"key": expression(field), "value": expression(value)}}
        case s.CtCount(count, over):
            return {"ct count": {"val": count} | _some(inv=over)}
        case s.SetUpdate():
            bare = e.Element(
                key=given.element.key,
                timeout=given.element.timeout,
                expires=given.element.expires,
                comment=given.element.comment,
                counter=given.element.counter,
                limit=given.element.limit,
            )
            shown = {"op": given.operation, "elem": element(bare)}
            if given.element.value is None:
                return {"set": shown | {"set": f"@{given.set}"}}
            data = expression(given.element.value)
            return {"map": shown | {"data": data, "map": f"@{given.set}"}}
        case s.Notrack():
            return {"notrack": None}
        case s.Queue(number, flags):
            shown = {} if number is None else {"num": expression(number)}
            return {"queue": (shown | _some(flags=_listed(flags))) or None}
        case s.Dup(address, device):
            shown = {"addr": expression(address)}
            return {"dup": shown if device is None else shown | {"dev": expression(device)}}
        case s.Fwd(device, family, address):
            shown = {"dev": expression(device)} | _some(family=family)
            return {"fwd": shown if address is None else shown | {"addr": expression(address)}}
        case s.Tproxy(family, address, port):
            sides = {"addr": address, "port": port}
            shown = {name: expression(x) for name, x in sides.items() if x is not None}
            return {"tproxy": shown | _some(family=family)}
        case s.FlowAdd(name):
            return {"flow": {"op": "add", "flowtable": f"@{name}"}}
        case s.Xt(kind, name):
            return {"xt": {"type": kind, "name": name}}
        case e.Unknown():
            return _UNKNOWN
        case _:
            return expression(given)
