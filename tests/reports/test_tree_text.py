from __future__ import annotations

from dataclasses import replace as with_fields
from ipaddress import ip_network

from analyzer.failure.models import dead
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import Source
from analyzer.model.cluster import Cluster
from analyzer.model.value import replace
from analyzer.parsers.iptables_save import parse
from analyzer.reports.answers import TreeAnswer
from analyzer.reports.plain import render_plain
from analyzer.reports.tree_text import render
from tests.support.answers import Answers
from tests.support.dumps import chance, cluster_ip, dump, endpoint, two_endpoints


def answer(text: str, *died: str) -> TreeAnswer:
    """Return the tree from a pod to the ClusterIP."""
    cluster = Cluster().with_networks([(ip_network("10.0.0.1/32"), "worker1")])
    recogniser = Recogniser(parse(text, "dump.txt"), cluster)
    view = recogniser.view()
    (service,) = view.services
    (route,) = [r for r in service.routes if r.source is Source.POD]
    return TreeAnswer(
        cluster=cluster,
        view=view,
        dead=dead(view, cluster, endpoints=died),
        trees=((service, route, recogniser.tree(service, route)),),
        diagnostics=(),
    )


def shown(text: str, *died: str) -> list[str]:
    return render_plain(render(answer(text, *died))).splitlines()


def many(count: int) -> str:
    """Return a Service of so many endpoints, each drawn as often."""
    each = range(count - 1)
    draws = [chance(f"{1 / (count - n):.11f}", f"KUBE-SEP-{n}") for n in each]
    return dump(
        cluster_ip(),
        *draws,
        f"-A KUBE-SVC-A -j KUBE-SEP-{count - 1}",
        *[endpoint(f"KUBE-SEP-{n}", f"10.0.0.{n + 1}:80") for n in range(count)],
    )


def test_a_tree_is_headed_by_its_service_source_and_frontend() -> None:
    head = shown(dump(*two_endpoints()))[0]
    assert head.startswith("ns/a:http tcp, ")
    assert "a pod" in head
    assert "ClusterIP 10.96.0.1:80" in head


def test_each_endpoint_stands_at_the_end_of_its_branch_with_its_node() -> None:
    ends = [line.strip("│ ") for line in shown(dump(*two_endpoints())) if "=>" in line]
    assert ends == ["=> 10.0.0.1:80 on worker1", "=> 10.0.0.2:80"]


def test_a_dead_endpoint_says_so() -> None:
    ends = [line for line in shown(dump(*two_endpoints()), "10.0.0.1") if "=>" in line]
    assert [line.endswith("DEAD") for line in ends] == [True, False]


def test_of_very_many_branches_the_others_are_told_by_node() -> None:
    told = shown(many(17), "10.0.0.17")
    assert len([line for line in told if "=>" in line]) == 8
    assert any("9 more branches" in line for line in told)
    assert any("1 endpoint of them DEAD" in line for line in told)
    every = render_plain(render(replace(answer(many(17)), every=True)))
    assert every.count("=>") == 17


def test_trees_of_several_routes_stand_one_below_the_other() -> None:
    text = with_fields(Answers(), text=dump(*two_endpoints())).plain("tree")
    heads = [line for line in text.splitlines() if line.startswith("ns/a:http")]
    assert len(heads) == text.count("\n\nns/a:http") + 1 > 1
