"""What a node's rules lack is a missing endpoint, unless only a Local policy explains it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from analyzer.cluster.drift_kinds import DriftKind
from analyzer.cluster.drift_services import ObjectFacts, behind, differ_behind, differences
from analyzer.kubeproxy.generate import RulesLayout, proxy_config, render_rules, service_ports
from analyzer.kubeproxy.view import ServicePort
from tests.support.cluster_reading import objects_file, reader
from tests.support.drifts import address, endpoints_of, name, objects

#: The node of each endpoint of "plain".
_NODES: Final = {address(0, at): name(at) for at in range(3)}


def _plain(folder: Path, ends: Sequence[int], *flags: str) -> ServicePort:
    """Return a ServicePort with the endpoints of these nodes, as node-00 has it."""
    items = objects(3)
    endpoints_of(items, "plain")[:] = [endpoints_of(items, "plain")[at] for at in ends]
    layout = RulesLayout.V1_36
    flags = ("--cluster-cidr=10.244.0.0/16", *flags)
    config = proxy_config(items, flags, node=name(0), layout=layout)
    dump = render_rules(list(service_ports(items, layout)), config)
    shown = reader(objects_file(folder, items), shares=False).shown(dump.encode(), name(0))
    return next(each for each in shown if each.name.text == "ns/plain:http")


@pytest.mark.parametrize(
    ("ends", "wanted", "nodes", "told"),
    [
        # As a repair leaves it after the other node of a cluster of two was lost.
        ([0], [0, 1], [0], [(DriftKind.MISSING_ENDPOINT, f"{address(0, 1)}:8080")]),
        ([0], [0, 1, 2], [0], [(DriftKind.OTHER_LOCALITY, f"{address(0, 0)}:8080")]),
        (
            [1],
            [0, 1, 2],
            [0],
            [
                (DriftKind.MISSING_ENDPOINT, f"{address(0, 0)}:8080"),
                (DriftKind.MISSING_ENDPOINT, f"{address(0, 2)}:8080"),
            ],
        ),
        # Two nodes with the endpoint of one of them have no Local policy.
        (
            [0],
            [0, 1, 2],
            [0, 1],
            [
                (DriftKind.MISSING_ENDPOINT, f"{address(0, 1)}:8080"),
                (DriftKind.MISSING_ENDPOINT, f"{address(0, 2)}:8080"),
            ],
        ),
    ],
)
def test_a_node_lacks_endpoints(
    tmp_path: Path,
    ends: list[int],
    wanted: list[int],
    nodes: list[int],
    told: list[tuple[DriftKind, str]],
) -> None:
    facts = ObjectFacts(services={}, owner=lambda _: None, place=lambda each: _NODES.get(str(each)))
    own = [name(at) for at in nodes]
    found = differences(_plain(tmp_path, ends), _plain(tmp_path, wanted), facts, own)
    assert [*found] == told


@pytest.mark.parametrize(
    ("contents", "differ"),
    [
        ([([0], ()), ([1], ()), ([1], ("--masquerade-all",))], True),
        # The first has both endpoints, and each of the others one that the other lacks.
        ([([0, 1], ()), ([1], ()), ([0], ("--masquerade-all",))], True),
        ([([0], ()), ([1], ()), ([2], ("--masquerade-all",))], False),
        ([([0], ()), ([0, 1], ()), ([1, 2], ())], False),
    ],
)
def test_any_two_nodes_are_compared_after_dnat(
    tmp_path: Path, contents: list[tuple[list[int], tuple[str, ...]]], differ: bool
) -> None:
    found = [_plain(tmp_path, ends, *flags) for ends, flags in contents]

    def is_nodes(_: object) -> bool:
        return False

    pairs = ((ours, theirs) for ours in found for theirs in found)
    assert any(any(behind(*pair, is_nodes)) for pair in pairs) is differ
    assert differ_behind(found, is_nodes) is differ
