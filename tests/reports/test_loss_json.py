from __future__ import annotations

import json
from typing import Any

import pytest

from analyzer.failure.loss import LossState, losses
from analyzer.failure.models import Dead
from analyzer.kubeproxy.absent import Absent
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.model.cluster import Cluster
from analyzer.model.value import replace
from analyzer.parsers.iptables_save import parse
from analyzer.reports import loss_json
from analyzer.reports.answers import LossAnswer
from tests.support.answers import BEFORE, RICH, Answers
from tests.support.dumps import at
from tests.support.json_reader import fraction, read


def ends(bounds: Any) -> tuple[float, float]:
    return bounds["lower"]["value"], bounds["upper"]["value"]


@pytest.mark.parametrize("text", [RICH, BEFORE], ids=["unknown", "known"])
def test_the_worst_loss_is_the_greatest_of_the_routes_and_says_of_which(text: str) -> None:
    for service in json.loads(Answers(text).json("loss"))["services"]:
        worst = service["worst_loss"]
        if worst is None:
            assert service["routes"] == []
            continue
        upper = max(fraction(route["loss"]["upper"]) for route in service["routes"])
        assert fraction(worst["upper"]) == upper
        (route,) = [
            each
            for each in service["routes"]
            if all(each[key] == worst[key] for key in ("frontend", "source", "network"))
        ]
        assert route["loss"] == {"lower": worst["lower"], "upper": worst["upper"]}


def test_a_loss_that_the_cluster_ip_does_not_have_is_found_by_one_condition() -> None:
    (found,) = [
        service
        for service in read(Answers(RICH).json("loss"))["services"]
        if service["worst_loss"] and service["worst_loss"]["upper"]["value"] > 0.9
    ]
    assert ends(found["cluster_ip_loss"]) == (0, 0.5)
    assert found["worst_loss"]["frontend"]["kind"] == "NodePort"


def test_every_route_is_told_and_what_reaches_no_endpoint() -> None:
    service = read(Answers(BEFORE).json("loss"))["services"][0]
    ways = {(each["frontend"]["kind"], each["source"]) for each in service["routes"]}
    sources = {"pod", "pod-elsewhere", "node", "external"}
    assert ways >= {(kind, source) for kind in ("ClusterIP", "NodePort") for source in sources}
    assert {ends(each["no_endpoint"])[0] for each in service["routes"]} == {0}


def test_totals_have_a_key_for_each_state_under_its_one_name() -> None:
    document = json.loads(Answers(RICH).json("loss"))
    states = [each["state"] for each in document["services"]]
    assert document["totals"] == {state.value: states.count(state.value) for state in LossState}
    assert document["totals"]["no-endpoints"] == 1


def test_an_endpoint_is_dead_alive_or_it_is_not_known() -> None:
    view = Recogniser(parse(BEFORE, "dump.txt"), Cluster()).view()
    first, second = at("10.0.0.1"), at("10.0.0.2")
    died = Dead(endpoints=frozenset([first]), nodes=("n1",))
    answer = LossAnswer(
        cluster=Cluster(),
        view=view,
        dead=died,
        losses=losses(view.services, died),
        absent=Absent(),
        diagnostics=(),
    )
    assert dead_in(answer) == {"10.0.0.1": True, "10.0.0.2": False}
    uncertain = replace(died, uncertain=frozenset([second]))
    assert dead_in(replace(answer, dead=uncertain)) == {"10.0.0.1": True, "10.0.0.2": None}


def dead_in(answer: LossAnswer) -> dict[str, bool | None]:
    (service, *_) = json.loads("".join(loss_json.render(answer)))["services"]
    return {each["address"]: each["dead"] for each in service["endpoints"]}
