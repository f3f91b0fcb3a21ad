from __future__ import annotations

from typing import Any

import pytest

from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.nft.ruleset import Chain, Flowtable, NamedObject, Set
from analyzer.parsers.nft import definitions
from analyzer.parsers.nft.definitions_json import (
    read_chain,
    read_flowtable,
    read_object,
    read_set,
)
from analyzer.parsers.nft.extension import NotUnderstood


def test_a_base_chain_has_a_hook() -> None:
    body = {"name": "c", "type": "nat", "hook": "output", "prio": -100, "policy": "drop"}
    assert read_chain(body, ()) == Chain(
        name="c", rules=(), type="nat", hook="output", priority=-100, policy="drop"
    )


def test_a_base_chain_without_a_policy_accepts_and_another_chain_has_none() -> None:
    assert read_chain({"name": "c", "hook": "input"}, ()).policy == "accept"
    assert read_chain({"name": "c"}, ()) == Chain(name="c", rules=())


@pytest.mark.parametrize(("given", "devices"), [("eth0", ("eth0",)), (["a", "b"], ("a", "b"))])
def test_a_chain_may_name_one_device_or_several(given: Any, devices: tuple[str, ...]) -> None:
    assert read_chain({"name": "c", "hook": "ingress", "dev": given}, ()).devices == devices


@pytest.mark.parametrize(
    "body", [{}, {"name": "c", "prio": "0"}, {"name": "c", "prio": True}, {"name": "c", "hook": 1}]
)
def test_a_chain_with_an_odd_property_is_not_understood(body: dict[str, Any]) -> None:
    with pytest.raises(NotUnderstood):
        read_chain(body, ())


def test_a_set_is_read_property_by_property() -> None:
    body = {
        "type": ["ipv4_addr", "inet_service"],
        "flags": ["timeout"],
        "timeout": 10_800,
        "gc-interval": 10,
        "size": 7,
        "policy": "memory",
        "auto-merge": True,
        "comment": "clients",
        "stmt": [{"counter": None}],
        "elem": [80],
    }
    found = read_set("s", "ip", body)
    assert tuple(found.elements) == (e.Element(key=80),)
    assert found == Set(
        name="s",
        key=("ipv4_addr", "inet_service"),
        flags=("timeout",),
        timeout=10_800,
        gc_interval=10,
        size=7,
        policy="memory",
        auto_merge=True,
        statements=(s.Counter(),),
        comment="clients",
        elements=tuple(found.elements),
    )


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("ipv4_addr", ("ipv4_addr",)),
        ("ipv4_addr . mark", ("ipv4_addr", "mark")),
        ({"typeof": {"payload": {"protocol": "ip", "field": "daddr"}}}, ("ipv4_addr",)),
        (
            {"typeof": {"concat": [{"meta": {"key": "mark"}}, {"meta": {"key": "l4proto"}}]}},
            ("mark", "inet_proto"),
        ),
    ],
)
def test_a_type_is_given_in_several_ways(given: Any, key: tuple[str, ...]) -> None:
    assert read_set("s", "ip", {"type": given}).key == key
    assert read_set("m", "ip", {"type": "mark", "map": given}).value == key


def test_a_single_element_needs_no_array() -> None:
    found = read_set("s", "ip", {"type": "mark", "elem": {"range": [1, 9]}})
    assert tuple(found.elements) == (e.Element(key=e.Range(1, 9)),)


@pytest.mark.parametrize("more", [{"size": "7"}, {"timeout": -1}, {"flags": 3}, {"auto-merge": 1}])
def test_a_set_with_an_odd_property_is_not_understood(more: dict[str, Any]) -> None:
    with pytest.raises(NotUnderstood):
        read_set("s", "ip", {"type": "mark", **more})


@pytest.mark.parametrize(
    ("kind", "body", "lines"),
    [
        ("counter", {"packets": 3, "bytes": 180}, ["packets 3 bytes 180"]),
        ("quota", {"bytes": 1_024, "used": 5, "inv": True}, ["over 1 kbytes used 5 bytes"]),
        ("quota", {"bytes": 25}, ["25 bytes"]),
        ("limit", {"rate": 10, "per": "minute", "burst": 5}, ["rate 10/minute burst 5 packets"]),
        (
            "limit",
            {"rate": 2, "per": "second", "burst": 0, "unit": "kbytes", "inv": True},
            ["rate over 2 kbytes/second"],
        ),
        (
            "ct helper",
            {"type": "ftp", "protocol": "tcp", "l3proto": "ip"},
            ['type "ftp" protocol tcp', "l3proto ip"],
        ),
    ],
)
def test_a_named_object_says_what_its_text_says(
    kind: str, body: dict[str, Any], lines: list[str]
) -> None:
    found = read_object(kind, "ip", {"name": "x", **body})
    assert found == definitions.read_object(kind, "x", "ip", lines)


def test_of_other_objects_the_text_is_kept() -> None:
    body = {"name": "x", "mss": 1_460}
    want = NamedObject(
        kind="synproxy", name="x", properties=(("text", '{"name": "x", "mss": 1460}'),)
    )
    assert read_object("synproxy", "ip", body) == want


def test_a_flowtable_has_hook_priority_and_devices() -> None:
    body = {"name": "f", "hook": "ingress", "prio": 1, "dev": ["eth0", "eth1"]}
    want = Flowtable(name="f", hook="ingress", priority=1, devices=("eth0", "eth1"))
    assert read_flowtable(body) == want
    assert read_flowtable({"name": "f", "prio": "odd"}) == Flowtable(name="f")
