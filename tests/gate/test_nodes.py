from __future__ import annotations

import pytest

from analyzer.errors import UsageError
from analyzer.gate.nodes import described, is_description, scheduling_nodes


def test_a_description_makes_nodes_with_what_it_says() -> None:
    groups = ["2xzone=a+cpu=4", "1xcontrol-plane+zone=a", "1xtaint=gpu=yes:NoSchedule+disk=ssd"]
    first, second, master, other = scheduling_nodes(described(groups))
    assert [first.name, second.name, master.name, other.name] == [
        "a-1", "a-2", "control-plane-1", "node-1",
    ]  # fmt: skip
    assert first.labels["topology.kubernetes.io/zone"] == "a"
    assert first.labels["kubernetes.io/hostname"] == "a-1"
    assert first.room == {"cpu": 4000}
    assert master.taints == (("node-role.kubernetes.io/control-plane", "", "NoSchedule"),)
    assert other.taints == (("gpu", "yes", "NoSchedule"),)
    assert (other.labels["disk"], other.room) == ("ssd", None)


@pytest.mark.parametrize(
    "group",
    [
        "0x",
        "0xzone=a",
        "3xzone=",
        "3xcpu=much",
        "3xtaint=a",
        "3xtaint=a:Never",
        "2xwords",
        "2xa=b c",
    ],
)
def test_a_malformed_description_is_refused(group: str) -> None:
    with pytest.raises(UsageError, match="--nodes"):
        described([group])


def test_names_of_files_are_no_descriptions() -> None:
    assert is_description("3x")
    assert is_description("12xzone=a")
    assert not is_description("nodes.json")
    assert not is_description("x3")


def test_a_cordoned_node_has_a_taint() -> None:
    item = {"kind": "Node", "metadata": {"name": "n"}, "spec": {"unschedulable": True}}
    (found,) = scheduling_nodes([item, item])
    assert found.taints == (("node.kubernetes.io/unschedulable", "", "NoSchedule"),)


def test_a_node_with_an_odd_amount_is_named() -> None:
    item = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "x"}}}
    with pytest.raises(ValueError, match=r"^node n: 'x' is not a quantity"):
        scheduling_nodes([item])
