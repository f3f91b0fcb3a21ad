"""An API server's process that dies alone costs default/kubernetes its share, and nothing else."""

from __future__ import annotations

from fractions import Fraction

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.outage.api_servers import api_processes
from analyzer.parsers.iptables_save import parse
from tests.support.answers import PLACED
from tests.support.dumps import chance, cluster_ip, dump, endpoint

TWO = (
    cluster_ip("default/kubernetes:https"),
    chance("0.50000000000", "KUBE-SEP-1"),
    "-A KUBE-SVC-A -j KUBE-SEP-2",
    endpoint("KUBE-SEP-1", "10.0.0.1:6443"),
    endpoint("KUBE-SEP-2", "10.0.0.9:6443"),
)


def test_each_endpoint_is_a_process_with_its_share() -> None:
    view = Recogniser(parse(dump(*TWO), "dump.txt"), PLACED).view()
    found = api_processes(view.services, PLACED)
    assert [(str(each.endpoint), each.node) for each in found] == [
        ("10.0.0.1:6443", "n1"),
        ("10.0.0.9:6443", None),
    ]
    assert {each.loss.worst.upper.as_fraction() for each in found} == {Fraction(1, 2)}


def test_other_services_have_no_process() -> None:
    rules = [line.replace("default/kubernetes", "other/kubernetes") for line in TWO]
    view = Recogniser(parse(dump(*rules), "dump.txt"), PLACED).view()
    assert view.services
    assert api_processes(view.services, PLACED) == ()
