"""NodePorts answer at the addresses that rows name, whichever of the node's is told first."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.kubeproxy.dispatch.node_port_address import answering_first
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import FrontendKind, Route, View
from analyzer.model.cluster import Cluster
from analyzer.parsers.iptables_save import parse
from tests.support.captures import ROOT

DOCKER, OWN, OTHER = map(ip_address, ("172.17.0.1", "192.168.0.11", "10.10.0.11"))
LAST = "-A KUBE-SERVICES {}-m addrtype --dst-type LOCAL -j KUBE-NODEPORTS\n"
NODE_PORT = (
    "-A KUBE-NODEPORTS -p tcp -m comment --comment default/app -m tcp --dport 30080 "
    "-j KUBE-EXT-ABCDEFGHIJKLMNOP\n"
    "-A KUBE-EXT-ABCDEFGHIJKLMNOP -j {}\n"
)


def dump(*guards: str) -> str:
    """Return a captured node whose Service app has a NodePort, at the addresses of `guards`."""
    text = (ROOT / "fixtures/noise/base.txt").read_text()
    chain = text.partition('"default/app cluster IP"')[2].partition("-j ")[2].split()[0]
    first, *others = text.splitlines(keepends=True)
    rows = NODE_PORT.format(chain) + "".join(map(LAST.format, guards))
    kept = [line for line in others if "-j KUBE-NODEPORTS" not in line or "INPUT" in line]
    at = max(n for n, line in enumerate(kept) if line.startswith("-A KUBE-SERVICES"))
    new = "".join([first, *kept[: at + 1], rows, *kept[at + 1 :]])
    return new.replace(":KUBE-SERVICES", ":KUBE-EXT-ABCDEFGHIJKLMNOP - [0:0]\n:KUBE-SERVICES")


def seen(text: str, *own: object) -> View:
    return Recogniser(parse(text, "dump"), Cluster(), node_addresses=own).view()  # type: ignore[arg-type]


def to_node_ports(view: View) -> list[Route]:
    routes = (route for service in view.services for route in service.routes)
    return [route for route in routes if route.frontend.kind is FrontendKind.NODE_PORT]


@pytest.mark.parametrize("own", [(DOCKER, OWN), (OWN, DOCKER), (DOCKER, OTHER, OWN), (OWN,)])
@pytest.mark.parametrize("guards", [("-d 192.168.0.0/24 ",), ("-d 192.168.0.11/32 ",), ("",)])
def test_flows_to_a_node_port_are_sent_to_an_address_that_it_answers_at(
    own: tuple[object, ...], guards: tuple[str, ...]
) -> None:
    routes = to_node_ports(seen(dump(*guards), *own))
    assert routes
    assert all(len(route.shares) == 2 for route in routes if not route.unresolved)


def test_where_it_answers_at_none_of_the_nodes_it_leads_nowhere() -> None:
    found = seen(dump("-d 203.0.113.0/24 "), DOCKER, OWN)
    routes = [
        r for s in found.services for r in s.routes if r.frontend.kind is FrontendKind.NODE_PORT
    ]
    assert not any(route.shares for route in routes)


def test_addresses_stay_in_their_order_where_rows_name_none_of_them() -> None:
    (table,) = (parse(dump(""), "dump").tables[name] for name in ("nat",))
    assert answering_first(table, (DOCKER, OWN)) == (DOCKER, OWN)
    (table,) = (
        parse(dump("-d 10.10.0.0/16 ", "-d 192.168.0.11/32 "), "d").tables[n] for n in ("nat",)
    )
    assert answering_first(table, (DOCKER, OWN, OTHER)) == (OWN, OTHER, DOCKER)
