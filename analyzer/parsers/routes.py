"""``ip -j route``: the networks that a node has routes to, and their next hops.

Source: iproute2, ip/iproute.c, ``print_route``.
"""

from __future__ import annotations

import json
from typing import Any

from analyzer.errors import InputError
from analyzer.model.addresses import address_from_text, network_from_text
from analyzer.model.ways import Way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_EVERYTHING: Final = {4: "0.0.0.0/0", 6: "::/0"}
#: Of kinds of routes those that send nothing on.
_CLOSED: Final = frozenset({"unreachable", "blackhole", "prohibit", "throw"})


def parse_routes(data: bytes, file: str) -> tuple[Way, ...]:
    """Return the routes; those to everything are of both IP versions where no next hop tells.

    Raises:
        InputError: it is something else.
    """
    try:
        listed: Any = json.loads(data or b"[]")
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        raise InputError(f"{file}: expected the output of `ip -j route`")
    found = []
    for each in listed:
        if not isinstance(each, dict):
            continue
        hop = address_from_text(str(each.get("gateway") or each.get("via") or ""))
        is_closed = each.get("type") in _CLOSED or "linkdown" in (each.get("flags") or ())
        to = str(each.get("dst"))
        all_of = _EVERYTHING.values() if hop is None else [_EVERYTHING[hop.version]]
        for text in all_of if to == "default" else [to]:
            network = network_from_text(text)
            if network is not None:
                found.append(Way(network, hop, is_closed=is_closed))
    return tuple(found)
