"""What an nftables rule loads, compares with and computes, in the terms of nft(8).

A constant is a number, an address, a word as nft prints it (``tcp``, ``new``, ``echo-request``) or
an interface's name; `names` has the numbers of words.

Source: nft(8), "EXPRESSION TYPES"; libnftables-json(5), "EXPRESSIONS".
"""

from __future__ import annotations

from typing import TypeAlias

from analyzer.model.addresses import Address
from analyzer.model.value import value


@value
class Payload:
    """A header's field: ``ip daddr``; ``th`` represents tcp, udp, sctp and similar protocols."""

    protocol: str
    field: str


@value
class RawPayload:
    """``@base,offset,length``: bits of the packet, offset and length counted in bits."""

    base: str
    offset: int
    length: int


@value
class Exthdr:
    """A field of an optional header; without a field: whether the header is present.

    Attributes:
        kind: ``exthdr`` (of IPv6), ``tcp option``, ``ip option`` or ``sctp chunk``.
    """

    kind: str
    name: str
    field: str | None = None


@value
class Meta:
    """The kernel's metadata of the packet: ``meta mark``, ``meta l4proto``, ``iifname``.

    ``meta random`` is 32 bits drawn again for each packet.
    """

    key: str


@value
class Ct:
    """Conntrack's data of the flow; `key` may name a family: ``ip saddr``."""

    key: str
    direction: str | None = None


@value
class Rt:
    """Routing data: ``rt classid``, ``rt ip nexthop``, ``rt mtu``."""

    key: str
    family: str | None = None


@value
class Socket:
    """A property of the packet's local socket: ``socket transparent``."""

    key: str


@value
class Osf:
    """The fingerprinted operating system of the sender: ``osf name``."""

    key: str


@value
class Ipsec:
    """IPsec data of the packet: ``ipsec in reqid``."""

    direction: str
    key: str
    family: str | None = None
    number: int = 0


@value
class Fib:
    """A lookup in the routing table.

    Attributes:
        result: ``type`` (``local``, ``unicast``, ...), ``oif`` or ``oifname``.
        flags: what is looked up: ``saddr``, ``daddr``, ``mark``, ``iif``, ``oif``.
    """

    result: str
    flags: tuple[str, ...]


@value
class Numgen:
    """A number from `offset` to ``offset + mod - 1``.

    ``random`` draws again for each packet: reciprocal_scale() of 32 random bits, so that number i
    is drawn for ceil((i + 1) * 2**32 / mod) - ceil(i * 2**32 / mod) of 2**32. ``inc`` counts, with
    one counter per rule for all flows.

    Source: Linux, net/netfilter/nft_numgen.c, ``nft_ng_random_gen`` and ``nft_ng_inc_gen``.
    """

    mode: str
    mod: int
    offset: int = 0


@value
class Jhash:
    """A hash of an expression, scaled to ``offset`` ... ``offset + mod - 1``.

    Without a seed the kernel draws one when the rule is loaded.

    Source: Linux, net/netfilter/nft_hash.c, ``nft_jhash_eval``.
    """

    expression: Expression
    mod: int
    seed: int | None = None
    offset: int = 0


@value
class Symhash:
    """A hash that is the same for both directions of a flow."""

    mod: int
    offset: int = 0


@value
class Concat:
    """``a . b``: compared part by part."""

    parts: tuple[Expression, ...]


@value
class Prefix:
    """``address/length``; host bits are clear in what nft prints."""

    address: Address
    length: int


@value
class Range:
    """``first-last``, both included."""

    first: Constant
    last: Constant


@value
class Wildcard:
    """``*``: the element for keys that no other element covers."""


@value
class Flags:
    """``a,b``: some bits of a bit field."""

    names: tuple[Constant, ...]


@value
class Binary:
    """``left op right``, where `op` is one of ``& | ^ << >>``, on the bits of both."""

    operator: str
    left: Expression
    right: Expression


@value
class SetRef:
    """``@name``: a named set or map of the same table."""

    name: str


@value(kw_only=True)
class Element:
    """One element of a set or, with a value, of a map.

    Attributes:
        value: a verdict, a constant or a concatenation; None in a set.
        timeout: seconds until it expires, rounded down; None for the set's own timeout.
        expires: seconds that were left of it when the dump was taken, rounded down.
        counter: packets and bytes.
        limit: the text of a limit that the element keeps: ``rate 10/second``.
    """

    key: Expression
    value: Expression | None = None
    timeout: int | None = None
    expires: int | None = None
    comment: str | None = None
    counter: tuple[int, int] | None = None
    limit: str | None = None


@value
class AnonymousSet:
    """``{ a, b }`` in a rule: a set; with values it is a map."""

    elements: tuple[Element, ...]


@value
class MapLookup:
    """``key map { ... }``: the value of the element that covers the key.

    If none does, the rule ends there and the next one follows.
    """

    key: Expression
    map: SetRef | AnonymousSet | Unknown


@value
class Accept:
    """``accept``: ends this base chain, not the hook."""


@value
class Drop:
    """``drop``: ends everything."""


@value
class Continue:
    """``continue``: continues with the next rule."""


@value
class Return:
    """``return``: goes back to the caller, of a base chain to its policy."""


@value
class Jump:
    """``jump chain``: a chain that returns continues after the rule."""

    chain: str


@value
class Goto:
    """``goto chain``: a chain that returns continues at the caller's caller."""

    chain: str


@value
class Unknown:
    """Input that was not understood, as it is."""

    text: str


Verdict: TypeAlias = Accept | Drop | Continue | Return | Jump | Goto
Constant: TypeAlias = int | str | bool | Address
Expression: TypeAlias = (
    Constant
    | Payload
    | RawPayload
    | Exthdr
    | Meta
    | Ct
    | Rt
    | Socket
    | Osf
    | Ipsec
    | Fib
    | Numgen
    | Jhash
    | Symhash
    | Concat
    | Prefix
    | Range
    | Wildcard
    | Flags
    | Binary
    | SetRef
    | AnonymousSet
    | MapLookup
    | Verdict
    | Unknown
)
