"""``address[-address][:port[-port[/base]]]``, as in DNAT and SNAT.

Source: extensions/libipt_DNAT.c, libip6t_DNAT.c (an address in brackets when a port follows).
"""

from __future__ import annotations

import re
from typing import Final

from analyzer.model.addresses import IPV6, Address, address_from_text, address_to_text
from analyzer.model.iptables.targets import NatRange
from analyzer.parsers.words import Words
from analyzer.parsers.xt.options import Codec
from analyzer.parsers.xt.values import PORT_MAX, number_from_text

_EXPECTED: Final = "an address, for example 10.0.0.1:80"
_PORTS: Final = r"(\d+)(?:-(\d+)(?:/(\d+))?)?"
_V6: Final = r"\[([^\]]*)\](?::(.*))?|([0-9a-fA-F:.]*:[0-9a-fA-F:.]*(?:-.*)?)"


def _read(words: Words) -> NatRange:
    word = words.take(_EXPECTED)
    value = nat_range_from_text(word.text)
    if value is None:
        words.fail(f"expected {_EXPECTED}", span=word.span)
    return value


def nat_range_from_text(text: str) -> NatRange | None:
    """Return the range that `text` spells, or None."""
    if text.count(":") > 1:
        found = re.fullmatch(_V6, text)
        if found is None:
            return None
        addresses, ports = (found[1], found[2]) if found[3] is None else (found[3], None)
    else:
        addresses, colon, tail = text.partition(":")
        ports = tail if colon else None
    first, last = _addresses(addresses)
    low, high, base = _ports(ports)
    if (addresses and first is None) or (ports is not None and low is None):
        return None
    if "-" in addresses and last is None:
        return None
    if first is None and low is None:
        return None
    return NatRange(first, last, low, high, base)


def _addresses(text: str) -> tuple[Address | None, Address | None]:
    first, _, last = text.partition("-")
    return address_from_text(first), address_from_text(last) if last else None


def _ports(text: str | None) -> tuple[int | None, int | None, int | None]:
    """Return the ends of a range of ports, and the base port of a shifted range."""
    found = re.fullmatch(_PORTS, text or "")
    if found is None:
        return None, None, None
    low, high, base = (number_from_text(part) if part else None for part in found.groups())
    if low is None or max(low, high or low, base or 0) > PORT_MAX or low > (high or low):
        return None, None, None
    return low, high, base


def _write(value: NatRange) -> str:
    addresses = "" if value.first_address is None else address_to_text(value.first_address)
    if value.last_address is not None:
        addresses += f"-{address_to_text(value.last_address)}"
    if value.first_port is None:
        return addresses
    if value.first_address is not None and value.first_address.version == IPV6:
        addresses = f"[{addresses}]"
    ports = str(value.first_port)
    if value.last_port is not None:
        ports += f"-{value.last_port}"
    if value.base_port is not None:
        ports += f"/{value.base_port}"
    return f"{addresses}:{ports}"


NAT_RANGE: Final = Codec(_read, _write)
