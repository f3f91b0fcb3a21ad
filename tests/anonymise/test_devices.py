"""Beginnings of names stay beginnings: a rule for `cali+` is for the devices that it was for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.anonymise.devices import renamed
from analyzer.semantics.devices import LOCAL, USUAL

KEY = b"k" * 32
begins = st.sampled_from(["", "eth", "cali", "veth", "br-", "en", "flannel.", "x"])
names = st.builds(str.__add__, begins, st.from_regex(r"[a-z0-9.-]{0,10}", fullmatch=True))


@given(names, names)
def test_what_two_names_share_they_share_afterwards(one: str, other: str) -> None:
    new = renamed(KEY, one), renamed(KEY, other)
    assert [len(each) for each in new] == [len(one), len(other)]
    for length in range(min(len(one), len(other)) + 1):
        assert (one[:length] == other[:length]) == (new[0][:length] == new[1][:length])


@given(names)
def test_a_name_for_many_stands_for_those_that_it_stood_for(name: str) -> None:
    assert renamed(KEY, f"{name}+") == f"{renamed(KEY, name)}+"
    assert renamed(KEY, f"{name}*") == f"{renamed(KEY, name)}*"


@pytest.mark.parametrize("name", ["lo", "eth0", "cni0", "docker0", "flannel.1", "bond0", *USUAL])
def test_names_that_programs_give_stay(name: str) -> None:
    assert renamed(KEY, name) == name


@pytest.mark.parametrize("name", LOCAL)
def test_devices_that_are_not_of_pods_stay_so(name: str) -> None:
    assert renamed(KEY, name).startswith(name.rstrip("+0123456789")[:3])


@pytest.mark.parametrize(
    ("name", "kept"), [("cali1234567890a", "cali"), ("veth0a1b2c3d", "veth"), ("acmecorp0", "ac")]
)
def test_hashes_and_names_go(name: str, kept: str) -> None:
    found = {renamed(bytes([n]) * 16, name) for n in range(30)}
    assert name not in found
    assert all(each.startswith(kept) for each in found)
    assert len(found) > 25
