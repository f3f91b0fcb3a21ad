"""Other listings of a node: addresses, routes, neighbours, conntrack entries, ipsets.

Each is parsed by the words that its program prints; nothing else is kept.

Source: iproute2, ip/ipaddress.c, ip/iproute.c, ip/ipneigh.c; conntrack-tools, src/conntrack.c;
Linux, net/netfilter/nf_conntrack_standalone.c, ``ct_seq_show``; ipset, lib/print.c.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from analyzer.anonymise.addresses import blocks
from analyzer.anonymise.naming import Naming
from analyzer.anonymise.words import is_protocol, listed
from analyzer.errors import InputError
from analyzer.model.addresses import address_from_text, network_from_text
from analyzer.model.diagnostics import Location
from analyzer.parsers.bundled import last_sync
from analyzer.parsers.words import Words, bare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_WORDS: Final = frozenset(
    listed("""
    inet inet6 link host global site nowhere universe kernel boot static bird bgp dhcp ra redirect
    zebra babel ospf isis rip unicast local broadcast multicast anycast blackhole unreachable
    prohibit throw nat default main all UP DOWN UNKNOWN LOWER_UP BROADCAST MULTICAST LOOPBACK
    NOARP POINTOPOINT ALLMULTI PROMISC MASTER SLAVE NO-CARRIER DORMANT dead linkdown onlink
    pervasive offload trap REACHABLE STALE DELAY PROBE FAILED NOARP PERMANENT INCOMPLETE NONE
    ether loopback none medium high low
    """)
)
_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]{1,16}|\d{1,20})")
_FLOW_STATES: Final = frozenset(
    listed("""
    NONE SYN_SENT SYN_RECV ESTABLISHED FIN_WAIT CLOSE_WAIT LAST_ACK TIME_WAIT CLOSE SYN_SENT2 LISTEN
    UNKNOWN RETRANS UNACK CLOSED COOKIE_WAIT COOKIE_ECHOED SHUTDOWN_SENT SHUTDOWN_RECD
    SHUTDOWN_ACK_SENT HEARTBEAT_SENT HEARTBEAT_ACKED REQUEST RESPOND PARTOPEN OPEN CLOSEREQ
    CLOSING TIMEWAIT IGNORE INVALID ipv4 ipv6 unknown
    """)
)
_FLOW_FLAGS: Final = frozenset(
    listed("[UNREPLIED] [ASSURED] [OFFLOAD] [HW_OFFLOAD] [SEEN_REPLY] [CONFIRMED] [NEW] [UPDATE]")
)
_FLOW_ADDRESSES: Final = frozenset(("src", "dst"))
_FLOW_NUMBERS: Final = frozenset(
    listed("""
    sport dport type code id mark use zone zone-orig zone-reply packets bytes timeout delta-time
    srckey dstkey
    """)
)
_SET_TYPE: Final = re.compile(
    r"(?:hash|bitmap|list):(?:ip|net|port|mac|iface|mark|set)"
    r"(?:,(?:ip|net|port|mac|iface|mark|set)){0,3}"
)
_SET_NUMBERS: Final = frozenset(
    listed(
        "hashsize maxelem bucketsize initval size timeout netmask markmask packets bytes skbprio "
        "skbqueue skbmark"
    )
)
_SET_FLAGS: Final = frozenset(listed("counters skbinfo forceadd nomatch"))
_PORT: Final = re.compile(r"(?:([a-z0-9-]{1,20}):)?(\d{1,5}(?:-\d{1,5})?|\d{1,3}/\d{1,3})")


def addresses(naming: Naming, data: bytes) -> str:
    """Return ``ip -j address`` with new names."""
    return _json(naming, data, _LINK)


def routes(naming: Naming, data: bytes) -> str:
    """Return ``ip -j route`` with new names."""
    return _json(naming, data, _ROUTE)


def neighbours(naming: Naming, data: bytes) -> str:
    """Return ``ip -j neighbour`` with new names."""
    return _json(naming, data, _NEIGHBOUR)


def _word(_: Naming, given: object) -> object:
    return given if isinstance(given, str) and given in _WORDS else None


def _number(_: Naming, given: object) -> object:
    return given if isinstance(given, int) else None


def _place(naming: Naming, given: object) -> object:
    return given if given == "default" else naming.names.address_text(given)


def _device(naming: Naming, given: object) -> object:
    return naming.device(given) if isinstance(given, str) else None


def _hardware(naming: Naming, given: object) -> object:
    return naming.names.hardware(given) if isinstance(given, str) else None


#: What is kept of each object, by field: words, numbers, addresses, devices, or more of such.
_INFO: Final[Mapping[str, Any]] = {
    "family": _word,
    "local": _place,
    "prefixlen": _number,
    "scope": _word,
}
_LINK: Final[Mapping[str, Any]] = {
    "ifindex": _number,
    "ifname": _device,
    "flags": [_word],
    "mtu": _number,
    "operstate": _word,
    "link_type": _word,
    "address": _hardware,
    "addr_info": [_INFO],
}
_HOP: Final[Mapping[str, Any]] = {
    "gateway": _place,
    "dev": _device,
    "weight": _number,
    "flags": [_word],
}
_ROUTE: Final[Mapping[str, Any]] = {
    "type": _word,
    "dst": _place,
    "gateway": _place,
    "dev": _device,
    "protocol": _word,
    "scope": _word,
    "prefsrc": _place,
    "metric": _number,
    "table": _word,
    "flags": [_word],
    "nexthops": [_HOP],
}
_NEIGHBOUR: Final[Mapping[str, Any]] = {
    "dst": _place,
    "dev": _device,
    "lladdr": _hardware,
    "state": [_word],
    "router": _number,
}


def _json(naming: Naming, data: bytes, form: Mapping[str, Any]) -> str:
    """Return the lists of `data`, concatenated, with what `form` keeps of their objects."""
    text, decoder = data.decode("utf-8", "replace").strip(), json.JSONDecoder()
    pieces = []
    try:
        while text:
            found, end = decoder.raw_decode(text)
            if not isinstance(found, list):
                raise InputError("expected a list, as `ip -j` prints")
            # A link without addresses is an empty object in what ip prints of one family.
            pieces.append([_kept(naming, each, form) for each in found if isinstance(each, dict)])
            text = text[end:].lstrip()
    except (ValueError, RecursionError):
        raise InputError("expected a list, as `ip -j` prints") from None
    return "".join(f"{json.dumps(each)}\n" for each in pieces)


def _kept(naming: Naming, given: Mapping[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, inner in form.items():
        held = given.get(name)
        if isinstance(inner, list):
            listed = held if isinstance(held, list) else []
            values = [
                _kept(naming, each, inner[0])
                if isinstance(inner[0], Mapping) and isinstance(each, dict)
                else inner[0](naming, each)
                if isinstance(inner[0], Callable)  # type: ignore[arg-type]  # it can be called
                else None
                for each in listed
            ]
            if name in given:
                found[name] = [each for each in values if each is not None]
        elif held is not None:
            kept = inner(naming, held)
            if kept is not None:
                found[name] = kept
    return found


def flows(naming: Naming, data: bytes) -> str:
    """Return ``conntrack -L``, or /proc/net/nf_conntrack, with new names."""
    lines = []
    for line in data.decode("utf-8", "replace").split("\n"):
        words = line.split()
        if not words:
            continue
        kept = [new for word in words if (new := _flow_word(naming, word)) is not None]
        if len(kept) < len(words):
            naming.remove("word of a flow", line)
        if any(word.startswith("src=") for word in kept):
            lines.append(" ".join(kept))
    return "".join(f"{line}\n" for line in lines)


def _flow_word(naming: Naming, word: str) -> str | None:
    key, equals, held = word.partition("=")
    if not equals:
        known = word in _FLOW_STATES or word in _FLOW_FLAGS or is_protocol(word)
        return word if known else None
    if key in _FLOW_ADDRESSES:
        address = naming.names.address_text(held)
        return None if address is None else f"{key}={address}"
    return word if key in _FLOW_NUMBERS and _NUMBER.fullmatch(held) else None


def ipsets(naming: Naming, data: bytes, file: str) -> str:
    """Return ``ipset save`` with new names.

    Raises:
        ParseError: a line is none of it.
    """
    kinds: dict[str, tuple[str, ...] | None] = {}
    lines: list[str] = []
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = Words(line.rstrip("\r"), Location(file, number))
        verb, name = words.take("create or add"), words.take("the name of a set")
        if verb.text == "create":
            lines.append(_created(naming, name.text, words, kinds))
        elif verb.text == "add" and name.text in kinds:
            told = kinds[name.text]
            if told is None:
                naming.remove("entry of a set", line)
            else:
                lines += _added(naming, name.text, words, told)
        else:
            words.fail("expected create or add, as ipset save prints", span=verb.span)
    return "".join(f"{line}\n" for line in lines)


def _created(
    naming: Naming, name: str, words: Words, kinds: dict[str, tuple[str, ...] | None]
) -> str:
    kind = words.take("the type of the set, for example hash:ip").text
    known = _SET_TYPE.fullmatch(kind) is not None
    kinds[name] = tuple(kind.partition(":")[2].split(",")) if known else None
    found = ["create", naming.names.name("set", name), kind if known else "hash:removed"]
    while words.peek() is not None:
        option = words.take("an option").text
        if option in _SET_FLAGS or option == "comment":
            found.append(option)
        elif option == "family" and words.peek() in {"inet", "inet6"}:
            found += [option, words.take("a family").text]
        elif option in _SET_NUMBERS and _NUMBER.fullmatch(words.peek() or ""):
            found += [option, words.take("a number").text]
        elif option == "bitmask" and words.peek() is not None:
            found += [option, _mask(words)]
        elif option == "range" and words.peek() is not None:
            ends = words.take("a range").text
            found += [option, ends if _PORT.fullmatch(ends) else "0.0.0.0-255.255.255.255"]
        else:
            found.append(naming.removed)  # nothing of a set with such an option is kept
            naming.remove("option of a set", option)
            break
    return " ".join(found)


def _mask(words: Words) -> str:
    mask = words.take("a mask").text
    address = address_from_text(mask)
    bits = "" if address is None else f"{int(address):0{address.max_prefixlen}b}"
    # One with holes is not understood by any reader of ours, and may be an address.
    return mask if bits and "01" not in bits else "255.0.255.0"


def _added(naming: Naming, name: str, words: Words, kinds: tuple[str, ...]) -> Iterator[str]:
    entry = words.take("an entry")
    parts = entry.text.split(",")
    if len(parts) > len(kinds):
        words.fail("expected an entry of the set's type", span=entry.span)
    options: list[str] = []
    while words.peek() is not None:
        option = words.take("an option").text
        if option in _SET_FLAGS:
            options.append(option)
        elif option == "comment":
            text = words.take("a comment").text
            options += [option, f'"{naming.comments.renamed(text)}"'.replace('""', '"')]
        elif option in _SET_NUMBERS and words.peek() is not None:
            number = words.take("a number").text
            options += [option, number] if re.fullmatch(r"[\da-fx/:]{1,24}", number) else []
        else:
            words.fail("expected an option of an entry, as ipset save prints", span=entry.span)
    for made in _products([_part(naming, k, p) for k, p in zip(kinds, parts, strict=False)]):
        yield " ".join(["add", naming.names.name("set", name), ",".join(made), *options])


def _products(choices: list[list[str]]) -> Iterator[tuple[str, ...]]:
    from itertools import product

    yield from product(*choices)


def _part(naming: Naming, kind: str, text: str) -> list[str]:
    """Return what replaces a part of an entry: several parts for a range of addresses."""
    if kind in {"ip", "net"}:
        first, dash, last = text.partition("-")
        ends = address_from_text(first), address_from_text(last)
        if dash and ends[0] is not None and ends[1] is not None:
            networks = [naming.names.network(each) for each in blocks(ends[0], ends[1])]
            return [str(each) for each in networks]
        found = naming.names.address_text(text)
        if found is None:
            network = network_from_text(text)
            raise InputError(f"no address of a set: {'a name' if network is None else network}")
        return [found]
    if kind == "port":
        known = _PORT.fullmatch(text)
        if known is not None and (known[1] is None or is_protocol(known[1])):
            return [text]
        naming.remove("part of an entry", text)
        return ["icmp:255/255"]
    if kind == "iface":
        physical = text.startswith("physdev:")
        return [("physdev:" if physical else "") + naming.device(text.removeprefix("physdev:"))]
    if kind == "mac":
        return [naming.names.hardware(text) or "02:00:00:00:00:00"]
    if kind == "mark" and _NUMBER.fullmatch(text):
        return [text]
    return [bare(naming.names.name("set", text))]


def metrics(_: Naming, data: bytes) -> str:
    """Return when kube-proxy last wrote its rules, from its metrics; empty if they lack it."""
    when = last_sync(data)
    if when is None:
        return ""
    name = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"
    return f"# HELP {name} The last time proxy rules were successfully synced\n{name} {when}\n"
