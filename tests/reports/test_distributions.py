"""How Services are shown: sources apart where they differ, many endpoints by node, graphs."""

from __future__ import annotations

import re
from ipaddress import ip_network

import pytest

from analyzer.failure.models import Dead
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import Source
from analyzer.model.cluster import Cluster
from analyzer.parsers.iptables_save import parse
from analyzer.reports import services_text, tree_dot, tree_text
from analyzer.reports.answers import ServicesAnswer, TreeAnswer
from analyzer.reports.distributions import groups
from analyzer.reports.unstyled import render_unstyled
from tests.support.dumps import cluster_ip, dump, endpoint

DEAD = Dead(endpoints=frozenset())


def local_policy() -> str:
    """Return a NodePort whose flows from outside stay on the node."""
    return dump(
        cluster_ip(),
        "-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS",
        '-A KUBE-NODEPORTS -p tcp -m comment --comment "ns/a:http" -m tcp --dport 30080 '
        "-j KUBE-EXT-A",
        "-A KUBE-EXT-A -s 10.0.0.0/8 -j KUBE-SVC-A",
        "-A KUBE-EXT-A -m addrtype --src-type LOCAL -j KUBE-SVC-A",
        "-A KUBE-EXT-A -j KUBE-SVL-A",
        "-A KUBE-SVC-A -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-1",
        "-A KUBE-SVC-A -j KUBE-SEP-2",
        "-A KUBE-SVL-A -j KUBE-SEP-1",
        endpoint("KUBE-SEP-1", "10.0.0.1:80"),
        endpoint("KUBE-SEP-2", "10.0.1.1:80"),
    )


def many(number: int) -> str:
    """Return a Service of so many endpoints, in networks of 10 each."""
    rules = [cluster_ip()]
    for at in range(number):
        left = number - at
        draw = f"-m statistic --mode random --probability {1 / left:.11f} " if left > 1 else ""
        rules.append(f"-A KUBE-SVC-A {draw}-j KUBE-SEP-{at}")
        rules.append(endpoint(f"KUBE-SEP-{at}", f"10.0.{at // 10}.{at % 10 + 1}:80"))
    return dump(*rules)


def shown(text: str, cluster: Cluster | None = None, *, every: bool = False) -> str:
    cluster = cluster or Cluster()
    ruleset = parse(text, "f")
    view = Recogniser(ruleset, cluster).view()
    answer = ServicesAnswer(
        ruleset=ruleset,
        cluster=cluster,
        view=view,
        services=view.services,
        diagnostics=view.diagnostics,
        every=every,
    )
    return render_unstyled(services_text.render(answer))


def tree_of(text: str, cluster: Cluster | None = None, *, every: bool = False) -> TreeAnswer:
    cluster = cluster or Cluster()
    recogniser = Recogniser(parse(text, "f"), cluster)
    view = recogniser.view()
    trees = [
        (service, route, recogniser.tree(service, route))
        for service in view.services
        for route in service.routes
        if route.source is Source.POD
    ]
    return TreeAnswer(
        cluster=cluster, view=view, dead=DEAD, trees=tuple(trees), diagnostics=(), every=every
    )


def by_network(number: int) -> Cluster:
    return Cluster().with_networks(
        [(ip_network(f"10.0.{at}.0/24"), f"node-{at:02}") for at in range(number)]
    )


def test_frontends_that_differ_by_source_stand_apart() -> None:
    recogniser = Recogniser(parse(local_policy(), "f"), by_network(2), node="node-00")
    (service,) = recogniser.view().services
    told = [
        (
            [str(f) for f in group.frontends],
            [
                (", ".join(d.sources), [str(s.endpoint) for s in d.route.shares])
                for d in group.distributions
            ],
        )
        for group in groups(service)
    ]
    both = ["10.0.0.1:80", "10.0.1.1:80"]
    assert told == [
        (["10.96.0.1:80"], [("anywhere", both)]),
        (["*:30080"], [("pods, node", both), ("external", both[:1])]),
    ]


def test_a_column_says_where_flows_come_from_only_where_that_matters() -> None:
    assert "FROM" in shown(local_policy())
    assert "FROM" not in shown(many(2))
    assert "wherever they come from" in shown(many(2))


def test_many_endpoints_are_shown_by_node_with_their_sum() -> None:
    text = shown(many(40), by_network(4))
    rows = re.findall(r"(\d+) endpoints\s+(node-\d+)\s+(\S+)\s+(\S+)%", text)
    assert rows == [("10", f"node-{at:02}", "~1/4", "25.0") for at in range(4)]
    assert "10.0.0.1" not in text
    assert shown(many(40), by_network(4), every=True).count(" 10.0.") == 40


def test_many_nodes_end_in_a_row_for_the_rest() -> None:
    text = shown(many(200), by_network(20))
    assert len(re.findall(r"10 endpoints +node-", text)) == 11
    assert re.search(r"90 endpoints +9 more nodes +\S+ +45.0%", text)


def test_many_endpoints_of_nobody_knows_where_end_in_a_row_for_the_rest() -> None:
    text = shown(many(100))
    assert len(re.findall(r"10\.0\.\d+\.\d+:80", text)) == 11
    assert re.search(r"89 more +\? +\S+ +89.0%", text)
    assert "--node-of" in text


def test_a_long_draw_of_a_tree_is_shown_in_part() -> None:
    text = render_unstyled(tree_text.render(tree_of(many(100), by_network(10))))
    assert text.count("=> 10.0.") == 8
    assert "92 more branches, together ~23/25" in text
    assert "10 endpoints on node-01: 10.0%" in text
    assert "2 endpoints on node-00" in text or "12 endpoints on 2 more nodes: 12.0%" in text
    whole = render_unstyled(tree_text.render(tree_of(many(100), every=True)))
    assert whole.count("=> 10.0.") == 100


# --- graphs --------------------------------------------------------------------

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_WORD = r"[a-z0-9_]+"
_ATTRIBUTES = rf" \[\w+=(?:{_STRING}|\w+)(?:, \w+=(?:{_STRING}|\w+))*\]"
_LINE = re.compile(
    rf"digraph kubeodds \{{|\}}|  rankdir=LR;|  (?:node|edge){_ATTRIBUTES};"
    rf"|  {_WORD}{_ATTRIBUTES};|  {_WORD} -> {_WORD}(?:{_ATTRIBUTES})?;"
)


@pytest.mark.parametrize(
    "comment", ["plain", '\\" ]; x [label=\\"', "\\\\", "a\x1b[31mb", "\u202eb", "<b>", "\\\\N"]
)
def test_a_graph_is_a_graph_whatever_a_comment_says(comment: str) -> None:
    text = local_policy().replace("ns/a:http cluster IP", f"{comment} cluster IP")
    graph = tree_dot.render(tree_of(text))
    for line in graph.splitlines():
        assert _LINE.fullmatch(line), line
    assert graph.isprintable() or set(graph) - {"\n"} == {c for c in graph if c.isprintable()}


def test_a_graph_has_a_node_for_each_end_and_the_chance_on_its_edge() -> None:
    answer = tree_of(many(4))
    graph = tree_dot.render(answer)
    assert graph.count('fillcolor="#d8f0d8"') == 4
    chances = re.findall(r'-> \w+ \[label="([^"]*)\\l"\]', graph)
    assert [c.split()[-1] for c in chances] == ["25.0%"] * 4
    named = set(re.findall(r"^  (\w+) \[", graph, re.MULTILINE)) - {"node", "edge"}
    assert {
        w for pair in re.findall(r"^  (\w+) -> (\w+)", graph, re.MULTILINE) for w in pair
    } == named


def test_a_dead_endpoint_is_told_from_the_others() -> None:
    answer = tree_of(many(2))
    ends = frozenset(s.endpoint for _, r, _ in answer.trees for s in r.shares[:1])
    died = TreeAnswer(
        cluster=answer.cluster,
        view=answer.view,
        dead=Dead(endpoints=ends),
        trees=answer.trees,
        diagnostics=(),
    )
    graph = tree_dot.render(died)
    assert re.findall(r"(10\.0\.0\.\d:80) DEAD", graph) == ["10.0.0.1:80"]
    assert graph.count('fillcolor="#f4c7c3"') == 1
