"""ServicePorts survive as rows, and are called alike where they are alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.cluster.content import (
    Encoder,
    Lists,
    New,
    block_of,
    bounds_from_row,
    endpoint_from_row,
    service_from_rows,
)
from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.rows.endpoints import EndpointRows
from analyzer.kubeproxy.view import ServicePort
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.parsers.formats import read_ruleset
from tests.support.captures import FIXTURES
from tests.support.clusters import GeneratedCluster, clusters
from tests.support.effort import examples

CAPTURES = ("1.14.0-iptables-legacy/seed-dns", "1.36.2-iptables-legacy/two-node@worker1")


def decoded(new: New) -> dict[str, ServicePort]:
    """Return what rows say, by their digests."""
    lists = Lists(
        {
            digest: tuple(endpoint_from_row(*row[2:4]) for row in rows)
            for digest, rows in new.endpoints.items()
        },
        {
            digest: tuple(bounds_from_row(*row[2:6]) for row in rows)
            for digest, rows in new.distributions.items()
        },
    )
    return {
        digest: service_from_rows(row, [each[5:] for each in new.routes[digest]], lists)
        for digest, row in new.service_ports.items()
    }


def services_of(dump: str) -> tuple[ServicePort, ...]:
    rules = read_ruleset(dump.encode(), "dump", None, None, None, EndpointRows.skim)
    assert isinstance(rules, Ruleset)
    return Recogniser(rules, Cluster()).view().services


def check(services: tuple[ServicePort, ...]) -> None:
    encoder = Encoder()
    digests = [encoder.encode(each) for each in services]
    back = decoded(encoder.taken())
    for digest, service in zip(digests, services, strict=True):
        assert back[digest] == service
        assert encoder.encode(back[digest]) == digest
    assert encoder.taken() == New.nothing()


@examples(12, 300)
@given(data=st.data())
def test_a_service_survives_as_rows(data: st.DataObject) -> None:
    cluster: GeneratedCluster = data.draw(clusters(data.draw(st.sampled_from(RulesLayout))))
    check(services_of(cluster.dump))


@pytest.mark.parametrize("capture", CAPTURES)
def test_services_of_a_capture_survive(capture: str) -> None:
    found = services_of((FIXTURES / capture / "iptables-legacy-save.txt").read_text())
    assert found
    check(found)


def test_a_share_of_thousands_of_digits_survives() -> None:
    rows: list[str] = ["*nat", ":KUBE-SERVICES - [0:0]", ":KUBE-SVC-A - [0:0]"]
    ends = [f"10.0.{at // 250}.{at % 250 + 1}" for at in range(600)]
    rows += [f":KUBE-SEP-{at} - [0:0]" for at in range(600)]
    rows += [
        '-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "ns/a cluster IP" -m tcp '
        "--dport 80 -j KUBE-SVC-A"
    ]
    for at in range(600):
        chance = f"-m statistic --mode random --probability {1 / (600 - at):.11f} "
        rows.append(f"-A KUBE-SVC-A {chance if at < 599 else ''}-j KUBE-SEP-{at}")
    for at, end in enumerate(ends):
        rows.append(f"-A KUBE-SEP-{at} -p tcp -m tcp -j DNAT --to-destination {end}:80")
    (service,) = services_of("\n".join([*rows, "COMMIT", ""]))
    assert len(service.routes[0].shares) == 600
    check((service,))


def test_lists_that_are_alike_are_kept_once() -> None:
    encoder = Encoder()
    services = services_of(
        (FIXTURES / CAPTURES[1] / "iptables-legacy-save.txt").read_text(encoding="utf-8")
    )
    for each in services:
        encoder.encode(each)
    new = encoder.taken()
    routes: list[Any] = [row for rows in new.routes.values() for row in rows]
    assert len(new.distributions) < len(new.service_ports) < len(routes)
    assert {row[9] for row in routes} == set(new.distributions)


def test_a_service_is_in_the_same_block_at_every_node() -> None:
    dump = (FIXTURES / CAPTURES[1] / "iptables-legacy-save.txt").read_text(encoding="utf-8")
    other = dump.replace("--probability 0.50000000000", "--probability 0.25000000000")
    blocks = [[block_of(each) for each in services_of(text)] for text in (dump, other)]
    assert dump != other
    assert blocks[0] == blocks[1]
    assert all(0 <= each < 256 for each in blocks[0])
