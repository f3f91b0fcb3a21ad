from __future__ import annotations

from ipaddress import ip_address

from analyzer.model.iptables.options import AddressRange, Masked, Range


def test_a_range_holds_both_its_ends() -> None:
    assert [number for number in range(78, 84) if number in Range(80, 82)] == [80, 81, 82]
    assert 80 in Range(80, 80)


def test_a_range_of_addresses_holds_both_its_ends() -> None:
    held = AddressRange(ip_address("10.0.0.9"), ip_address("10.0.0.10"))
    assert ip_address("10.0.0.8") not in held
    assert ip_address("10.0.0.9") in held
    assert ip_address("10.0.0.10") in held
    assert ip_address("10.0.0.11") not in held


def test_a_range_of_addresses_holds_none_of_the_other_ip_version() -> None:
    held = AddressRange(ip_address("0.0.0.1"), ip_address("0.0.0.9"))
    assert ip_address("::5") not in held


def test_a_mark_without_a_mask_is_compared_whole() -> None:
    assert Masked(1).mask == 2**32 - 1
