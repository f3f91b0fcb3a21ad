"""The statements of an nftables rule, in the terms of nft(8).

A rule's statements are evaluated in order; the first match that is false ends the rule.

Source: nft(8), "STATEMENTS"; libnftables-json(5), "STATEMENTS".
"""

from __future__ import annotations

from typing import TypeAlias

from analyzer.model.nft.expressions import (
    AnonymousSet,
    Element,
    Expression,
    SetRef,
    Unknown,
    Verdict,
)
from analyzer.model.value import value


@value
class Match:
    """``left operator right``: the rule continues if it is true.

    Attributes:
        operator: ``==``, ``!=``, ``<``, ``>``, ``<=``, ``>=``; ``in``: a bit of `right` is
            set in `left`, which text writes without an operator (``ct state new``); ``!``:
            none is.
    """

    operator: str
    left: Expression
    right: Expression


@value
class Vmap:
    """``key vmap { ... }``: the verdict of the element that covers the key, if one does."""

    key: Expression
    map: SetRef | AnonymousSet | Unknown


@value
class Counter:
    """``counter``; None if the listing omits the counters."""

    packets: int | None = None
    bytes: int | None = None


@value
class ObjectRef:
    """Use of a named object of the table: ``counter name "x"``, ``ct helper set "x"``.

    Attributes:
        kind: ``counter``, ``quota``, ``limit``, ``ct helper``, ``ct timeout``,
            ``ct expectation`` or ``synproxy``.
        name: the name, or the lookup that gives it.
    """

    kind: str
    name: Expression


@value(kw_only=True)
class Limit:
    """``limit rate``: true below the rate or, with `over`, above it.

    Attributes:
        per: ``second``, ``minute``, ``hour``, ``day`` or ``week``.
        rate_unit: ``packets``, ``bytes``, ``kbytes`` or ``mbytes``; likewise `burst_unit`.
    """

    rate: int
    per: str
    burst: int = 5
    over: bool = False
    rate_unit: str = "packets"
    burst_unit: str = "packets"


@value(kw_only=True)
class Quota:
    """``quota``: true until the amount has passed or, with `over`, from then on."""

    amount: int
    unit: str = "bytes"
    used: int = 0
    used_unit: str = "bytes"
    over: bool = False


@value(kw_only=True)
class Log:
    """``log``: always true."""

    prefix: str | None = None
    group: int | None = None
    snaplen: int | None = None
    queue_threshold: int | None = None
    level: str | None = None
    flags: tuple[str, ...] = ()


@value
class Reject:
    """``reject``: drops the packet and sends an error.

    Attributes:
        type: ``icmp``, ``icmpv6``, ``icmpx`` (either) or ``tcp reset``.
        code: of the ICMP type; None for ``tcp reset``.
    """

    type: str
    code: str | int | None = None


@value(kw_only=True)
class Dnat:
    """``dnat``: a map may give address and port together, as a concatenation.

    Attributes:
        flags: some of ``random``, ``fully-random``, ``persistent``.
        prefix: ``dnat prefix to``: the host bits stay.
    """

    address: Expression | None = None
    port: Expression | None = None
    family: str | None = None
    flags: tuple[str, ...] = ()
    prefix: bool = False


@value(kw_only=True)
class Snat:
    """``snat``; like `Dnat`."""

    address: Expression | None = None
    port: Expression | None = None
    family: str | None = None
    flags: tuple[str, ...] = ()
    prefix: bool = False


@value(kw_only=True)
class Masquerade:
    """``masquerade``: the source becomes the address of the outgoing interface."""

    port: Expression | None = None
    flags: tuple[str, ...] = ()


@value(kw_only=True)
class Redirect:
    """``redirect``: to the node itself, at another port or the packet's own."""

    port: Expression | None = None
    flags: tuple[str, ...] = ()


@value
class MetaSet:
    """``meta key set value``."""

    key: str
    value: Expression


@value
class CtSet:
    """``ct key set value``: on the flow's conntrack entry."""

    key: str
    value: Expression
    direction: str | None = None


@value
class Mangle:
    """``field set value``: changes the packet itself."""

    key: Expression
    value: Expression


@value
class CtCount:
    """``ct count``: true up to `count` connections or, with `over`, above."""

    count: int
    over: bool = False


@value(kw_only=True)
class SetUpdate:
    """``update @set { element }``: changes a set or map for each packet.

    Attributes:
        operation: ``add``, ``update`` (which renews the timeout) or ``delete``.
        element: its key is an expression evaluated for the packet: ``ip saddr``; its timeout is
            in seconds.
    """

    operation: str
    set: str
    element: Element


@value
class Notrack:
    """``notrack``: keeps the flow out of conntrack, and so out of nat."""


@value
class Queue:
    """``queue``: passes the packet to a program, which decides.

    Attributes:
        flags: some of ``bypass``, ``fanout``.
    """

    number: Expression | None = None
    flags: tuple[str, ...] = ()


@value
class Dup:
    """``dup``: sends a copy elsewhere; the packet continues."""

    address: Expression
    device: Expression | None = None


@value
class Fwd:
    """``fwd``: sends the packet out of another interface."""

    device: Expression
    family: str | None = None
    address: Expression | None = None


@value
class Tproxy:
    """``tproxy``: to a local socket, the packet unchanged."""

    family: str | None = None
    address: Expression | None = None
    port: Expression | None = None


@value
class FlowAdd:
    """``flow add @flowtable``: later packets of the flow bypass the rules."""

    flowtable: str


@value
class Xt:
    """An xtables extension in a rule of iptables-nft, which nft cannot print.

    It may do anything that iptables can; iptables-nft-save prints it.

    Attributes:
        kind: ``match``, ``target`` or ``watcher``.
        name: of the extension; empty if nft printed only the blanks around it. Such a match is
            usually a comment, or ``-m tcp`` without an option; it may be more.
    """

    kind: str
    name: str = ""


Statement: TypeAlias = (
    Match
    | Vmap
    | Verdict
    | Counter
    | ObjectRef
    | Limit
    | Quota
    | Log
    | Reject
    | Dnat
    | Snat
    | Masquerade
    | Redirect
    | MetaSet
    | CtSet
    | Mangle
    | CtCount
    | SetUpdate
    | Notrack
    | Queue
    | Dup
    | Fwd
    | Tproxy
    | FlowAdd
    | Xt
    | Unknown
)
