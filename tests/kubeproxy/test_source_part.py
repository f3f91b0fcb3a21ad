"""Parts of sources that fare alike are one part."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_network

from analyzer.kubeproxy.source_part import ALL_SOURCES, SourcePart, as_one

ADDRESS = IPv4Address("192.0.2.1")
A, B, C, D = (ip_network(f"192.0.{at}.0/24") for at in range(4))


def test_networks_of_one_key_are_one_part_whatever_is_around_them() -> None:
    rest = SourcePart(None, (), ADDRESS, "rest", None)
    one = SourcePart(A, (B,), ADDRESS, "blocked", "rest")
    other = SourcePart(C, (), ADDRESS, "blocked", "allowed")
    own = SourcePart(D, (), ADDRESS, "own", "rest")
    assert as_one([rest, one, own, other]) == (
        rest,
        SourcePart(A, (B, C), ADDRESS, "blocked", "rest"),
        own,
    )


def test_a_single_part_stays_the_same_value() -> None:
    assert as_one([ALL_SOURCES])[0] is ALL_SOURCES
