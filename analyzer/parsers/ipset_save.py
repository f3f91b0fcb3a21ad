"""``ipset save``: one line for each set, and one for each of its entries.

Source: ipset(8); ipset, lib/print.c; what ipset 7.17 prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from analyzer.errors import InputError
from analyzer.model.addresses import WIDTHS, address_from_text, network_from_text
from analyzer.model.diagnostics import Location
from analyzer.model.intervals import Interval, span
from analyzer.model.ipsets import EntryPart, Ipset, IpsetEntry, Opaque, PortKey
from analyzer.model.value import replace
from analyzer.parsers.words import Words

#: Options that take a value and do not change which entries a set matches.
_VALUED: Final = frozenset(
    ("hashsize", "maxelem", "bucketsize", "initval", "range", "size", "timeout")
)
#: Such options without a value.
_ALONE: Final = frozenset(("counters", "comment", "skbinfo", "forceadd"))
#: Such options of entries, with a value.
_OF_ENTRY: Final = frozenset(
    ("timeout", "packets", "bytes", "comment", "skbmark", "skbprio", "skbqueue")
)
_KINDS: Final = frozenset(("ip", "net", "port", "mac", "iface", "mark", "set"))
_FAMILIES: Final = {"inet": 4, "inet6": 6}
#: Protocols that have ports.
_PORTS: Final = frozenset(("tcp", "udp", "sctp", "udplite"))
_PORT: Final = re.compile(r"(?:([a-z][\w-]*|\d+):)?(\d+)(?:-(\d+))?")
_PORT_MAX: Final = 0xFFFF


def parse_ipsets(data: bytes, file: str) -> Mapping[str, Ipset]:
    """Return the sets in the output of ``ipset save``, by name.

    A set of an unknown type or with an unknown option is kept, marked as not understood.

    Raises:
        ParseError: a line is not from ``ipset save``.
        InputError: it contains no set.
    """
    sets: dict[str, Ipset] = {}
    entries: dict[str, list[IpsetEntry]] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = Words(line.rstrip("\r"), Location(file, number))
        verb, name = words.take("create or add"), words.take("the name of a set")
        match verb.text:
            case "create" if name.text in sets:
                words.fail("expected a set that was not created before", span=name.span)
            case "create":
                sets[name.text], entries[name.text] = _created(name.text, words), []
            case "add" if name.text not in sets:
                words.fail("expected a set that was created before", span=name.span)
            case "add":
                if sets[name.text].understood:
                    entries[name.text] += _added(sets[name.text], words)
            case _:
                words.fail("expected create or add, as ipset save prints", span=verb.span)
    if not sets:
        raise InputError(f"{file}: it contains no set; expected the output of `ipset save`")
    return {name: replace(made, entries=tuple(entries[name])) for name, made in sets.items()}


def _created(name: str, words: Words) -> Ipset:
    kind = words.take("the type of the set, for example hash:ip")
    method, _, parts = kind.text.partition(":")
    kinds = tuple(parts.split(","))
    if method not in {"hash", "bitmap", "list"} or not parts:
        words.fail("expected the type of a set, for example hash:net,port", span=kind.span)
    understood = set(kinds) <= _KINDS
    version: int | None = None
    if {"ip", "net"} & set(kinds):
        version = 4
    mask: int | None = None
    while words.peek() is not None:
        option = words.take("an option")
        if option.text in _ALONE:
            continue
        if option.text == "family":
            said = words.take("inet or inet6")
            if said.text not in _FAMILIES:
                words.fail("expected inet or inet6", span=said.span)
            version = _FAMILIES[said.text] if version is not None else None
        elif option.text in {"netmask", "bitmask", "markmask"}:
            mask = _mask(option.text, version or 4, words)
            rest = mask ^ _all_bits(version)
            # A mask with holes in it is not supported.
            understood = understood and (option.text == "markmask" or not rest & (rest + 1))
        elif option.text in _VALUED:
            words.take(f"what {option.text} is")
        else:
            understood = False
            break
    return Ipset(
        name=name,
        type=kind.text,
        kinds=kinds,
        version=version,
        mask=mask,
        understood=understood,
    )


def _mask(option: str, version: int, words: Words) -> int:
    """Return the mask of an address or a mark as bits."""
    said = words.take(f"what {option} is")
    bits = WIDTHS[version]
    try:
        if option == "markmask":
            return int(said.text, 0)
        if option == "netmask":
            length = int(said.text)
            if 0 < length <= bits:
                return ((1 << length) - 1) << (bits - length)
        address = address_from_text(said.text) if option == "bitmask" else None
        if address is not None and address.version == version:
            return int(address)
    except ValueError:
        pass
    words.fail(f"expected a value of {option}", span=said.span)


def _added(made: Ipset, words: Words) -> Iterator[IpsetEntry]:
    """Yield the entries of a line: several if it names a range of ports."""
    word = words.take("an entry")
    texts = word.text.split(",")
    optional = made.type == "bitmap:ip,mac" and len(texts) == 1
    if len(texts) != len(made.kinds) and not optional:
        words.fail(f"expected an entry of {made.type}", span=word.span)
    each = [
        _parts(kind, text, made, word.span, words)
        for kind, text in zip(made.kinds, texts, strict=False)
    ]
    if optional:
        each.append([Opaque("any")])
    nomatch = fades = False
    while words.peek() is not None:
        option = words.take("an option")
        if option.text == "nomatch":
            nomatch = True
        elif option.text in _OF_ENTRY:
            said = words.take(f"what {option.text} is")
            fades = fades or (option.text == "timeout" and said.text != "0")
        else:
            words.fail("expected an option of an entry, as ipset save prints", span=option.span)
    for parts in product(*each):
        lengths = tuple(
            _length(part, made.version or 4)
            for part, kind in zip(parts, made.kinds, strict=True)
            if kind == "net" and isinstance(part, tuple)
        )
        yield IpsetEntry(parts, lengths, nomatch=nomatch, fades=fades)


def _rest(made: Ipset) -> int:
    """Return the bits of an address that the set ignores."""
    if made.mask is None or "mark" in made.kinds:
        return 0
    return made.mask ^ _all_bits(made.version)


def _all_bits(version: int | None) -> int:
    return (1 << WIDTHS[6 if version is None else version]) - 1


def _length(part: Interval, version: int) -> int:
    bits = WIDTHS[version]
    return bits - (part[1] - part[0]).bit_length()


def _parts(
    kind: str, text: str, made: Ipset, where: tuple[int, int], words: Words
) -> Sequence[EntryPart]:
    """Return the values that a part of an entry represents."""
    match kind:
        case "ip" | "net":
            network = network_from_text(text)
            if network is None or network.version != made.version:
                words.fail(f"expected an address of IPv{made.version}, or a network", span=where)
            first, last = span(network)
            # Addresses that agree in the bits of the mask are the same to the set.
            return [(first, last | _rest(made) if kind == "ip" else last)]
        case "port":
            return _ports(text, made, where, words)
        case "iface":
            return [Opaque(text) if text.startswith("physdev:") else text]
        case "mark":
            try:
                return [int(text, 0)]
            except ValueError:
                words.fail("expected a mark", span=where)
        case "set":
            return [text]
        case _:
            return [Opaque(text)]


def _ports(text: str, made: Ipset, where: tuple[int, int], words: Words) -> Sequence[EntryPart]:
    found = _PORT.fullmatch(text)
    if found is None:
        if re.fullmatch(r"[\w-]+:.+", text):  # a type and code of ICMP
            return [Opaque(text)]
        words.fail("expected a port, for example tcp:80", span=where)
    named: str = found[1] or "tcp"
    protocol = None if made.kinds == ("port",) else named
    first, last = int(found[2]), int(found[3] or found[2])
    if not first <= last <= _PORT_MAX:
        words.fail("expected a port, for example tcp:80", span=where)
    if protocol is not None and protocol not in _PORTS:
        return [Opaque(text)]
    return [PortKey(protocol, port) for port in range(first, last + 1)]
