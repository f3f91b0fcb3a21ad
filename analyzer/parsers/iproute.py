"""``ip -j address`` and ``ip -j route``: the node's addresses, and the devices of its routes.

Source: iproute2, ip/ipaddress.c and ip/iproute.c, ``print_addrinfo`` and ``print_route``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from analyzer.errors import InputError
from analyzer.model.addresses import Address, Network, address_from_text, network_from_text
from analyzer.model.routing import KernelRoute, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Types of routes that forward nothing.
_CLOSED: Final = frozenset({"unreachable", "blackhole", "prohibit", "throw"})


def parse_addresses(data: bytes, file: str) -> tuple[Address, ...]:
    """Return all addresses in the output of ``ip -j address``; links may have none.

    Raises:
        InputError: it is something else.
    """
    found: list[Address] = []
    links = list(_dictionaries(_lists(data, file, "ip -j address")))
    for link in links:
        infos = link.get("addr_info")
        for each in _dictionaries(infos if isinstance(infos, list) else []):
            address = address_from_text(str(each.get("local")))
            if address is not None:
                found.append(address)
    if not any("ifname" in link for link in links):
        raise InputError(f"{file}: it contains no link; expected the output of `ip -j address`")
    return tuple(found)


def parse_routes(data: bytes, file: str) -> Routes:
    """Return the routes of ``ip -j route`` or ``ip -6 -j route``, or of both, concatenated.

    A route with several devices, or none, is kept without one. A node may have no routes, for
    example for IPv6.

    Raises:
        InputError: it is something else.
    """
    if not data.strip():
        return Routes()
    found: list[KernelRoute] = []
    lists = _lists(data, file, "ip -j route")
    for listed in lists:
        routes = list(_dictionaries([listed]))
        texts = [str(r.get(key, "")) for r in routes for key in ("dst", "gateway", "prefsrc")]
        # ip prints router preferences only for IPv6.
        is_six = any(":" in text for text in texts) or any("pref" in each for each in routes)
        whole = "::/0" if is_six else "0.0.0.0/0"
        for each in routes:
            text = str(each.get("dst"))
            network = network_from_text(whole if text == "default" else text)
            if network is not None:
                found.append(_route(network, each))
    if not found and any(lists):
        raise InputError(f"{file}: it contains no route; expected the output of `ip -j route`")
    return Routes(tuple(found))


def _route(network: Network, given: dict[str, Any]) -> KernelRoute:
    device, metric, kind = given.get("dev"), given.get("metric", 0), given.get("type", "unicast")
    via = given.get("via")
    hop = given.get("gateway") or (via.get("host") if isinstance(via, dict) else via)
    is_down = bool({"dead", "linkdown"} & set(map(str, given.get("flags") or [])))
    is_sure = kind in {"unicast", "local"} and not is_down
    return KernelRoute(
        network,
        device if isinstance(device, str) and is_sure else None,
        metric if isinstance(metric, int) else 0,
        address_from_text(str(hop)) if hop else None,
        is_closed=kind in _CLOSED or is_down,
    )


def _dictionaries(found: list[Any]) -> Iterator[dict[str, Any]]:
    for each in found:
        if isinstance(each, list):
            yield from _dictionaries(each)
        elif isinstance(each, dict):
            yield each


def _lists(data: bytes, file: str, command: str) -> list[Any]:
    """Return the lists that `data` contains, one after the other."""
    text = data.decode("utf-8", "replace").strip()
    found, decoder = [], json.JSONDecoder()
    try:
        while text:
            each, end = decoder.raw_decode(text)
            found.append(each)
            text = text[end:].lstrip()
    except (ValueError, RecursionError):
        found = []
    if not found or not all(isinstance(each, list) for each in found):
        raise InputError(f"{file}: expected the output of `{command}`")
    return found
