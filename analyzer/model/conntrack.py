"""Flows as conntrack tracks them."""

from __future__ import annotations

from analyzer.model.addresses import Address
from analyzer.model.value import value


@value(kw_only=True)
class Tracked:
    """One entry: a flow's addresses and ports, in the original and the reply direction.

    Attributes:
        seconds: until the entry expires unless a packet of the flow passes; None if the flow is
            offloaded, and its timeout is not shown.
        state: for TCP and SCTP: ``SYN_SENT``, ``ESTABLISHED``, ...; None for others.
        replied: whether the other side has sent anything.
        is_new: whether it is known to have begun between two listings.
    """

    protocol: str
    seconds: int | None
    state: str | None
    source: Address
    source_port: int
    destination: Address
    destination_port: int
    reply_source: Address
    reply_source_port: int
    replied: bool
    is_new: bool = False

    @property
    def key(self) -> tuple[str, Address, int, Address, int]:
        """What identifies the flow: protocol, and both ends as the client sees them."""
        asked = self.destination, self.destination_port
        return self.protocol, self.source, self.source_port, *asked

    @property
    def is_translated(self) -> bool:
        """Whether a DNAT sent it to another address or port than the client's destination."""
        asked = self.destination, self.destination_port
        return asked != (self.reply_source, self.reply_source_port)
