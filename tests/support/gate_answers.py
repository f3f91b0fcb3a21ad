"""An answer of ``gate`` in which everything occurs that it may say."""

from __future__ import annotations

import json
from functools import lru_cache

from analyzer.arguments.command_line import parse
from analyzer.gate.nodes import described
from analyzer.questions.gating import given_of
from analyzer.reports.gate_answer import GateAnswer
from analyzer.verbs.gate import answer_of
from tests.support.gated import HOST, service, template, workload

_NODES = ("2xzone=a", "2xzone=b", "1xcontrol-plane+zone=a")


@lru_cache(maxsize=16)
def gate_answer(text: str) -> GateAnswer:
    """Return an answer about Services that fail, one of them beyond help, and pods without a node.

    `text` stands where manifests may hold any.
    """
    odd = text[:60]
    items = [
        workload("web", 2, template("web")),
        service("web"),
        workload("one", None, template("one", nodeSelector={HOST: "a-1"})),
        service("one"),
        workload("many", 6, template("many", port=80)),
        service("many", trafficDistribution="PreferClose"),
        workload("none", 1, template("none", nodeSelector={"disk": odd})),
        service("none"),
        service("elsewhere", externalTrafic=odd),
        service("headless", clusterIP="None"),
        {
            **service("web"),
            "metadata": {
                "name": "auto",
                "annotations": {"service.kubernetes.io/topology-mode": odd},
            },
        },
        {"kind": odd or "ConfigMap", "metadata": {"name": "c"}},
    ]
    nodes = described(_NODES)
    nodes[1]["spec"] = {"taints": [{"key": odd, "effect": "NoSchedule"}]}
    file = ("m.json", json.dumps({"kind": "List", "items": items}).encode())
    words = ["gate", "m.json", "--nodes", ",".join(_NODES), "--max-loss", "50%"]
    options = parse([*words, "--min-survives", "1", "--seed", "1", "--depth", "2", "--all"])
    return answer_of(options, given_of([file], nodes, is_described=True))
