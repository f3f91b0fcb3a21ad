"""What a match may ask besides the packet: the node, and what is assumed of the flow."""

from __future__ import annotations

from analyzer.model.packet import Address
from analyzer.model.value import value


@value(kw_only=True)
class Situation:
    """The node and the flow.

    Attributes:
        local_addresses: all addresses of the node; None when they are not known. 127.0.0.0/8
            and ::1 are always local.
        state: what conntrack calls the flow's first packet.
        has_affinity: whether the client has an entry in a session affinity list; None: not
            known.
    """

    local_addresses: frozenset[Address] | None = None
    state: str = "NEW"
    has_affinity: bool | None = False
