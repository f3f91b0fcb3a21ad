"""What a rule does to a packet that it matches, in netfilter's own terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from analyzer.model.matches import Range
from analyzer.model.packet import Address


@dataclass(frozen=True, slots=True)
class Jump:
    """``-j CHAIN``: a chain that returns continues after the rule."""

    chain: str


@dataclass(frozen=True, slots=True)
class Goto:
    """``-g CHAIN``: a chain that returns continues at the caller's caller."""

    chain: str


@dataclass(frozen=True, slots=True)
class Accept:
    """``-j ACCEPT``: ends this base chain, not the hook."""


@dataclass(frozen=True, slots=True)
class Drop:
    """``-j DROP``: ends everything."""


@dataclass(frozen=True, slots=True)
class Return:
    """``-j RETURN``."""


@dataclass(frozen=True, slots=True)
class Reject:
    """``-j REJECT``: ends everything and says so; `reject_with` names the ICMP type or RST."""

    reject_with: str | None = None


@dataclass(frozen=True, slots=True)
class SetMark:
    """``-j MARK --set-xmark value/mask``: clears the mask's bits, then XORs the value in."""

    value: int
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class NatRange:
    """Addresses and ports to translate to; None leaves the packet's own.

    A single address has `last_address` None, a single port `last_port` None.
    """

    first_address: Address | None = None
    last_address: Address | None = None
    first_port: int | None = None
    last_port: int | None = None


@dataclass(frozen=True, slots=True)
class Dnat:
    """``-j DNAT --to-destination``."""

    to: NatRange
    random: bool = False
    persistent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Masquerade:
    """``-j MASQUERADE``: the source becomes the address of the outgoing interface."""

    ports: Range | None = None
    random: bool = False
    random_fully: bool = False


@dataclass(frozen=True, slots=True)
class TargetUnknown:
    """A target that no extension reads: it may end the traversal or change the packet."""

    text: str


Target: TypeAlias = (
    Jump | Goto | Accept | Drop | Return | Reject | SetMark | Dnat | Masquerade | TargetUnknown
)
