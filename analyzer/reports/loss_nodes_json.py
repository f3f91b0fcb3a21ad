"""``kubeodds/loss-nodes/1``: what each ServicePort loses on each of several nodes.

``nodes`` holds for each node what ``kubeodds/loss/2`` says of one; ``services`` the worst of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from analyzer.failure.loss import LossState
from analyzer.failure.loss_at_nodes import WorstLoss
from analyzer.reports import json_values as values
from analyzer.reports import loss_json
from analyzer.reports.answers import LossNode, LossNodesAnswer
from analyzer.reports.route_networks import NetworkLists

_VERSION = 1


def render(answer: LossNodesAnswer) -> Iterator[str]:
    """Yield the most that each ServicePort loses, then node by node."""
    counts = Counter(each.loss.state for each in answer.worst)
    lists = NetworkLists()
    return values.document(
        "loss-nodes",
        {
            "dead": values.encode(loss_json.dead(answer.dead)),
            "services": map(_service, answer.worst),
            "totals": values.encode({state.value: counts[state] for state in LossState}),
            "nodes": (_node(node, lists) for node in answer.nodes),
            "networks": lists.written,
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _service(worst: WorstLoss) -> str:
    return values.encode(
        {
            **values.name(worst.loss.service),
            "state": worst.loss.state.value,
            "worst_loss": values.bounds(worst.loss.worst),
            "nodes": list(worst.nodes),
            "missing": list(worst.missing),
        }
    )


def _node(node: LossNode, lists: NetworkLists) -> str:
    """Return what is lost at one node, encoded; nothing of the dead, which send no flows."""
    answer = None if node.is_dead else node.answer
    before = {
        "name": node.name,
        "node": node.node,
        "files": [*map(str, node.files)],
        "judged": answer is not None,
        "reason": "it is dead" if node.is_dead else node.why,
        "not_judged": list(answer.not_judged) if answer is not None else [],
        "cut": bool(answer is not None and answer.is_cut),
    }
    services = loss_json.services(answer, lists) if answer is not None else ()
    listed = ",\n".join(services)
    return f'{values.encode(before)[:-1]},"services":[{listed}]}}'
