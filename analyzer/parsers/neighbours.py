"""``ip -j neighbour``: which hosts on its own networks the node can reach, and which not.

Source: iproute2, ip/ipneigh.c, ``print_neigh``.
"""

from __future__ import annotations

import json
from typing import Any

from analyzer.errors import InputError
from analyzer.model.addresses import Address, address_from_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: States of a neighbour that did not answer.
_LOST: Final = frozenset({"FAILED", "INCOMPLETE"})


def parse_neighbours(data: bytes, file: str) -> frozenset[Address]:
    """Return the addresses that did not answer ARP or neighbour discovery.

    Raises:
        InputError: it is something else.
    """
    try:
        listed: Any = json.loads(data or b"[]")
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        raise InputError(f"{file}: expected the output of `ip -j neighbour`")
    found = set()
    for each in listed:
        state = each.get("state") if isinstance(each, dict) else None
        if isinstance(state, list) and not _LOST.isdisjoint(map(str, state)):
            address = address_from_text(str(each.get("dst")))
            if address is not None:
                found.add(address)
    return frozenset(found)
