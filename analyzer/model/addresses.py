"""Addresses and networks, and how netfilter's programs spell them."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network


#: The IP versions.
IPV4, IPV6 = 4, 6
#: The IP version of each netfilter family.
VERSIONS: Final = {"ip": IPV4, "ip6": IPV6}
#: Bits of an address, by IP version.
WIDTHS: Final = {IPV4: 32, IPV6: 128}
_MAPPED: Final = 0xFFFF
_LOWEST_WORD: Final = 0xFFFF
_PORT_DIGITS: Final = 5
_PORT_MAX: Final = 0xFFFF
_OCTETS: Final = {str(octet): octet for octet in range(256)}
_IPV4_OCTETS: Final = 4
_NO_DIGITS: Final = str.maketrans("", "", "0123456789")
#: Most addresses for which compiling an expression is not worth it.
_FEW: Final = 400


def address_from_text(text: str) -> Address | None:
    """Return the address that `text` spells, or None."""
    # A third of the time of the code below; objects of a large cluster have 100,000 addresses.
    parts = text.split(".")
    if len(parts) == _IPV4_OCTETS and all(map(_OCTETS.__contains__, parts)):
        a, b, c, d = parts
        return IPv4Address(_OCTETS[a] << 24 | _OCTETS[b] << 16 | _OCTETS[c] << 8 | _OCTETS[d])
    try:
        return ip_address(text)
    except ValueError:
        return None


def packet_address(address: Address) -> Address:
    """Return the address in the packets of a socket with an address, as programs log it.

    Packets have the IPv4 address of an IPv4-mapped one, and no scope (``%eth0``).
    """
    if isinstance(address, IPv4Address):
        return address
    return address.ipv4_mapped or IPv6Address(int(address))


def are_ipv4(texts: Sequence[str]) -> bool:
    """Return whether each text is an IPv4 address as inet_ntop() prints it."""
    joined = "/".join(texts)
    if len(texts) > _FEW:
        one_each = joined.count("/") == len(texts) - 1
        return one_each and _many_ipv4().fullmatch(f"{joined}/") is not None
    of_four = joined.translate(_NO_DIGITS) == "/".join(["..."] * len(texts))
    return of_four and all(map(_OCTETS.__contains__, joined.replace("/", ".").split(".")))


@cache
def _many_ipv4() -> re.Pattern[str]:
    """Return a pattern that takes half the time of checking each part, once it is compiled."""
    octet = "(?:1[0-9][0-9]|[1-9]?[0-9]|2[0-4][0-9]|25[0-5])"
    return re.compile(rf"(?:{octet}\.{octet}\.{octet}\.{octet}/)*+")


def ipv4_number(text: str) -> int:
    """Return the number of an IPv4 address that is written as inet_ntop() prints it."""
    head, _, last = text.rpartition(".")
    return _number_of_three(head) | _OCTETS[last]


@lru_cache(maxsize=4096)
def _number_of_three(octets: str) -> int:
    a, b, c = octets.split(".")
    return _OCTETS[a] << 24 | _OCTETS[b] << 16 | _OCTETS[c] << 8


def _ipv4_text(number: int) -> str:
    # A fifth of the time of str(): a large dump has an address for each of its Services.
    return f"{_three_octets(number >> 8)}{number & 255}"


@lru_cache(maxsize=4096)
def _three_octets(number: int) -> str:
    return f"{number >> 16}.{number >> 8 & 255}.{number & 255}."


def host_text(address: Address) -> str:
    """Return the text of an address as it stands before a port: one of IPv6 has brackets."""
    return _ipv4_text(int(address)) if address.version == IPV4 else f"[{address}]"


def address_to_text(address: Address) -> str:
    """Return the address as inet_ntop() prints it: with dots if an IPv4 address is embedded.

    Source: glibc, resolv/inet_ntop.c; Python up to 3.12 prints such addresses without dots.
    """
    if isinstance(address, IPv4Address):
        return _ipv4_text(int(address))
    high, low = divmod(int(address), 1 << 32)
    # Exactly six words of zeros, or five and ffff; ::1 has more, and embeds no IPv4 address.
    if high == _MAPPED:
        return f"::ffff:{IPv4Address(low)}"
    if high == 0 and low > _LOWEST_WORD:
        return f"::{IPv4Address(low)}"
    return str(address)


def address_and_port_from_text(text: str) -> tuple[Address, int | None] | None:
    """Return address and port of ``IP``, ``IP:PORT`` or ``[IP]:PORT`` (IPv6), or None."""
    host, colon, port = text.rpartition(":")
    # No address has exactly one colon, which is quicker to see than that the text is none.
    address = None if colon and ":" not in host else address_from_text(text)
    if address is not None:
        return address, None
    address = address_from_text(host.removeprefix("[").removesuffix("]"))
    if text.startswith("[") and text.endswith("]"):
        address, port = address_from_text(text[1:-1]), ""
        return None if address is None else (address, None)
    bracketed = host.startswith("[") and host.endswith("]")
    digits = port.isascii() and port.isdecimal() and len(port) <= _PORT_DIGITS
    if address is None or bracketed != (address.version == IPV6) or not digits:
        return None
    return (address, int(port)) if int(port) <= _PORT_MAX else None


def network_of(version: int, bits: int, length: int) -> Network:
    """Return the network of an address, given as `bits`, with a prefix of `length` bits."""
    kind = IPv4Network if version == IPV4 else IPv6Network
    return kind((bits, length), strict=False)


def network_to_text(network: Network) -> str:
    """Return the network with its prefix length, its address as inet_ntop() prints it."""
    return f"{address_to_text(network.network_address)}/{network.prefixlen}"


def network_from_text(text: str) -> Network | None:
    """Return the network that `text` spells, its host bits cleared; None for other text."""
    if text.endswith("/32"):  # of an endpoint or a Service, as in most rows
        address = address_from_text(text[:-3])
        if isinstance(address, IPv4Address):
            return IPv4Network((int(address), 32))
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return None
    # Python takes 0.0.0.255 for a host mask; netfilter compares its bits.
    mask = text.partition("/")[2]
    return None if "." in mask and mask != str(network.netmask) else network


def smallest_with(networks: Iterable[Network | None], address: Address) -> Network | None:
    """Return the smallest of some networks that holds an address; None: none does."""
    holding = [n for n in networks if n is not None and address in n]
    return max(holding, key=lambda network: network.prefixlen, default=None)
