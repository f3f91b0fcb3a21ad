"""What the death of one API server process costs while its node is alive.

Its address stays an endpoint of that Service until its lease has expired, and no other Service
has it as an endpoint.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.failure.loss import ServiceLoss, service_loss
from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint, ServicePort
from analyzer.model.cluster import Cluster
from analyzer.model.value import value


@value
class ApiProcess:
    """An API server whose process is dead.

    Attributes:
        node: where it runs; None: not known, so that it may be no node of the cluster.
    """

    endpoint: Endpoint
    node: str | None
    loss: ServiceLoss


def is_api(service: ServicePort) -> bool:
    """Return whether a Service is that of the API itself."""
    return service.name.namespace == "default" and service.name.service == "kubernetes"


def api_processes(services: Iterable[ServicePort], cluster: Cluster) -> tuple[ApiProcess, ...]:
    """Return what default/kubernetes loses with each of its endpoints alone dead."""
    return tuple(
        ApiProcess(
            endpoint,
            cluster.placement(endpoint.address).node,
            service_loss(service, Dead(endpoints=frozenset([endpoint]))),
        )
        for service in services
        if is_api(service)
        for endpoint in service.endpoints
    )
