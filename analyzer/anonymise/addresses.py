"""Prefix-preserving addresses: two that share n leading bits still share n afterwards.

Theory of operation: bit by bit, as Crypto-PAn does. Whether a bit is flipped is decided by a keyed
hash of the bits before it, which gives a permutation of all addresses; the flips within one octet
are the bits of one digest. Prefixes with a meaning to the kernel or to kubelets must not change:
within such a prefix no bit is flipped, so that it maps to itself. The first bit that may be flipped
always is: no address outside such prefixes maps to itself.

Source: J. Fan, J. Xu, M. Ammar, S. Moon, "Prefix-preserving IP address anonymization", 2004.
"""

from __future__ import annotations

import hmac
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from analyzer.model.addresses import IPV4, IPV6, WIDTHS, Address, Network, network_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final

#: What stays as it is: this network and host, loopback, well-known groups, broadcast.
_KEPT: Final = {
    IPV4: ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/24", "255.255.255.255/32"),
    IPV6: ("::/127", "ff02::/112"),
}
#: What stays what it is, with other addresses in it: link-local, multicast, unicast, unique local.
_CLASSES: Final = {
    IPV4: ("169.254.0.0/16", "224.0.0.0/4"),
    IPV6: ("::ffff:0:0/96", "64:ff9b::/96", "2000::/3", "fd00::/8", "fe80::/64", "ff00::/8"),
}
#: IPv6 networks in which an IPv4 address stands: mapped ones, and NAT64's.
_EMBEDDING: Final = tuple(IPv6Network(each) for each in _CLASSES[IPV6][:2])
#: Bits in front of that address, in each of them.
_EMBEDDED: Final = 96
_OCTET: Final = 8
_LOW: Final = 0xFFFFFFFF


class AddressMap:
    """The prefix-preserving permutation of addresses that a key selects.

    Attributes:
        seen: each address and network that was mapped, with its image.
    """

    def __init__(self, key: bytes) -> None:
        self.seen: dict[Address | Network, Address | Network] = {}
        self._key = key
        self._digests: dict[tuple[int, int, int], int] = {}
        networks = {
            version: (
                [_bits(each) for each in _KEPT[version]],
                [_bits(each) for each in _CLASSES[version]],
            )
            for version in WIDTHS
        }
        #: By version: prefixes (length, bits) above one that is to come back to itself.
        self._above = {
            version: frozenset(above for each in (*kept, *classes) for above in _prefixes(*each))
            for version, (kept, classes) in networks.items()
        }
        self._kept = {version: frozenset(kept) for version, (kept, _) in networks.items()}

    def address(self, given: Address) -> Address:
        """Return the new address of an address."""
        found = self.seen.get(given)
        if found is None:
            width = WIDTHS[given.version]
            bits = self._mapped(given.version, int(given), width)
            found = self.seen[given] = _address(given.version, bits)
        assert isinstance(found, (IPv4Address, IPv6Address))
        return found

    def network(self, given: Network) -> Network:
        """Return the new network of a network: that of all of its addresses."""
        found = self.seen.get(given)
        if found is None:
            length = given.prefixlen
            bits = self._mapped(given.version, int(given.network_address), length)
            found = self.seen[given] = network_of(given.version, bits, length)
        assert isinstance(found, (IPv4Network, IPv6Network))
        return found

    def _mapped(self, version: int, bits: int, length: int) -> int:
        """Return an address with its first `length` bits mapped; the others are meaningless."""
        if version == IPV6 and length >= _EMBEDDED:
            for network in _EMBEDDING:
                if bits >> 32 == int(network.network_address) >> 32:
                    return bits ^ (bits & _LOW) | self._mapped(
                        IPV4, bits & _LOW, length - _EMBEDDED
                    )
        width = WIDTHS[version]
        above, kept = self._above[version], self._kept[version]
        found = bits
        free = False
        for at in range(length):
            before = bits >> (width - at)
            if not free:
                if (at, before) in kept:
                    return found
                if (at, before) in above:
                    continue
                flip, free = 1, True  # the first that may be flipped
            else:
                flip = self._flip(version, at, before)
            found ^= flip << (width - 1 - at)
        return found

    def _flip(self, version: int, length: int, bits: int) -> int:
        """Return whether the bit after these `length` bits is flipped, 0 or 1."""
        octets, rest = divmod(length, _OCTET)
        key = version, octets, bits >> rest
        digest = self._digests.get(key)
        if digest is None:
            told = b"%d %d %x" % key
            digest = int.from_bytes(hmac.digest(self._key, told, "sha256"), "big")
            self._digests[key] = digest
        # The prefixes below an octet, by a 1 and their bits: from 1 to 255.
        return digest >> (1 << rest | bits & (1 << rest) - 1) & 1


def blocks(first: Address, last: Address) -> tuple[Network, ...]:
    """Return the networks that an address range consists of; none if it is empty."""
    from ipaddress import summarize_address_range

    if first.version != last.version or int(first) > int(last):
        return ()
    found: Iterable[Network] = summarize_address_range(first, last)
    return tuple(found)


def _address(version: int, bits: int) -> Address:
    return IPv4Address(bits) if version == IPV4 else IPv6Address(bits)


def _bits(text: str) -> tuple[int, int]:
    """Return the length of a network's prefix, and its bits."""
    network = IPv6Network(text) if ":" in text else IPv4Network(text)
    return network.prefixlen, int(network.network_address) >> (
        network.max_prefixlen - network.prefixlen
    )


def _prefixes(length: int, bits: int) -> Iterator[tuple[int, int]]:
    """Yield all prefixes that are shorter."""
    for shorter in range(length):
        yield shorter, bits >> (length - shorter)
