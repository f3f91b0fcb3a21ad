from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.errors import InputError
from analyzer.parsers.neighbours import parse_neighbours


def test_those_who_did_not_answer_are_told() -> None:
    text = (
        '[{"dst":"10.0.0.1","dev":"eth0","state":["FAILED"]},'
        '{"dst":"10.0.0.2","dev":"eth0","lladdr":"02:00:00:00:00:01","state":["REACHABLE"]},'
        '{"dst":"fe80::1","dev":"eth0","state":["INCOMPLETE"]},{"dst":"x","state":["FAILED"]},7,{"dst":"10.0.0.3","state":1},{"dst":"10.0.0.4","state":[[]]}]'
    )
    assert parse_neighbours(text.encode(), "n") == {ip_address("10.0.0.1"), ip_address("fe80::1")}


def test_nobody_is_fine() -> None:
    assert parse_neighbours(b"", "n") == parse_neighbours(b"[]", "n") == frozenset()


@pytest.mark.parametrize("text", ["{}", "x", "1", "[" * 100_000])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected the output of `ip -j neighbour`"):
        parse_neighbours(text.encode(), "n")
