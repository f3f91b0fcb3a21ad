"""Flows end where the tables of this folder say: kube-proxy's design, written down by hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.support.flow_tables import Flow, FlowTable, alike, read_table

HERE = Path(__file__).parent
FILES = sorted(path.name for path in HERE.glob("*.txt"))


@cache
def table(name: str) -> FlowTable:
    return read_table(HERE / name)


@pytest.mark.parametrize(
    ("name", "flow"), [(name, flow) for name in FILES for flow in table(name).flows], ids=str
)
def test_a_flow_ends_as_written(name: str, flow: Flow) -> None:
    found = table(name).ends(flow)
    assert alike(found, flow.ends), {end: str(share) for end, share in found.items()}
