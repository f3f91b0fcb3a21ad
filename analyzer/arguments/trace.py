"""The options of ``trace``: the packet, and the node that it goes through."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Options of ``trace`` for the packet and the node.
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--from": {
        "dest": "source",
        "metavar": "IP",
        "help": "where the packet comes from; or pod: any pod of the cluster",
    },
    "--to": {
        "required": True,
        "metavar": "IP:PORT",
        "help": "where it is sent ([IP]:PORT for IPv6), or a Service, for example kube-dns:53",
    },
    "--protocol": {
        "choices": ["tcp", "udp", "sctp", "icmp"],
        "help": "default: tcp, or the only protocol of the Service",
    },
    "--from-node": {"action": "store_true", "help": "the node itself sends it"},
    "--in-interface": {"metavar": "NAME", "help": "the device by which it arrives"},
    "--mark": {"metavar": "N", "default": "0", "help": "its mark, for example 0x4000 (default: 0)"},
    "--sport": {"metavar": "PORT", "type": int, "help": "its source port"},
    "--icmp-type": {"metavar": "N[/CODE]", "help": "default: an echo request"},
    "--ctstate": {
        "choices": ["NEW", "ESTABLISHED", "INVALID"],
        "default": "NEW",
        "help": "its conntrack state (default: NEW, the first of its flow)",
    },
    "--affinity": {
        "metavar": "IP:PORT",
        "help": "the endpoint that session affinity pins the client to (default: none)",
    },
}
