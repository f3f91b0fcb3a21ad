"""API objects, from the files that the options name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from analyzer.errors import UsageError
from analyzer.inputs.files import files_of_objects
from analyzer.model.cluster import Cluster

TYPE_CHECKING = False
if TYPE_CHECKING:  # only loaded when needed
    from datetime import datetime
    from types import SimpleNamespace
    from typing import Final

    from analyzer.kubeproxy.view import Endpoint, ServicePort
    from analyzer.model.roles import Roles
    from analyzer.model.services import ApiServicePort
    from analyzer.model.workloads import Workloads
    from analyzer.parsers.api_objects import Object

#: Files that a message names.
_MOST_NAMED: Final = 5


class ApiObjects:
    """What is known from the API: the files of ``--objects``, and ``--node-of``.

    Attributes:
        cluster: nodes, and where addresses live.
    """

    def __init__(self, options: SimpleNamespace) -> None:
        self._items: list[Object] = []
        self._services: dict[int, tuple[ApiServicePort, ...]] = {}
        self._by_name: dict[int, dict[tuple[str, str], ApiServicePort]] = {}
        self.cluster = Cluster()
        if options.objects:
            from analyzer.parsers.api_objects import decode
            from analyzer.parsers.kubernetes import cluster_of

            files = list(files_of_objects(options.objects, options.max_input))
            self._items = decode(files)
            self.cluster = cluster_of(self._items, _named(files))
        said = dict(options.node_of)
        for network, node in options.node_of:
            if said[network] != node:
                raise UsageError(f"--node-of {network}: is it {node}'s, or {said[network]}'s?")
        if said:
            self.cluster = self.cluster.with_networks(said.items())

    @property
    def items(self) -> Sequence[Object]:
        """The objects themselves, decoded."""
        return self._items

    @cached_property  # of many Services each looks it up
    def lists_endpoints(self) -> bool:
        """Whether there are any endpoints; ``kubectl cluster-info dump`` omits them."""
        return any(item.get("kind") in {"EndpointSlice", "Endpoints"} for item in self._items)

    def taken(self) -> datetime | None:
        """Return when they were taken, or a time shortly before; None if that is not known."""
        if not self._items:
            return None
        from analyzer.parsers.ages import objects_taken

        return objects_taken(self._items)

    def pods(self) -> Mapping[str, Sequence[str]]:
        """Return the addresses of each pod, by ``ns/name``."""
        from analyzer.parsers.pod_addresses import pod_addresses

        return pod_addresses(self._items)

    def callers(self, namespace: str, selector: str) -> Mapping[str, str | None]:
        """Return the pods that match a selector, by ``ns/name``, each with its node."""
        from analyzer.parsers.callers import callers_of

        return callers_of(self._items, namespace, selector)

    def roles(self) -> Roles:
        """Return which nodes run which component of the control plane."""
        from analyzer.parsers.roles import roles_of

        return roles_of(self._items)

    def workloads(self) -> Workloads:
        """Return the workloads behind endpoints."""
        from analyzer.parsers.workloads import workloads_of

        return workloads_of(self._items)

    def services(self, version: int) -> tuple[ApiServicePort, ...]:
        """Return the ServicePorts of an IP version, 4 or 6."""
        if not self._items:
            return ()
        if version not in self._services:
            from analyzer.parsers.services import parse_services

            self._services[version] = parse_services(self._items, version)
        return self._services[version]

    def ready_endpoints(self, service: ServicePort) -> tuple[Endpoint, ...] | None:
        """Return the endpoints of a ServicePort that are ready; None if no object says so."""
        if not self.lists_endpoints:
            return None
        from analyzer.kubeproxy.view import Endpoint

        version = service.version or 4
        if version not in self._by_name:
            self._by_name[version] = {(s.name, s.protocol): s for s in self.services(version)}
        spec = self._by_name[version].get((service.name.text, service.protocol))
        if spec is None:
            return None
        return tuple(Endpoint(e.address, e.port) for e in spec.endpoints if e.is_ready)


def _named(files: Sequence[tuple[str, bytes]]) -> str:
    """Return the names of files, of many only the first."""
    names = ", ".join(name for name, _ in files[:_MOST_NAMED])
    return f"{names}, ..." if files[_MOST_NAMED:] else names
