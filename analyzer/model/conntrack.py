"""Flows as conntrack tracks them."""

from __future__ import annotations

from analyzer.model.addresses import Address
from analyzer.model.value import value


@value(kw_only=True)
class Tracked:
    """One entry: a flow's addresses and ports, as it came and as answers come back.

    Attributes:
        seconds: after which the entry goes, if no packet of the flow passes until then; None: it
            is offloaded, and its time is not told.
        state: of TCP and SCTP: ``SYN_SENT``, ``ESTABLISHED``, ...; None of others.
        replied: whether the other side was heard at all.
        is_new: whether it is known to have come between two takes.
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
        """What tells it from other flows: protocol, and both ends as the client knows them."""
        asked = self.destination, self.destination_port
        return self.protocol, self.source, self.source_port, *asked

    @property
    def is_translated(self) -> bool:
        """Whether a DNAT sent it to another door than it asked for."""
        asked = self.destination, self.destination_port
        return asked != (self.reply_source, self.reply_source_port)
