"""What a person reads first, and how ranges and long sets are told."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from ipaddress import IPv4Address

import pytest

from analyzer.failure.whatif import FailureKind, WhatIfOptions
from analyzer.model.cluster import Cluster, Placement
from analyzer.reports import whatif_junit, whatif_text
from analyzer.reports.unstyled import render_unstyled
from tests.support.answers import BEFORE, RICH, whatif_answer
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.dumps import chance, cluster_ip, dump, endpoint
from tests.support.mixed_clusters import files
from tests.support.noise import NOISE


def shown(text: str, cluster: Cluster, asked: WhatIfOptions | None = None) -> str:
    answer = whatif_answer(
        text, cluster, asked or WhatIfOptions(), max_loss=None, min_survives=None
    )
    return render_unstyled(whatif_text.render(answer))


def on(*nodes: str | None, zones: bool = False) -> Cluster:
    """Return where the endpoints 10.0.0.1, 10.0.0.2 and so on are."""
    return Cluster(
        placements={
            IPv4Address("10.0.0.1") + at: Placement(node, f"z{at}" if zones else None)
            for at, node in enumerate(nodes)
        }
    )


def one_of(number: int) -> str:
    """Return the dump of a Service of so many endpoints."""
    return dump(
        cluster_ip(),
        *(
            chance(f"{1 / (number - at):.11f}", f"KUBE-SEP-{at}")
            for at in range(number)
            if at < number - 1
        ),
        f"-A KUBE-SVC-A -j KUBE-SEP-{number - 1}",
        *(endpoint(f"KUBE-SEP-{at}", f"10.0.0.{at + 1}:80") for at in range(number)),
    )


@pytest.mark.parametrize(
    ("nodes", "lost"),
    [
        (["a", "b", "c"], "33.3%"),
        # Four of six for certain, and perhaps five: that is more than 83.3%.
        (["a", None, "b", "b", "b", "b"], "83.4%"),
    ],
)
def test_the_most_that_may_be_lost_is_rounded_up(nodes: list[str | None], lost: str) -> None:
    asked = WhatIfOptions(kinds=frozenset({FailureKind.NODE}))
    answer = whatif_answer(
        one_of(len(nodes)), on(*nodes), asked, max_loss=Fraction(3, 10), min_survives=None
    )
    breach = f"may cost more, for example ns/a:http {lost} of the flows"
    assert breach in render_unstyled(whatif_text.render(answer))
    assert f"ns/a:http may lose {lost}; worst loss" in "".join(whatif_junit.render(answer))


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        (
            ["a", "b"],
            "ns/a:http is 2 nodes from total loss (a, b); losing a costs 1 of 1 ServicePort 50.0% "
            "of its new flows.",
        ),
        (
            ["a", "a"],
            "ns/a:http is 1 node from total loss (a); losing a puts 1 of 1 ServicePort in total "
            "loss.",
        ),
        (
            ["a", None],
            "ns/a:http may be 1 node from total loss; losing a costs 1 of 1 ServicePort 50.0 to "
            "100.0% of its new flows.",
        ),
    ],
)
def test_the_first_line_says_who_is_nearest_and_what_the_worst_node_costs(
    nodes: list[str | None], first: str
) -> None:
    assert shown(one_of(2), on(*nodes)).splitlines()[0] == first


def test_a_long_set_is_counted() -> None:
    text = shown(one_of(5), on(*"abcde"))
    assert text.startswith("ns/a:http is 5 nodes from total loss; losing a ")
    assert "  5 nodes  " in text.split("\n\n")[2]
    assert " 4 nodes " in text


def test_zones_stand_beside_nodes_where_they_are_known() -> None:
    text = shown(one_of(3), on(*"abc", zones=True))
    assert "\nzone z0 " in text
    assert "ZONES" in text
    assert "ZONES" not in shown(one_of(3), on(*"abc"))


def test_a_range_has_a_sign_where_it_may_be_more() -> None:
    text = shown(one_of(2), on("a", None))
    assert ">=0 nodes" in text
    assert "not known" in text
    assert "Node unknown for 1 endpoint: losses are ranges. The objects do not have it: " in text


def test_what_is_only_possible_is_not_said_to_be_certain(command: Command) -> None:
    text = shown(one_of(2), on("a", None))
    assert "\n1 ServicePort: 1 may not survive the loss of some single node.\n" in text
    # It is not known whether any flow gets through, and so neither whether failures cost any.
    ufw = str(NOISE / "ufw.txt"), "--objects", str(NOISE / "objects.json")
    text = command("whatif", *ufw).out
    assert "; losing master may cost 5 of 5 ServicePorts up to 100.0% of their new flows.\n" in text
    assert "\n5 ServicePorts: 5 may not survive the loss of some single node.\n" in text
    assert "\n0 of 1 pair of nodes certainly put a ServicePort in total loss.\n" in text
    text = command("whatif", DUMP, *OBJECTS).out
    assert "\n1 of 1 pair of nodes puts a ServicePort in total loss.\n" in text


def test_a_zone_that_is_not_known_is_told() -> None:
    cluster = Cluster(
        placements={
            IPv4Address("10.0.0.1"): Placement("a", "x"),
            IPv4Address("10.0.0.2"): Placement("b", None),
        }
    )
    found = shown(one_of(2), cluster)
    assert "Zone unknown for 1 endpoint: losses by zone are ranges." in found
    assert "have no label topology.kubernetes.io/zone." in found
    assert "Pass --objects" not in found


def test_the_weakest_route_is_named_where_others_live_on() -> None:
    text = shown(BEFORE, on("n1", "n2"))
    assert text.startswith("ns/gone:http is 1 node from total loss (n1); losing n1 puts 1 of 2 ")
    assert " n1: external to NodePort " in text
    assert "costs 1 other 100.0% of its new flows, on its worst route." in text


def test_the_route_that_is_named_is_the_one_that_is_lost() -> None:
    """Another may survive no more, and nobody knows."""
    text = shown(RICH, on("n1", "n2"))
    assert text.startswith("ns/a:http is 1 node from losing all flows on a route (n1); ")
    assert " n1: pod to NodePort " in text


def test_the_dumps_own_node_is_marked() -> None:
    text = shown(one_of(2), on("a", "b"), WhatIfOptions(node="a"))
    assert "\nnode a* " in text
    assert "\na + b* " in text
    assert "\nnode b " in text
    assert (
        "\n* includes the node that the dump is from: once dead it sends no flows itself.\n"
    ) in text


def test_where_nothing_has_endpoints_that_is_said() -> None:
    refused = RICH[RICH.index("*filter") :]
    nat = dump("-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS")
    text = shown(nat + refused, on("a"))
    assert text.startswith("No ServicePort has endpoints: nothing can be lost.\n")


@pytest.mark.deep
def test_the_first_lines_say_how_many_survive_and_who_has_no_endpoints(command: Command) -> None:
    done = command("whatif", *files(command, 200))
    lines = done.out.splitlines()
    head = lines[: lines.index("")]
    assert len(head) <= 10
    (totals,) = [line for line in head if re.match(r"\d+ ServicePorts at node ", line)]
    (without,) = [line for line in head if line.startswith("Without endpoints, whatever fails: ")]
    (number,) = re.findall(r" and (\d+) more\. All: kubeodds services\.$", without)
    document = json.loads(command("whatif", *files(command, 200), "-o", "json").out)
    counted = len(document["services"])
    assert int(totals.split()[0]) == counted
    assert int(number) + 3 == len(document["no_endpoints"])
    assert any(
        line.startswith("Of new flows, by the worst route (from any source") for line in head
    )
    (more,) = [line for line in lines if line.endswith("that survive as much or more: --all")]
    rows = lines[lines.index("", lines.index("") + 1) + 2 : lines.index(more)]
    assert int(more.split()[0]) + len(rows) == counted
