"""Networks in the form in which an nft rule matches them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address, summarize_address_range

from analyzer.model.addresses import IPV4, Address, Network, address_to_text


def networks_to_text(networks: Sequence[Network]) -> str:
    """Return networks as nft prints the set of a rule: in order, and joined where they touch.

    A single network is printed alone; one that several were joined to is printed in braces.

    Source: nft 1.0.6, src/intervals.c, ``set_automerge``, and src/evaluate.c,
    ``expr_evaluate_set``; as nft printed such sets in a network namespace.
    """
    if len(networks) == 1:
        return _range_to_text(networks[0][0], networks[0][-1])
    return "{ " + ", ".join(_range_to_text(*each) for each in _joined(networks)) + " }"


def _joined(networks: Sequence[Network]) -> Iterator[tuple[Address, Address]]:
    """Yield the ranges that networks of one family cover, the lowest first."""
    ends = sorted((int(network[0]), int(network[-1])) for network in networks)
    version = networks[0].version
    low, high = ends[0]
    for first, last in ends[1:]:
        if first > high + 1:
            yield _address(low, version), _address(high, version)
            low = first
        high = max(high, last)
    yield _address(low, version), _address(high, version)


def _address(number: int, version: int) -> Address:
    return ip_address(number.to_bytes(4 if version == IPV4 else 16))


def _range_to_text(low: Address, high: Address) -> str:
    if low == high:
        return address_to_text(low)
    parts = [*summarize_address_range(low, high)]
    if len(parts) == 1:
        return f"{address_to_text(low)}/{parts[0].prefixlen}"
    return f"{address_to_text(low)}-{address_to_text(high)}"
