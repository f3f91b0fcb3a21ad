"""Elements and chains of the plainest shapes, read without parsing their rules.

kube-proxy writes one element of a map and one chain for each Service, all alike. Parsing each word
of ten thousand takes seconds; checking that they have just that shape takes a twentieth of it. All
others are left to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

from analyzer.kubeproxy.rows.shapes import are_hosts, is_port, number
from analyzer.model.addresses import IPV4, Address, address_from_text
from analyzer.model.nft.lazy import Lazy
from analyzer.model.nft.ruleset import Set, Table
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Address, protocol, port and chain.
PlainElement: TypeAlias = tuple[Address, str, int, str]

_ROW: Final = re.compile(r"\s*+([\da-f.:]+) \. (tcp|udp|sctp) \. (\d{1,5}) : goto ([^\s,]+)\s*+")
#: A chain that draws endpoints from a map, or has one only.
_MAP: Final = re.compile(
    r"\t\tmeta l4proto (tcp|udp|sctp) dnat (?:ip6? )?to "
    r"(?:numgen random mod (\d+) map \{ ([^{}\[\]]+) \}"
    r"|([\da-f.:\[\]]+):(\d+))\n"
)
#: One that first marks flows from outside, and then draws chains of endpoints.
_CHAINS: Final = re.compile(
    r"(?:\t\tip6? daddr (\S+) (tcp|udp|sctp) dport (\d+) ip6? saddr != ([\da-f.:/]+) jump (\S+)\n)?"
    r"\t\tnumgen random mod (\d+) vmap \{ ([^{}\"]*) \}\n"
)
_ENDPOINT: Final = re.compile(
    r"\t\tip6? saddr (\S+) jump (\S+)\n\t\tmeta l4proto (tcp|udp|sctp) dnat to (\S+:\d+)\n"
)
_PROTOCOLS: Final = frozenset({"tcp", "udp", "sctp"})


@value
class PlainChain:
    """What a chain of a Service does with a flow: it draws an endpoint, and nothing else.

    Attributes:
        texts: the endpoints, ``address:port`` as written, in the order in which they are drawn.
        hosts: their addresses, in the same order; those of IPv6 with brackets.
        port: the port of all of them; None: they have several.
        marks: the destination (address, protocol, port) for which flows from outside a network
            are marked, that network, and the chain that marks; None: no flow is.
        marks_own: the chain that marks flows of the endpoint itself; None: there is none.
        ends: the chains of the endpoints, if there are such chains.
    """

    protocol: str
    texts: tuple[str, ...]
    hosts: Sequence[str]
    port: int | None
    marks: tuple[str, str, int, str, str] | None = None
    marks_own: str | None = None
    ends: tuple[str, ...] = ()


def rows_of(held: Set) -> list[PlainElement] | None:
    """Return the elements of a map from addresses and ports to chains; None: it has others too.

    A key that is there twice needs a full evaluation, since nft rejects that.
    """
    elements = held.elements
    if not isinstance(elements, Lazy):
        return None if len(elements) else []
    rows = _rows(elements.source)
    if rows is None:
        return None
    # Numbers: the hash of an address takes ten times as long.
    keys = {(int(address), protocol, port) for address, protocol, port, _ in rows}
    return rows if len(keys) == len(rows) else None


def _rows(source: Any) -> list[PlainElement] | None:
    if isinstance(source, str):
        rows = [row for piece in source.split(",") if (row := _ROW.fullmatch(piece)) is not None]
        if len(rows) != source.count(",") + 1:
            return None
        read = [(address_from_text(row[1]), row) for row in rows]
        found = [(at, row[2], int(row[3]), row[4]) for at, row in read if at is not None]
        return found if len(found) == len(read) else None
    try:
        return [_row_of(each) for each in source]
    except (KeyError, TypeError, ValueError):
        return None


def _row_of(given: Any) -> PlainElement:
    key, data = given
    address, protocol, port = key["concat"]
    chain = _target_of(data["goto"])
    strange = len(key) != 1 or len(data) != 1 or protocol not in _PROTOCOLS
    at = address_from_text(address) if type(address) is str else None
    if strange or type(port) is not int or at is None:
        raise ValueError(given)
    return at, protocol, port, chain


def words_of(held: Set) -> frozenset[str] | None:
    """Return the elements of a set of single addresses, as written; None: it has others too."""
    elements = held.elements
    if not isinstance(elements, Lazy):
        return None if len(elements) else frozenset()
    source = elements.source
    words = source.replace(",", " ").split() if isinstance(source, str) else source
    try:
        found = frozenset(words)
    except TypeError:  # in JSON: an object among them
        return None
    if not isinstance(source, str) and not all(type(word) is str for word in found):
        return None
    text = source if isinstance(source, str) else " ".join(found)
    return None if any(sign in text for sign in '/-"{') else found


def numbers_of(held: Set, version: int) -> frozenset[int]:
    """Return the addresses of one IP version in a set, as numbers."""
    words = words_of(held)
    if words is not None and version == IPV4 and are_hosts(words, "ip"):
        return frozenset(map(number, words))
    keys = [element.key for element in held.elements]
    addresses = [key for key in keys if isinstance(key, IPv4Address | IPv6Address)]
    return frozenset([int(each) for each in addresses if each.version == version])


def chains_of(table: Table, names: Iterable[str]) -> tuple[dict[str, PlainChain], set[str]]:
    """Return what the chains of Services do that are plain, and the hosts of all of these."""
    found = {name: plain for name in names if (plain := _chain_of(table, name)) is not None}
    hosts = _hosts(found)
    # All at once: most Services have few endpoints, and to look at each takes longer.
    if not _are_written(hosts):
        found = {name: plain for name, plain in found.items() if _are_written(plain.hosts)}
        hosts = _hosts(found)
    return found, hosts


def _hosts(chains: Mapping[str, PlainChain]) -> set[str]:
    return set[str]().union(*[plain.hosts for plain in chains.values()])


def _are_written(hosts: Collection[str]) -> bool:
    """Return whether addresses are written as nft prints them; those of IPv6 with brackets."""
    if are_hosts(hosts, "ip"):
        return True
    return all(host.startswith("[") for host in hosts) and are_hosts(
        [host.strip("[]") for host in hosts], "ip6"
    )


def _chain_of(table: Table, name: str) -> PlainChain | None:
    """Return what a chain of a Service does, if that is plain; its addresses may be none."""
    chain = table.chains.get(name)
    if chain is None or not isinstance(chain.rules, Lazy):
        return None
    source = chain.rules.source
    try:
        if isinstance(source, tuple):
            found = _of_text(source[0], table)
        else:
            found = _of_json([body["expr"] for _, body in source], table)
    except (KeyError, TypeError, ValueError):
        return None
    if found is None:
        return None
    # An endpoint that is listed twice has the shares of both numbers. Hosts are hashed anyway.
    ends = found.texts if found.port is None else found.hosts
    return found if len(set(ends)) == len(ends) else None


def _plain(
    protocol: str, hosts: list[str], ports: Sequence[str], **others: Any
) -> PlainChain | None:
    """Return a chain that draws these endpoints; None: a port is not written as nft prints it."""
    each_port = set(ports)
    if not all(map(is_port, each_port)):
        return None
    port = int(ports[0]) if len(each_port) == 1 else None
    texts = tuple([f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)])
    return PlainChain(protocol=protocol, texts=texts, hosts=hosts, port=port, **others)


def _of_text(body: str, table: Table) -> PlainChain | None:
    found = _MAP.fullmatch(body)
    if found is not None:
        protocol, count, inner, address, port = found.groups()
        if address is not None:
            return _plain(protocol, [address], (port,))
        return _at_one_port(protocol, count, inner) or _at_any_port(protocol, count, inner)
    found = _CHAINS.fullmatch(body)
    if found is None:
        return None
    address, protocol, port, network, marks_by, count, inner = found.groups()
    pairs = [part.split(" : goto ") for part in inner.split(", ")]
    names = [name for _, name in pairs]
    if not _are_numbered([at for at, _ in pairs], count):
        return None
    marks = None if address is None else (address, protocol, int(port), network, marks_by)
    return _joined([_end_of_text(name, table) for name in names], marks, names)


def _at_one_port(protocol: str, count: str, inner: str) -> PlainChain | None:
    """Return a chain whose endpoints are of IPv4 and have one port, as most have; or None.

    Takes half the time of `_at_any_port`, which most of the time for a large dump would go to.
    """
    rest, _, port = inner.rpartition(" . ")
    if not is_port(port):
        return None
    hosts = rest.replace(f" . {port}, ", " : ").split(" : ")[1::2]
    number = len(hosts)
    if count != str(number) or inner != _drawing(number, port) % (*hosts,):
        return None
    # The only colons and commas are those of the map.
    if inner.count(":") != number or inner.count(",") != number - 1:
        return None
    texts = f":{port},".join([*hosts, ""])[:-1].split(",")
    return PlainChain(protocol, tuple(texts), hosts, int(port))


def _at_any_port(protocol: str, count: str, inner: str) -> PlainChain | None:
    pairs = [part.partition(" : ") for part in inner.split(", ")]
    if not _are_numbered([at for at, *_ in pairs], count):
        return None
    ends = [end.partition(" . ") for *_, end in pairs]
    return _plain(protocol, [_host(host) for host, *_ in ends], [port for *_, port in ends])


@lru_cache(maxsize=256)
def _drawing(count: int, port: str) -> str:
    """Return how a map of this many endpoints at a port is written, with a place for each."""
    return ", ".join([f"{at} : %s . {port}" for at in range(count)])


def _are_numbered(numbers: list[str], count: str) -> bool:
    """Return whether there are `count` numbers, from 0 on and in order."""
    # The count may be forged and huge: nothing of that size is allocated.
    return count == str(len(numbers)) and numbers == _first_numbers(len(numbers))


@cache
def _first_numbers(count: int) -> list[str]:
    return list(map(str, range(count)))


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


_End: TypeAlias = tuple[str, str, str]


def _end_of_text(name: str, table: Table) -> _End | None:
    """Return protocol, endpoint and marking chain of an endpoint's chain."""
    chain = table.chains.get(name)
    if chain is None or not isinstance(chain.rules, Lazy):
        return None
    found = _ENDPOINT.fullmatch(chain.rules.source[0])
    if found is None:
        return None
    address, marks_by, protocol, endpoint = found.groups()
    same = endpoint.rpartition(":")[0].strip("[]") == address
    return (protocol, endpoint, marks_by) if same else None


def _joined(
    ends: list[_End | None],
    marks: tuple[str, str, int, str, str] | None,
    names: list[str],
) -> PlainChain | None:
    known = [end for end in ends if end is not None]
    if len(known) != len(ends) or not known:
        return None
    protocols, marking = {end[0] for end in known}, {end[2] for end in known}
    if len(protocols) != 1 or len(marking) != 1:
        return None
    parts = [end[1].rpartition(":") for end in known]
    hosts, ports = [host for host, _, _ in parts], [port for _, _, port in parts]
    others = {"marks": marks, "marks_own": marking.pop(), "ends": tuple(names)}
    return _plain(protocols.pop(), hosts, ports, **others)


# --- JSON --------------------------------------------------------------------


def _of_json(rules: list[Any], table: Table) -> PlainChain | None:
    if len(rules) == 1 and len(rules[0]) == 2:  # noqa: PLR2004  # a match, a dnat statement
        return _map_of_json(*rules[0])
    *before, (drawn,) = rules
    marks = None
    if before:
        ((daddr, dport, saddr, jump),) = before
        marks = _marks_of_json(daddr["match"], dport["match"], saddr["match"], jump)
    vmap = drawn["vmap"]
    elements = vmap["data"]["set"]
    _check_numgen(vmap["key"], [key for key, _ in elements])
    names = [_target_of(verdict["goto"]) for _, verdict in elements]
    return _joined([_end_of_json(name, table) for name in names], marks, names)


def _target_of(verdict: Any) -> str:
    """Return the chain of a jump or goto, which may be anything in JSON."""
    chain = verdict["target"]
    if type(chain) is not str:
        raise ValueError(verdict)
    return chain


def _map_of_json(protocol: Any, translation: Any) -> PlainChain | None:
    dnat = translation["dnat"]
    if set(dnat) == {"family", "addr"}:
        elements = dnat["addr"]["map"]["data"]["set"]
        _check_numgen(dnat["addr"]["map"]["key"], [key for key, _ in elements])
        ends = [held["concat"] for _, held in elements]
    elif set(dnat) <= {"family", "addr", "port"}:
        ends = [(dnat["addr"], dnat["port"])]
    else:
        raise ValueError(dnat)
    if not all(type(address) is str and type(port) is int for address, port in ends):
        raise ValueError(ends)
    hosts, ports = [_host(host) for host, _ in ends], [str(port) for _, port in ends]
    return _plain(_protocol_of_json(protocol), hosts, ports)


def _protocol_of_json(given: Any) -> str:
    found = given["match"]["right"]
    wanted = {"op": "==", "left": {"meta": {"key": "l4proto"}}, "right": found}
    if found not in _PROTOCOLS or given != {"match": wanted}:
        raise ValueError(given)
    return str(found)


def _check_numgen(key: Any, numbers: list[Any]) -> None:
    count = len(numbers)
    numgen = {"mode": "random", "mod": count, "offset": 0}
    if key != {"numgen": numgen} or numbers != list(range(count)):
        raise ValueError(key)


def _marks_of_json(daddr: Any, dport: Any, saddr: Any, jump: Any) -> tuple[str, str, int, str, str]:
    address, port, network = daddr["right"], dport["right"], saddr["right"]["prefix"]
    family = daddr["left"]["payload"]["protocol"]
    protocol = dport["left"]["payload"]["protocol"]
    wanted = [
        ("==", {"payload": {"protocol": family, "field": "daddr"}}, address),
        ("==", {"payload": {"protocol": protocol, "field": "dport"}}, port),
        ("!=", {"payload": {"protocol": family, "field": "saddr"}}, saddr["right"]),
    ]
    found = [(each["op"], each["left"], each["right"]) for each in (daddr, dport, saddr)]
    strange = type(address) is not str or type(port) is not int
    if strange or found != wanted or protocol not in _PROTOCOLS or family not in {"ip", "ip6"}:
        raise ValueError(found)
    return address, protocol, port, f"{network['addr']}/{network['len']}", _target_of(jump["jump"])


def _end_of_json(name: str, table: Table) -> _End | None:
    chain = table.chains.get(name)
    if chain is None or not isinstance(chain.rules, Lazy):
        return None
    (_, marking), (_, sending) = chain.rules.source
    match, jump = marking["expr"]
    plain = _map_of_json(*sending["expr"])
    if plain is None:
        return None
    (endpoint,) = plain.texts
    family = match["match"]["left"]["payload"]["protocol"]
    address = endpoint.rpartition(":")[0].strip("[]")
    wanted = {
        "op": "==",
        "left": {"payload": {"protocol": family, "field": "saddr"}},
        "right": address,
    }
    if match != {"match": wanted} or set(jump) != {"jump"}:
        return None
    return plain.protocol, endpoint, _target_of(jump["jump"])
