"""Elements and chains of the plainest shapes, read without parsing their rules.

kube-proxy writes one element of a map and one chain for each Service, all alike. Parsing each word
of ten thousand takes seconds; checking that they have just that shape takes a twentieth of it. All
others are left to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import TypeAlias

from analyzer.kubeproxy.rows.shapes import are_hosts, is_port
from analyzer.model.addresses import Address
from analyzer.model.nft.lazy import Lazy
from analyzer.model.nft.ruleset import Set, Table
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Address, protocol, port and chain.
PlainElement: TypeAlias = tuple[Address, str, int, str]

_ROW: Final = re.compile(r"\s*+([\da-f.:]+) \. (tcp|udp|sctp) \. (\d+) : goto ([^\s,]+)\s*+")
#: A chain that draws endpoints from a map, or has one only.
_MAP: Final = re.compile(
    r"\t\tmeta l4proto (tcp|udp|sctp) dnat (ip6? )?to "
    r"(?:numgen random mod (\d+) map \{ ([\da-f.: ,]*) \}|([\da-f.:\[\]]+:\d+))\n"
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
        marks: the destination (address, protocol, port) for which flows from outside a network
            are marked, that network, and the chain that marks; None: no flow is.
        marks_own: the chain that marks flows of the endpoint itself; None: there is none.
        ends: the chains of the endpoints, if there are such chains.
    """

    protocol: str
    texts: tuple[str, ...]
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
    return rows if rows is not None and len({row[:3] for row in rows}) == len(rows) else None


def _rows(source: Any) -> list[PlainElement] | None:
    if isinstance(source, str):
        rows = [row for piece in source.split(",") if (row := _ROW.fullmatch(piece)) is not None]
        if len(rows) != source.count(",") + 1:
            return None
        with suppress(ValueError):
            return [(ip_address(row[1]), row[2], int(row[3]), row[4]) for row in rows]
        return None
    try:
        return [_row_of(each) for each in source]
    except (KeyError, TypeError, ValueError):
        return None


def _row_of(given: Any) -> PlainElement:
    key, data = given
    address, protocol, port = key["concat"]
    chain = _target_of(data["goto"])
    strange = len(key) != 1 or len(data) != 1 or protocol not in _PROTOCOLS
    if strange or type(port) is not int or type(address) is not str:
        raise ValueError(given)
    return ip_address(address), protocol, port, chain


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
    plain = all(type(word) is str and not {"/", "-", '"', "{"} & set(word) for word in found)
    return found if plain else None


def chain_of(table: Table, name: str) -> PlainChain | None:
    """Return what a chain of a Service does, if that is plain."""
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
    if found is None or not _are_ends(found.texts):
        return None
    # An endpoint that is listed twice has the shares of both numbers.
    return found if len(set(found.texts)) == len(found.texts) else None


def _are_ends(texts: Sequence[str]) -> bool:
    """Return whether each text is an address as nft prints it, and a port."""
    parts = [text.rpartition(":") for text in texts]
    addresses = [address for address, _, _ in parts]
    family = "ip6" if addresses[0].startswith("[") else "ip"
    if family == "ip6":
        addresses = [address.strip("[]") for address in addresses]
    return all(map(is_port, {port for _, _, port in parts})) and are_hosts(addresses, family)


def _of_text(body: str, table: Table) -> PlainChain | None:
    found = _MAP.fullmatch(body)
    if found is not None:
        protocol, _, number, inner, single = found.groups()
        if single is not None:
            return PlainChain(protocol, (single,))
        pairs = [part.split(" : ") for part in inner.split(", ")]
        return PlainChain(protocol, _drawn(pairs, number))
    found = _CHAINS.fullmatch(body)
    if found is None:
        return None
    address, protocol, port, network, marks_by, number, inner = found.groups()
    pairs = [part.split(" : goto ") for part in inner.split(", ")]
    if not _are_numbered(pairs, number):
        return None
    ends = [_end_of_text(name, table) for _, name in pairs]
    marks = None if address is None else (address, protocol, int(port), network, marks_by)
    return _joined(ends, marks, [name for _, name in pairs])


def _drawn(pairs: list[list[str]], number: str) -> tuple[str, ...]:
    """Return endpoints of a map, drawn with the numbers from 0 on; or raise ValueError."""
    if not _are_numbered(pairs, number):
        raise ValueError(pairs)
    return tuple([_joined_text(*pair[1].split(" . ")) for pair in pairs])


def _are_numbered(pairs: list[list[str]], number: str) -> bool:
    """Return whether there are `number` pairs, in the order of their numbers."""
    # The number may be forged and huge: nothing of that size is allocated.
    return number == str(len(pairs)) and [p[0] for p in pairs] == list(map(str, range(len(pairs))))


def _joined_text(address: str, port: str | int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


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
    texts = tuple([end[1] for end in known])
    return PlainChain(protocols.pop(), texts, marks, marking.pop(), tuple(names))


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


def _map_of_json(protocol: Any, translation: Any) -> PlainChain:
    dnat = translation["dnat"]
    if set(dnat) == {"family", "addr"}:
        elements = dnat["addr"]["map"]["data"]["set"]
        _check_numgen(dnat["addr"]["map"]["key"], [key for key, _ in elements])
        ends = [held["concat"] for _, held in elements]
    elif set(dnat) <= {"family", "addr", "port"}:
        ends = [(dnat["addr"], dnat["port"])]
    else:
        raise ValueError(dnat)
    return PlainChain(_protocol_of_json(protocol), tuple([_plain_end(*end) for end in ends]))


def _plain_end(address: Any, port: Any) -> str:
    if type(address) is not str or type(port) is not int:
        raise ValueError(address, port)
    return _joined_text(address, port)


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
