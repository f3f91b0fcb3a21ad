"""Properties of flows before DNAT on which rules after it may match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from analyzer.kubeproxy.matched.devices import asks_loopback
from analyzer.kubeproxy.matched.originals import Originals, originals_of
from analyzer.kubeproxy.routes.packets import USUAL, First, FlowPackets, UsualAddress
from analyzer.kubeproxy.view import Frontend, Source
from analyzer.model.addresses import Address
from analyzer.model.packet import Packet
from analyzer.model.region import Region
from analyzer.model.value import replace
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.devices import NodeDevices
from analyzer.semantics.hooks import Hooks


class BeforeDnat:
    """Flows as they are sent to frontends.

    `packets` makes their packets, and `hooks` knows the devices by which the node's own flows leave
    at first. `spares_own` returns whether no rule loses flows of the node, whatever they were.
    """

    def __init__(
        self,
        rulesets: Sequence[Rules],
        packets: FlowPackets,
        hooks: Hooks,
        devices: NodeDevices,
        spares_own: Callable[[], bool],
    ) -> None:
        self._rulesets = rulesets
        self._packets = packets
        self._hooks = hooks
        self._devices = devices
        self._spares_own = spares_own

    def sent_to(
        self,
        frontend: Frontend,
        protocol: str,
        source: Source,
        of: Region | Address | UsualAddress | None = USUAL,
    ) -> Packet:
        """Return a packet to a frontend, with what rules after DNAT may match on of it now."""
        packet = self._packets.sent_to(frontend, protocol, source, of)
        if self._originals is not None:
            to = packet.destination, packet.destination_port
            packet = replace(packet, original=self._originals.like(*to))
        if source is Source.NODE and self._asks_first_device:
            packet = self._hooks.made_here(packet)
        return packet

    def first(self, frontend: Frontend, protocol: str, source: Source) -> First | None:
        """Return what is known of flows to a frontend before DNAT; None: nothing that matters."""
        if self._originals is None and (source is not Source.NODE or not self._asks_first_device):
            return None
        packet = self.sent_to(frontend, protocol, source)
        if source is not Source.NODE:
            return First(original=packet.original)
        device = packet.leaves_by if packet.out_interface is None else packet.out_interface
        return First(device, packet.original)

    @cached_property
    def _originals(self) -> Originals | None:
        """The original destinations that rules match on; None: they match on none."""
        return originals_of(self._rulesets)

    @cached_property
    def _asks_first_device(self) -> bool:
        """Whether rules may lose flows of the node depending on whether they leave by loopback.

        Where routes say by which device flows leave, any device counts.
        """
        asks = asks_loopback(self._rulesets) or (
            self._devices.is_routed and bool(self._devices.named)
        )
        return asks and not self._spares_own()
