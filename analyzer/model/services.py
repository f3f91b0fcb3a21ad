"""Services of the Kubernetes API, as far as kube-proxy makes rules from them."""

from __future__ import annotations

from analyzer.model.addresses import Address
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: Name, protocol and IP version.
    ServicePortKey: TypeAlias = tuple[str, str, int | None]


@value(kw_only=True)
class ApiEndpoint:
    """One endpoint of a ServicePort.

    Attributes:
        spellings: of its address, as in the objects, which is what kube-proxy hashes.
        is_ready: some EndpointSlice or Endpoints object says so.
        is_certain: all of them do, so that every version of kube-proxy uses it.
        may_serve: it is terminating and still serves, a fallback since 1.26.
        zones: of the topology hints, if it has any; `nodes`: those for nodes.
    """

    address: Address
    port: int
    spellings: tuple[str, ...]
    node: str | None = None
    is_ready: bool = False
    is_certain: bool = False
    may_serve: bool = False
    zones: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()


@value(kw_only=True)
class ApiServicePort:
    """One port of one Service that has a ClusterIP.

    Attributes:
        name: ``namespace/name:port``, without the port's name if it has none.
        protocol: in lower case.
        frontends: kind as in the API, address (None for the node's), port.
        affinity: seconds of ``sessionAffinity: ClientIP``, None without.
        internal_local: ``internalTrafficPolicy: Local``.
        external_local: ``externalTrafficPolicy: Local``; None if it has no such policy.
    """

    name: str
    protocol: str
    frontends: tuple[tuple[str, Address | None, int], ...]
    endpoints: tuple[ApiEndpoint, ...]
    affinity: int | None = None
    internal_local: bool = False
    external_local: bool | None = None

    @property
    def key(self) -> ServicePortKey:
        """Name, protocol and IP version; None as version if it has no address."""
        versions = (address.version for _, address, _ in self.frontends if address is not None)
        return self.name, self.protocol, next(versions, None)
