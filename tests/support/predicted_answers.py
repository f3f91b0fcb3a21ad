"""Answers about every node, of two dumps that stand for what was predicted of two nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv4Network

from analyzer.advice.advise import Advice, EvaluatedMeasure, Failures, ServiceCosts
from analyzer.advice.behind import Behind
from analyzer.advice.measure import Measure, Refused, Subject
from analyzer.advice.scores import score
from analyzer.failure.loss_at_every_node import losses_at_every_node
from analyzer.failure.models import dead
from analyzer.failure.whatif import WhatIfOptions, what_if
from analyzer.kubeproxy.absent import Absent
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.predict.cluster import Prediction
from analyzer.kubeproxy.predict.every_node import At, EveryNode
from analyzer.kubeproxy.predict.sampled import Sampled
from analyzer.kubeproxy.predict.settings import ClusterSettings
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster, Placement
from analyzer.model.value import replace
from analyzer.parsers.iptables_save import parse
from analyzer.reports.advise_answer import AdviseAnswer
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.cluster_answer import LossClusterAnswer

#: What is said of the predictions.
PREDICTION = Prediction(
    settings=ClusterSettings(cluster_cidrs=(IPv4Network("10.244.0.0/16"),)),
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


def advise_answer(text: str) -> AdviseAnswer:
    """Return what measures would buy the first Service: one is better, one worse, one refused."""
    view, services = _views(text)
    placed = Cluster(placements={IPv4Address("10.0.0.1"): Placement("n1", None)})
    known, less = (score(services[:1], placed, failures) for failures in ([("n1",)], [("n2",)]))
    assert known is not None
    assert less is not None
    now = ServiceCosts(score=known, places=("n1", None), api=0)
    name = services[0].service.name

    def measure(is_: str) -> Measure:
        unsaid = (f"what {is_} rests on",)
        refused = Refused("never")
        return Measure(
            name=is_,
            says=f"it is {is_}",
            subject=Subject.SERVICE,
            change=lambda *_: refused,
            unsaid=unsaid,
        )

    return AdviseAnswer(
        advice=(
            Advice(
                key=(name.namespace or "", name.service or ""),
                ports=(name.text,),
                now=now,
                measures=(
                    EvaluatedMeasure(measure=measure("better"), outcome=replace(now, api=1)),
                    EvaluatedMeasure(measure=measure("worse"), outcome=replace(now, api=-1)),
                    EvaluatedMeasure(
                        measure=measure("refused"), outcome=Refused(f"{name.text} is odd")
                    ),
                ),
                behind=Behind(endpoints=2, listed=1, owners=("ReplicaSet",), held=1),
                predicted=ServiceCosts(score=less, places=()),
            ),
        ),
        failures=Failures(),
        prediction=PREDICTION,
        not_judged=PREDICTION.left_out,
        without=("ns/none",),
        more=1,
        diagnostics=view.diagnostics,
        checked=3,
    )


def whatif_of_every_node(answer: WhatIfAnswer, text: str) -> WhatIfAnswer:
    """Return the same answer, of every node."""
    view, services = _views(text)
    asked: Sequence[EveryNode] = services
    found = what_if([e.service for e in asked], answer.cluster, WhatIfOptions(), None, asked)
    return replace(answer, view=view, found=found, prediction=PREDICTION, every_node=services)
