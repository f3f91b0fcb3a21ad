"""Lines for other programs: every frontend from every source, shares as decimals."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from analyzer.kubeproxy.generate import RulesLayout, iptables_save, services
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import ServicePort, Source
from analyzer.model.cluster import Cluster
from analyzer.parsers.iptables_save import parse
from analyzer.reports import services_tsv
from analyzer.reports.answers import ServicesAnswer
from analyzer.reports.route_networks import networks
from tests.support.answers import AFTER, BEFORE, RICH
from tests.support.clusters import one_service
from tests.support.dumps import cluster_ip, dump
from tests.support.parsed_objects import parse_objects

#: Frontend, endpoint, lower, upper, from.
Row = tuple[str, str, float, float, str]


def written(text: str) -> tuple[tuple[ServicePort, ...], str]:
    ruleset = parse(text, "dump.txt")
    view = Recogniser(ruleset, Cluster()).view()
    answer = ServicesAnswer(
        ruleset=ruleset, cluster=Cluster(), view=view, services=view.services, diagnostics=()
    )
    return view.services, "".join(services_tsv.render(answer))


def rows(text: str) -> Iterator[Row]:
    head, *lines = written(text)[1].splitlines()
    names = head.split("\t")
    for line in lines:
        row = dict(zip(names, line.split("\t"), strict=True))
        numbers = float(row["lower"]), float(row["upper"])
        yield row["frontend"], row["endpoint"], *numbers, row["from"]


def wanted(service: ServicePort) -> set[Row]:
    """The rows of a ServicePort for each source by itself."""
    found: set[Row] = set()
    for route in service.routes:
        network = f" in {networks(route)}" if route.networks else ""
        source = f"{route.source.value}{network}"
        frontend = f"{route.frontend.kind.value} {route.frontend}"
        for share in route.shares:
            ends = float(share.share.lower), float(share.share.upper)
            found.add((frontend, str(share.endpoint), *ends, source))
        if route.unresolved or not route.shares:
            found.add((frontend, "", 0.0, float(route.unresolved), source))
    return found


@pytest.mark.parametrize("text", [RICH, BEFORE, AFTER], ids=["unknown", "before", "after"])
def test_every_frontend_is_told_from_every_source(text: str) -> None:
    every = {row for service in written(text)[0] for row in wanted(service)}
    of = {(frontend, source) for frontend, *_, source in every}
    told = set()
    for frontend, *ends, sources in rows(text):
        each = [s for f, s in of if f == frontend] if sources == "any" else sources.split(",")
        told |= {(frontend, *ends, source) for source in each}
    assert told == every


def test_sources_that_fare_alike_are_one_and_others_are_named() -> None:
    of = {frontend: set[str]() for frontend, *_ in rows(AFTER)}
    for frontend, *_, sources in rows(AFTER):
        of[frontend].add(sources)
    assert of["ClusterIP 10.96.0.1:80"] == {"any"}
    named = {s for sources in of["NodePort *:30080"] for s in sources.split(",")}
    assert "external in 10.0.0.0/8" in named
    assert {s.value for s in Source} & named


def test_an_exact_share_is_one_and_the_same_in_both_bounds() -> None:
    assert {row[2:4] for row in rows(BEFORE)} >= {(0.5, 0.5), (1.0, 1.0)}
    assert {row[2:4] for row in rows(RICH)} >= {(0.0, 0.5), (0.5, 1.0)}


def test_a_frontend_whose_chain_nobody_knows_has_a_line_of_what_may_be() -> None:
    """Nothing is said to go to no endpoint, which would be an all-clear."""
    ((_, endpoint, lower, upper, source),) = rows(dump(cluster_ip(), "-A KUBE-SVC-A -j NOWHERE"))
    assert (endpoint, lower, upper, source) == ("", 0.0, 1.0, "any")


def test_affinity_and_the_pods_that_objects_name_are_told() -> None:
    given = one_service(RulesLayout.V1_36, endpoints=2)
    items = json.loads(json.dumps(given.items))
    for item in items:
        for at, endpoint in enumerate(item.get("endpoints", ())):
            endpoint["targetRef"] = {"kind": "Pod", "namespace": "default", "name": f"a-{at}"}
    objects = parse_objects([("objects.json", json.dumps({"items": items}).encode())])
    ruleset = parse(given.dump, "dump.txt")
    view = Recogniser(ruleset, objects).view()
    answer = ServicesAnswer(
        ruleset=ruleset, cluster=objects, view=view, services=view.services, diagnostics=()
    )
    head, *lines = "".join(services_tsv.render(answer)).splitlines()
    told = [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]
    assert {row["affinity"] for row in told} == {"600"}
    assert {row["pod"] for row in told if row["endpoint"]} == {"default/a-0", "default/a-1"}


def test_lines_grow_with_the_endpoints() -> None:
    some, many = (
        len(written(iptables_save(list(services(1, endpoints=(size,)))))[1])
        for size in (200, 1_000)
    )
    assert many < 6 * some
