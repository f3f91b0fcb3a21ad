"""What a match may ask besides the packet: the node, and what is assumed of the flow."""

from __future__ import annotations

from analyzer.model.packet import Address
from analyzer.model.ternary import Ternary
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
        destination_is_local: whether the flow goes to an address of the node, where that is
            known and the address is not.
    """

    local_addresses: frozenset[Address] | None = None
    state: str = "NEW"
    has_affinity: bool | None = False
    destination_is_local: bool = False

    def is_local(self, address: Address | None) -> Ternary:
        """Tell whether `address` is one of the node's, loopback included."""
        if address is None:
            return Ternary.UNKNOWN
        if address.is_loopback:
            return Ternary.TRUE
        if self.local_addresses is None:
            return Ternary.UNKNOWN
        return Ternary.of(address in self.local_addresses)
