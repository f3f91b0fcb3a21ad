"""What a rule may ask of a packet, in netfilter's own terms.

One value stands for one ``-m`` of a rule (or one option that needs none). A match whose module
has several options holds each as an `Option`, since each may be negated by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from analyzer.model.packet import Network
from analyzer.model.probability import XT_STATISTIC_BITS, Dyadic

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """``[!] --option value`` of a match that has several."""

    value: T
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `first` to `last`, both included; a single number is a range too."""

    first: int
    last: int

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last


@dataclass(frozen=True, slots=True)
class Masked:
    """A number compared under a mask: ``value/mask``, both of 32 bits."""

    value: int
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class TcpFlags:
    """``--tcp-flags mask flags``: of the flags in `mask`, just those in `flags` are set."""

    mask: frozenset[str]
    flags: frozenset[str]


@dataclass(frozen=True, slots=True)
class MatchProtocol:
    """``-p``: a name of /etc/protocols, or a number."""

    protocol: str


@dataclass(frozen=True, slots=True)
class MatchSource:
    """``-s``."""

    network: Network


@dataclass(frozen=True, slots=True)
class MatchDestination:
    """``-d``."""

    network: Network


@dataclass(frozen=True, slots=True)
class MatchInInterface:
    """``-i``; a final ``+`` stands for any continuation."""

    name: str


@dataclass(frozen=True, slots=True)
class MatchOutInterface:
    """``-o``; a final ``+`` stands for any continuation."""

    name: str


@dataclass(frozen=True, slots=True)
class MatchFragment:
    """``-f``: a fragment other than the first."""


@dataclass(frozen=True, slots=True)
class MatchComment:
    """``-m comment``: holds always."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchTcp:
    """``-m tcp``."""

    source_port: Option[Range] | None = None
    destination_port: Option[Range] | None = None
    tcp_option: Option[int] | None = None
    flags: Option[TcpFlags] | None = None


@dataclass(frozen=True, slots=True)
class MatchUdp:
    """``-m udp``."""

    source_port: Option[Range] | None = None
    destination_port: Option[Range] | None = None


@dataclass(frozen=True, slots=True)
class ChunkTypes:
    """``--chunk-types all|any|only types``; a type may carry flags: ``DATA:Be``."""

    scope: str
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MatchSctp:
    """``-m sctp``."""

    source_port: Option[Range] | None = None
    destination_port: Option[Range] | None = None
    chunk_types: Option[ChunkTypes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchPhysdev:
    """``-m physdev``: the bridge ports that the packet passes."""

    in_device: Option[str] | None = None
    is_in: Option[bool] | None = None
    out_device: Option[str] | None = None
    is_out: Option[bool] | None = None
    is_bridged: Option[bool] | None = None


@dataclass(frozen=True, slots=True)
class MatchMark:
    """``-m mark``: the packet's mark under the mask equals the value."""

    mark: Masked


@dataclass(frozen=True, slots=True)
class MatchRandom:
    """``-m statistic --mode random``: true for `threshold` draws out of 2**31."""

    threshold: int

    @property
    def probability(self) -> Dyadic:
        """The exact probability that the match is true."""
        return Dyadic.of(self.threshold, XT_STATISTIC_BITS)


@dataclass(frozen=True, slots=True)
class MatchNth:
    """``-m statistic --mode nth``: a counter shared by all flows."""

    every: int
    packet: int


@dataclass(frozen=True, slots=True)
class MatchNfacct:
    """``-m nfacct``: counts in a named object, holds always."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchAddrtype:
    """``-m addrtype``: the kernel's routing type of an address: LOCAL, UNICAST, ..."""

    source_type: Option[tuple[str, ...]] | None = None
    destination_type: Option[tuple[str, ...]] | None = None
    limit_in_interface: bool = False
    limit_out_interface: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchConntrack:
    """``-m conntrack``; `state` holds the words of ``--ctstate`` as they stand."""

    state: Option[tuple[str, ...]] | None = None
    protocol: Option[str] | None = None
    original_source: Option[Network] | None = None
    original_destination: Option[Network] | None = None
    reply_source: Option[Network] | None = None
    reply_destination: Option[Network] | None = None
    original_source_port: Option[Range] | None = None
    original_destination_port: Option[Range] | None = None
    reply_source_port: Option[Range] | None = None
    reply_destination_port: Option[Range] | None = None
    status: Option[tuple[str, ...]] | None = None
    expire: Option[Range] | None = None
    direction: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRecent:
    """``-m recent``: a list of addresses that kube-proxy's session affinity keeps.

    Attributes:
        action: set, rcheck, update or remove.
        seconds: how recently the address must have been seen; None: ever.
        side: rsource or rdest, whose address is meant.
        mask: the mask applied to the address first, as text; None on old binaries.
    """

    action: Option[str]
    seconds: int | None = None
    reap: bool = False
    hit_count: int | None = None
    ttl: bool = False
    name: str = "DEFAULT"
    mask: str | None = None
    side: str = "rsource"


@dataclass(frozen=True, slots=True)
class MatchUnknown:
    """A match that no extension reads; `text` is what the dump says, quotes included."""

    text: str


@dataclass(frozen=True, slots=True)
class MatchNot:
    """``!`` before a match that has nothing else to say."""

    match: Match


Match: TypeAlias = (
    MatchProtocol
    | MatchSource
    | MatchDestination
    | MatchInInterface
    | MatchOutInterface
    | MatchFragment
    | MatchComment
    | MatchTcp
    | MatchUdp
    | MatchSctp
    | MatchPhysdev
    | MatchMark
    | MatchRandom
    | MatchNth
    | MatchNfacct
    | MatchAddrtype
    | MatchConntrack
    | MatchRecent
    | MatchUnknown
    | MatchNot
)
