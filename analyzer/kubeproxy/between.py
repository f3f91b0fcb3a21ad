"""What rules may change of a packet between its DNAT and the chains that change its source."""

from __future__ import annotations

from analyzer.model.packet import ALL_BITS, Packet
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@value
class Between:
    """What rules on the way may change of a packet.

    Attributes:
        mark: those bits of the packet's mark.
        flow_mark: those bits of the mark of its conntrack entry.
        header: whether addresses or ports.
    """

    mark: int = 0
    flow_mark: int = 0
    header: bool = False

    def __or__(self, other: Between) -> Between:
        """Return what either may change."""
        return Between(
            self.mark | other.mark, self.flow_mark | other.flow_mark, self.header or other.header
        )

    def passed(self, packet: Packet) -> Packet:
        """Return what is still known of a packet behind the rules."""
        marked = replace(
            packet,
            mark=packet.mark.blurred(self.mark),
            flow_mark=packet.flow_mark.blurred(self.flow_mark),
        )
        if not self.header:
            return marked
        return replace(
            marked,
            source=None,
            sources=None,
            source_port=None,
            from_node=None,
            destination=None,
            destinations=None,
            destination_port=None,
            to_node=None,
            cluster_ip=None,
        )


#: Of rules that change nothing.
NOTHING: Final = Between()
#: Of rules that are not in the dump, or not understood.
ANYTHING: Final = Between(ALL_BITS, ALL_BITS, header=True)
