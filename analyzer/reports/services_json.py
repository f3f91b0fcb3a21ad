"""``kubeodds/services/2``: each endpoint of a ServicePort once, each distribution once.

Most ServicePorts of a cluster have the same routes, and few different distributions. So both are
written once for the whole document, after the ServicePorts, which refer to them by index; a route
refers to a frontend by its index in the list of its ServicePort.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from analyzer.kubeproxy.view import Endpoint, Frontend, Route, ServicePort
from analyzer.model.probability import Bounds
from analyzer.model.services import ApiEndpoint, ApiServicePort
from analyzer.reports import json_values as values
from analyzer.reports.answers import ServicesAnswer
from analyzer.reports.freshness import freshness_json
from analyzer.reports.json_distributions import Distributions
from analyzer.reports.json_endpoints import EndpointTexts
from analyzer.reports.route_networks import NetworkLists


def render(answer: ServicesAnswer) -> Iterator[str]:
    """Yield the Services with their exact shares, one by one."""
    source = {
        "format": answer.ruleset.input_format,
        "mode": answer.view.mode.value,
        "rules": answer.rules,
        "node": answer.view.node,
    }
    writer = _Writer(answer)
    return values.document(
        "services",
        {
            "source": values.encode(source),
            "freshness": values.encode(freshness_json(answer.freshness)),
            "services": map(writer.service, answer.services),
            "routes": writer.routes(),
            "networks": writer.networks,
            "distributions": writer.distributions(),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
    )


class _Writer:
    """Writes ServicePorts."""

    def __init__(self, answer: ServicesAnswer) -> None:
        self._answer = answer
        self._places = answer.cluster.places
        self._endpoints = EndpointTexts(answer.cluster)
        self._distributions = Distributions()
        self._routes: dict[str, int] = {}
        self._lists = NetworkLists()

    def service(self, service: ServicePort) -> str:
        """Return one ServicePort, encoded."""
        routes = _Routes(service, with_places=self._places)
        affinity = None if service.affinity is None else {"timeout_seconds": service.affinity}
        head = {
            **values.name(service),
            "session_affinity": affinity,
            "frontends": [_frontend(service, f) for f in service.frontends],
        }
        if self._places:
            made = [endpoint for endpoint in routes.endpoints.values() if endpoint is not None]
            endpoints = self._endpoints.columns(made)
        else:
            endpoints = self._endpoints.columns_of_printed([*routes.endpoints])
        written = routes.written(self._distributions, self._lists)
        number = self._routes.setdefault(written, len(self._routes))
        api = ""
        if self._answer.specs:
            spec = self._answer.specs.get((service.name.text, service.protocol, service.version))
            api = f',"api":{values.encode(_api(spec))}'
        return f'{values.encode(head)[:-1]},"endpoints":{endpoints},"routes":{number}{api}}}'

    def routes(self) -> Iterator[str]:
        """Yield the lists of routes that ServicePorts have referred to, encoded."""
        for written in self._routes:
            yield f"[{written}]"

    def networks(self) -> Iterator[str] | None:
        """Return the lists of networks that routes have referred to, encoded, if any."""
        return self._lists.written()

    def distributions(self) -> Iterator[str]:
        """Yield the distributions that routes have referred to, encoded."""
        return self._distributions.written()


class _Routes:
    """The routes of one ServicePort, with the places of their endpoints among all of its own.

    Attributes:
        endpoints: all of them, each once, as printed; as values where these are needed.
    """

    def __init__(self, service: ServicePort, *, with_places: bool) -> None:
        self.endpoints: dict[str, Endpoint | None] = {}
        self._frontends = [*service.frontends]
        #: By the identity of a list of endpoints, which is kept: the list, their places.
        self._places: dict[int, tuple[Sequence[str], list[int] | None]] = {}
        self._routes: list[tuple[Route, Sequence[str], Sequence[Bounds]]] = []
        for route in service.routes:
            printed, shares = route.columns()
            if id(printed) not in self._places:
                made = route.draws()[0] if with_places else [None] * len(printed)
                for text, endpoint in zip(printed, made, strict=True):
                    self.endpoints.setdefault(text, endpoint)
                self._places[id(printed)] = printed, None
            self._routes.append((route, printed, shares))

    def written(self, distributions: Distributions, lists: NetworkLists) -> str:
        """Return the routes, encoded, with the numbers of their distributions and networks."""
        numbers = {text: at for at, text in enumerate(self.endpoints)}
        size = len(numbers)
        places: dict[int, tuple[int, ...] | None] = {}
        for at, (printed, _) in self._places.items():
            found = tuple([numbers[text] for text in printed])
            places[at] = None if found == tuple(range(size)) else found
        written = []
        for route, printed, shares in self._routes:
            where = places[id(printed)]
            number = distributions.number(shares, where, size, route.unresolved)
            masquerade = _masquerade(route.masquerades(), where, size)
            written.append(
                f'{{"frontend":{_index(self._frontends, route.frontend)},'
                f'"source":{values.SOURCES[route.source]},{lists.fields(route)},'
                f'"distribution":{number},"masquerade":{masquerade}{_lost(route, where, size)}}}'
            )
        return ",".join(written)


def _index(frontends: list[Frontend], frontend: Frontend) -> int:
    for at, each in enumerate(frontends):
        if each is frontend:  # as most are: to compare them takes longer
            return at
    return frontends.index(frontend)


def _masquerade(answers: Sequence[bool | None], places: Sequence[int] | None, size: int) -> str:
    """Return one answer where all agree, else one for each endpoint of the ServicePort."""
    first = answers[0] if answers else None
    if all(each is first for each in answers):
        return _JSON[first]
    found: list[bool | None] = [None] * size
    for at, answer in zip(range(size) if places is None else places, answers, strict=True):
        found[at] = answer
    return values.encode(found)


def _lost(route: Route, places: Sequence[int] | None, size: int) -> str:
    """Return how flows are lost that are sent to endpoints, and to none, if any is."""
    text, lost = "", route.losses()
    if lost:
        found: list[list[dict[str, Any]]] = [[] for _ in range(size)]
        for at, endings in zip(range(size) if places is None else places, lost, strict=True):
            found[at] = values.endings(endings)
        text += f',"lost":{values.encode(found)}'
    if route.astray:
        text += f',"astray":{values.encode(values.endings(route.astray))}'
    return text


_JSON = {None: "null", True: "true", False: "false"}


def _api(spec: ApiServicePort | None) -> dict[str, Any] | None:
    """Return what the API says of a ServicePort: its policies, and all its endpoints."""
    if spec is None:
        return None
    external = spec.external_local
    return {
        "internal_traffic_policy": _policy(spec.internal_local),
        "external_traffic_policy": None if external is None else _policy(external),
        "endpoints": {
            "address": [str(each.address) for each in spec.endpoints],
            "port": values.column([each.port for each in spec.endpoints]),
            "node": values.column([each.node for each in spec.endpoints]),
            "ready": values.column([each.is_ready for each in spec.endpoints]),
            "serving_terminating": values.column([each.may_serve for each in spec.endpoints]),
            "hints": values.column([_hints(each) for each in spec.endpoints]),
        },
    }


def _hints(endpoint: ApiEndpoint) -> dict[str, list[str]]:
    return {"zones": sorted(endpoint.zones), "nodes": sorted(endpoint.nodes)}


def _policy(local: bool) -> str:
    return "Local" if local else "Cluster"


def _frontend(service: ServicePort, frontend: Frontend) -> dict[str, Any]:
    return {
        **values.frontend(frontend),
        "state": service.state(frontend).value,
        "refusal": dict(service.refusals).get(frontend),
    }
