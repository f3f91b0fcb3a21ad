"""The addresses that MASQUERADE gives flows: those of the node.

They are not all known: its bridges and tunnels have addresses in the networks of its pods. Those of
pods that are known are none of them.

Source: Linux, net/netfilter/nf_nat_masquerade.c, ``nf_nat_masquerade_ipv4``: an address of the
device that a flow leaves by; net/ipv4/devinet.c, ``inet_select_addr``: if that is loopback, which
has none of wide scope, of another device.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property

from analyzer.model.addresses import Address
from analyzer.model.bits import ANY, Bits
from analyzer.model.intervals import Intervals, common_of, joined
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary


class MasqueradeAddresses:
    """The addresses of one IP version of which MASQUERADE may give a flow one.

    `own` are the node's that are known; `bridges` returns addresses of which its bridges may have
    some, and is only called if a rule matches on such an address. None: these are not known.
    """

    def __init__(self, own: Collection[Address], bridges: Callable[[], Intervals | None]) -> None:
        self._own = own
        self._bridges = bridges

    @cached_property
    def intervals(self) -> Intervals | None:
        """All of them; None: not known."""
        bridges = self._bridges() if self._own else None
        if bridges is None:
            return None
        known = [int(each) for each in self._own if not each.is_loopback]
        return joined([*((each, each) for each in known), *bridges])

    @property
    def last(self) -> int:
        """The last of them."""
        return self.intervals[-1][1] if self.intervals else ANY.unknown

    def is_within(self, asked: Intervals) -> Ternary:
        """Return whether the address that a flow was given lies in `asked`."""
        if self.intervals is None:
            return Ternary.UNKNOWN
        inside = common_of(self.intervals, asked)
        if not inside:
            return Ternary.FALSE
        return Ternary.TRUE if inside == self.intervals else Ternary.UNKNOWN

    @cached_property
    def bits(self) -> Bits:
        """The address that a flow was given, as a number."""
        return ANY if self.intervals is None else _OneOf(self)


def is_from_masquerade(packet: Packet) -> bool:
    """Return whether the source of a packet is an address that MASQUERADE chose."""
    return packet.is_masquerades and not packet.is_answer and packet.source is None


def is_to_masquerade(packet: Packet) -> bool:
    """Return whether a packet answers to an address that MASQUERADE chose."""
    return packet.is_masquerades and packet.is_answer and packet.destination is None


class _OneOf(Bits):
    """A number of which is known which ones it may be; nothing is known of its bits."""

    __slots__ = ("_among",)
    _among: MasqueradeAddresses

    def __init__(self, among: MasqueradeAddresses) -> None:
        super().__init__(ANY.value, ANY.unknown)
        self._among = among

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def equals(self, wanted: int, mask: int = ANY.unknown) -> Ternary:
        """Return whether the bits of `mask` equal `wanted`."""
        rest = (mask & -mask) - 1
        whole = mask | rest
        if wanted & ~mask or whole & (whole + 1) or whole < self._among.last:
            return super().equals(wanted, mask)  # which bits it has is not known
        return self.is_within(wanted, wanted | rest)

    def is_within(self, first: int, last: int) -> Ternary:
        """Return whether it is one of `first` to `last`."""
        return self._among.is_within(((first, last),))
