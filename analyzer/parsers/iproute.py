"""``ip -j address`` and ``ip -j route``: the node's addresses, and by which device packets leave.

Source: iproute2, ip/ipaddress.c and ip/iproute.c, ``print_addrinfo`` and ``print_route``.
"""

from __future__ import annotations

import json
from typing import Any

from analyzer.errors import InputError
from analyzer.model.packet import Address, address_from_text, network_from_text
from analyzer.model.routing import Route, Routes


def parse_addresses(data: bytes, file: str) -> tuple[Address, ...]:
    """Return all addresses of ``ip -j address``.

    Raises:
        InputError: it is something else.
    """
    found: list[Address] = []
    for link in _list(data, file, "ip -j address"):
        for each in link.get("addr_info", []) if isinstance(link, dict) else []:
            address = address_from_text(str(each.get("local"))) if isinstance(each, dict) else None
            if address is not None:
                found.append(address)
    if not found:
        raise InputError(f"{file}: no address in it; expected the output of `ip -j address`")
    return tuple(found)


def parse_routes(data: bytes, file: str) -> Routes:
    """Return the routes of ``ip -j route``, of ``ip -6 -j route`` or of both, one behind the other.

    Raises:
        InputError: it is something else.
    """
    found = []
    for each in _list(data, file, "ip -j route"):
        if not isinstance(each, dict) or not isinstance(each.get("dev"), str):
            continue  # unreachable, blackhole, several next hops: no one device
        text = str(each.get("dst"))
        version6 = ":" in str(each.get("gateway", "")) or each.get("family") == "inet6"
        if text == "default":
            text = "::/0" if version6 else "0.0.0.0/0"
        network = network_from_text(text)
        if network is not None:
            metric = each.get("metric", 0)
            found.append(Route(network, each["dev"], metric if isinstance(metric, int) else 0))
    if not found:
        raise InputError(f"{file}: no route in it; expected the output of `ip -j route`")
    return Routes(tuple(found))


def _list(data: bytes, file: str, command: str) -> list[Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise InputError(f"{file}: expected the output of `{command}`")
    return found
