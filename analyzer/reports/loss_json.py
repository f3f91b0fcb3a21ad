"""``kubeodds/loss/2``: what each ServicePort loses, on each of its routes.

Routes refer to frontends by their place in the list of the same ServicePort. ``worst_loss`` is the
greatest of any route, so that one condition on it finds every ServicePort that loses so much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from analyzer.failure.loss import LossState, ServiceLoss
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import RouteLoss
from analyzer.kubeproxy.view import Endpoint, Frontend
from analyzer.model.probability import Bounds
from analyzer.reports import json_values as values
from analyzer.reports.answers import LossAnswer
from analyzer.reports.freshness import freshness_json
from analyzer.reports.json_endpoints import EndpointTexts
from analyzer.reports.route_networks import NetworkLists, network_fields


def render(answer: LossAnswer) -> Iterator[str]:
    """Yield what each ServicePort loses, one by one."""
    counts = Counter(loss.state for loss in answer.losses)
    lists = NetworkLists()
    return values.document(
        "loss",
        {
            "node": values.encode(answer.view.node),
            "freshness": values.encode(freshness_json(answer.freshness)),
            "dead": values.encode(dead(answer.dead)),
            "services": services(answer, lists),
            "networks": lists.written,
            "totals": values.encode({state.value: counts[state] for state in LossState}),
            "not_judged": map(values.encode, answer.not_judged),
            "cut": values.encode(answer.is_cut),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
    )


def services(answer: LossAnswer, lists: NetworkLists) -> Iterator[str]:
    """Yield what each ServicePort loses, encoded; routes refer to `lists`."""
    return map(_Writer(answer, lists).service, answer.losses)


def dead(died: Dead) -> dict[str, Any]:
    """Return what is dead, as named by the options, and the endpoints that are."""
    return {
        "nodes": list(died.nodes),
        "zones": list(died.zones),
        "endpoints": sorted({str(e.address) for e in died.endpoints}),
        "uncertain_endpoints": sorted({str(e.address) for e in died.uncertain}),
    }


class _Writer:
    """Writes ServicePorts."""

    def __init__(self, answer: LossAnswer, lists: NetworkLists) -> None:
        self._lists = lists
        self._dead = answer.dead
        self._endpoints = EndpointTexts(answer.cluster)

    def service(self, loss: ServiceLoss) -> str:
        """Return what one ServicePort loses, encoded."""
        frontends = [*loss.service.frontends]
        cluster, seconds = loss.cluster, loss.service.affinity
        # Routes from most sources lose the same, of which the text may be long.
        texts: dict[tuple[int, ...], str] = {}
        routes = ",".join(_route(each, frontends, texts, self._lists) for each in loss.routes)
        before = {
            **values.name(loss.service),
            "session_affinity": None if seconds is None else {"timeout_seconds": seconds},
            "state": loss.state.value,
            "worst_loss": _worst(loss, frontends),
            "cluster_ip_loss": None if cluster is None else values.bounds(cluster.loss),
            "cluster_ip_no_endpoint": None if cluster is None else values.bounds(cluster.nowhere),
            "frontends": [values.frontend(each) for each in frontends],
        }
        endpoints = loss.service.endpoints
        written = ",".join(
            f'{text[:-1]},"dead":{self._is_dead(endpoint)}}}'
            for text, endpoint in zip(self._endpoints.of(endpoints), endpoints, strict=True)
        )
        return f'{values.encode(before)[:-1]},"endpoints":[{written}],"routes":[{routes}]}}'

    def _is_dead(self, endpoint: Endpoint) -> str:
        if endpoint in self._dead.endpoints:
            return "true"
        return "null" if endpoint in self._dead.uncertain else "false"


def _worst(loss: ServiceLoss, frontends: list[Frontend]) -> dict[str, Any] | None:
    """Return the greatest loss and its route; None if there is no route."""
    worst = loss.worst_route
    if worst is None:
        return None
    return {
        **values.bounds(worst.loss),
        "frontend": frontends.index(worst.route.frontend),
        "source": worst.route.source.value,
        **network_fields(worst.route),
    }


def _route(
    each: RouteLoss,
    frontends: list[Frontend],
    texts: dict[tuple[int, ...], str],
    lists: NetworkLists,
) -> str:
    route = each.route
    key = id(each.loss), id(each.nowhere), id(each.otherwise)
    if key not in texts:
        text = f'"loss":{_bounds(each.loss)},"no_endpoint":{_bounds(each.nowhere)}'
        if each.otherwise:
            lost = values.encode(values.endings(each.otherwise))
            text += f',"on_dead":{_bounds(each.on_dead)},"otherwise":{lost}'
        texts[key] = f"{text}}}"
    return (
        f'{{"frontend":{frontends.index(route.frontend)},"source":{values.SOURCES[route.source]},'
        f"{lists.fields(route)},{texts[key]}"
    )


def _bounds(value: Bounds) -> str:
    return values.encode(values.bounds(value))
