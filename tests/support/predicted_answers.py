"""Answers about every node, of two dumps that stand for what was predicted of two nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ipaddress import IPv4Network

from analyzer.failure.loss_at_every_node import losses_at_every_node
from analyzer.failure.models import dead
from analyzer.failure.whatif import Asked, what_if
from analyzer.kubeproxy.absent import Absent
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.predict.cluster import Prediction
from analyzer.kubeproxy.predict.every_node import At, EveryNode
from analyzer.kubeproxy.predict.sampled import Sampled
from analyzer.kubeproxy.predict.settings import Settings
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.model.value import replace
from analyzer.parsers.iptables_save import parse
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.cluster_answer import LossClusterAnswer

#: What is said of the predictions.
PREDICTION = Prediction(
    settings=Settings(cluster_cidrs=(IPv4Network("10.244.0.0/16"),)),
    nodes=("n1", "n2", "n3"),
    assumed=("iptables mode",),
    walked=(Sampled(nodes=("n1", "n3"), services=4, seed=7, differing=("ns/odd",)),),
    malformed=("ns/b: port 'x' is not a port",),
    dumps=("n2",),
)


def _views(text: str) -> tuple[View, tuple[EveryNode, ...]]:
    """Return the ServicePorts at three nodes, of which the second has drawn otherwise."""
    view = Recogniser(parse(text, "dump.txt"), Cluster()).view()
    other = Recogniser(parse(text.replace("0.50000000000", "0.25000000000"), "n2"), Cluster())
    others = {(each.name.text, each.protocol): each for each in other.view().services}
    found = tuple(
        EveryNode(
            at=(
                At(each, frozenset({"n1", "n3"})),
                At(others[each.name.text, each.protocol], frozenset({"n2"})),
            )
        )
        for each in view.services
    )
    return replace(view, left_out=PREDICTION.left_out), found


def loss_cluster_answer(text: str, died: Collection[str]) -> LossClusterAnswer:
    """Return what is lost at two nodes that live; a third is dead."""
    view, services = _views(text)
    dying = dead(view, Cluster(), endpoints=died)
    return LossClusterAnswer(
        cluster=Cluster(),
        view=view,
        dead=dying,
        losses=losses_at_every_node(services, dying, {"n3"}.__contains__),
        every_node=services,
        prediction=PREDICTION,
        absent=Absent(),
        alive=("n1", "n2"),
        gone=("n3",),
        diagnostics=view.diagnostics,
    )


def whatif_of_every_node(answer: WhatIfAnswer, text: str) -> WhatIfAnswer:
    """Return the same answer, of every node."""
    view, services = _views(text)
    asked: Sequence[EveryNode] = services
    found = what_if([e.service for e in asked], answer.cluster, Asked(), None, asked)
    return replace(answer, view=view, found=found, prediction=PREDICTION, every_node=services)
