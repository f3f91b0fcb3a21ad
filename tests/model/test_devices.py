"""Devices of which one is a packet's: which of them a rule names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.devices import Devices
from analyzer.model.ternary import Ternary

DEVICES = ("cali1a", "cali1b", "cali2", "cali3")


@given(
    st.frozensets(st.sampled_from(DEVICES), min_size=1),
    st.sampled_from((*DEVICES, "cali1+", "cali+", "eth0", "+")),
)
def test_devices_known_one_by_one(names: frozenset[str], asked: str) -> None:
    held = {n for n in names if n == asked or (asked[-1] == "+" and n.startswith(asked[:-1]))}
    devices = Devices((), inside=True, names=names)
    wanted = Ternary.UNKNOWN if held and held < names else Ternary.of(bool(held))
    assert devices.is_named(asked) is wanted
    if wanted is Ternary.UNKNOWN:
        inside, outside = devices.parted(asked)
        assert inside.names == frozenset(held)
        assert outside.names == frozenset(names - held)
        assert inside.is_named(asked) is Ternary.TRUE
        assert outside.is_named(asked) is Ternary.FALSE
