"""Commands that take dead endpoints out: put into the dump, they lose nothing more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.kubeproxy.generate import (
    FLAGS,
    Layout,
    mixed,
    node_name,
    proxy_config,
    render_nft,
    render_rules,
    service_ports,
)
from analyzer.kubeproxy.view import Source
from analyzer.parsers import formats
from analyzer.parsers.kubernetes import cluster_of
from tests.support.after_steps import after, commands
from tests.support.captures import FIXTURES, ROOT
from tests.support.commands import Command
from tests.support.dumps import dump, two_endpoints
from tests.support.reading import recogniser

NFT = ROOT / "fixtures" / "nft"
DUMPS = [
    *sorted(FIXTURES.glob("*/two-node*/iptables-*-save.txt")),
    *sorted(FIXTURES.glob("*/two-node*/nft-list-ruleset.txt")),
    *sorted(NFT.glob("*-nftables/seed-dns/nft-*list-ruleset.txt")),
]
#: Where endpoints of these dumps are; what is on x dies.
PLACES = (
    "10.244.0.0/24=x,10.244.1.0/24=y,10.1.0.1/32=x,10.1.0.2/32=y,192.168.0.0/24=y,172.16.0.0/12=y"
)


def states(command: Command, *asked: str) -> dict[tuple[str, str], Any]:
    done = command("loss", *asked, "--format", "json")
    assert done.status == 0, done.err
    return {(e["name"], e["protocol"]): e for e in json.loads(done.out)["services"]}


def check(command: Command, text: str, asked: tuple[str, ...]) -> int:
    """Run all commands; return how many ServicePorts they have healed."""
    before = states(command, command.file("dump", text), *asked)
    done = command("loss", "dump", *asked, "--all")
    for each in commands(done.out):
        text = after(text, each)
    found = states(command, command.file("after", text), *asked)
    for key, old in before.items():
        if old["state"] == "degraded" and any(k in done.out for k in [f"# {key[0]}\n"]):
            assert found[key]["state"] == "untouched", key
        else:
            assert found[key]["worst_loss"] == old["worst_loss"], key
        # Nobody is sent to where no flow went before.
        ends = {(e["address"], e["port"]) for e in old["endpoints"] if not e["dead"]}
        assert {(e["address"], e["port"]) for e in found[key]["endpoints"] if not e["dead"]} <= ends
    return sum(found[key]["state"] != old["state"] for key, old in before.items())


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: "/".join(path.parts[-3:]))
def test_captured_dumps_lose_nothing_more(command: Command, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    healed = check(command, text, ("--node-of", PLACES, "--dead-node", "x"))
    assert healed == (3 if "seed-dns" in str(path) else 4)


LAYOUTS = [Layout.V1_20, Layout.V1_30, Layout.V1_36]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mode", ["iptables", "nftables"])
def test_services_of_all_kinds_lose_nothing_more(
    command: Command, layout: Layout, mode: str
) -> None:
    if mode == "nftables" and layout is Layout.V1_20:
        return
    items = mixed(24, 6)
    proxy = proxy_config(items, FLAGS, node=node_name(0), layout=layout, family=4)
    render = render_rules if mode == "iptables" else render_nft
    text = render(service_ports(items, layout, 4), proxy)
    given = "--objects", command.file("objects.json", json.dumps({"items": items}))
    healed = check(command, text, (*given, "--node", node_name(0), "--dead-node", node_name(1)))
    assert healed >= 6


@pytest.mark.parametrize("render", [render_rules, render_nft])
def test_whose_address_an_endpoint_sees_stays_as_it_is(command: Command, render: Any) -> None:
    items = mixed(24, 6)
    proxy = proxy_config(items, FLAGS, node=node_name(0), layout=Layout.V1_36, family=4)
    text = render(service_ports(items, Layout.V1_36, 4), proxy)
    given = "--objects", command.file("objects.json", json.dumps({"items": items}))
    asked = *given, "--node", node_name(0), "--dead-node", node_name(1), "--all"
    changed = text
    for each in commands(command("loss", command.file("dump", text), *asked).out):
        changed = after(changed, each)
    assert changed != text
    cluster = cluster_of(items, "objects")
    own = cluster.nodes[node_name(0)].addresses
    before, now = (
        recogniser(
            formats.read_ruleset(each.encode(), "dump"),
            cluster,
            node=node_name(0),
            node_addresses=own,
        ).view()
        for each in (text, changed)
    )
    for old, new in zip(before.services, now.services, strict=True):
        for route, other in zip(old.routes, new.routes, strict=True):
            # Of its own flows another endpoint's are more than before.
            if route.source is not Source.HAIRPIN:
                seen = {share.endpoint: share.masquerade for share in route.shares}
                assert {e.endpoint: e.masquerade for e in other.shares}.items() <= seen.items()


def test_what_has_no_chain_of_its_name_gets_no_command(command: Command) -> None:
    asked = command.file("dump.txt", dump(*two_endpoints())), "--dead", "10.0.0.1"
    assert commands(command("loss", *asked).out) == []


def test_a_chain_that_sends_elsewhere_gets_no_command(command: Command) -> None:
    text = DUMPS[0].read_text(encoding="utf-8")
    whole = commands(command("loss", str(DUMPS[0]), "--dead", "10.244.0.7").out)
    (line,) = [each for each in text.splitlines() if "--to-destination 10.244.0.7:8080" in each]
    more = line.replace("10.244.0.7", "10.244.0.77").replace(" -p tcp", " -s 10.9.9.9/32 -p tcp")
    asked = command.file("dump.txt", text.replace(line, f"{more}\n{line}")), "--dead", "10.244.0.7"
    assert len(whole) == 1
    assert commands(command("loss", *asked).out) == []
