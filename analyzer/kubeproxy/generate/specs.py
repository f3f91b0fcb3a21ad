"""ServicePorts and their endpoints, as the API objects specify them."""

from __future__ import annotations

from analyzer.kubeproxy.generate.config import IPV4
from analyzer.model.addresses import Address, Network, address_to_text
from analyzer.model.value import value


@value(kw_only=True)
class EndpointSpec:
    """One endpoint of a ServicePort.

    Attributes:
        written: the address as the EndpointSlice spells it, if that is not the shortest spelling;
            up to 1.30 chains are named after it.
        node: where it runs, if known.
        zones: of ``hints.forZones``.
        nodes: of ``hints.forNodes``.
    """

    address: Address
    port: int
    written: str | None = None
    node: str | None = None
    ready: bool = True
    serving: bool = True
    terminating: bool = False
    zones: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @property
    def destination(self) -> str:
        """Address and port as ``--to-destination`` prints them."""
        return self._with_port(address_to_text(self.address))

    @property
    def as_written(self) -> str:
        """Address and port as the EndpointSlice spells them."""
        return self._with_port(self.written or address_to_text(self.address))

    @property
    def may_finish(self) -> bool:
        """Whether it still serves while it terminates."""
        return self.serving and self.terminating

    def _with_port(self, host: str) -> str:
        return f"{host}:{self.port}" if self.address.version == IPV4 else f"[{host}]:{self.port}"


@value(kw_only=True)
class ServicePortSpec:
    """One port of one Service, in one family of addresses.

    Attributes:
        name: ``namespace/name:port``, or ``namespace/name`` if the port has no name.
        protocol: tcp, udp or sctp.
        node_port: 0 without.
        external_local: ``externalTrafficPolicy: Local``.
        internal_local: ``internalTrafficPolicy: Local``; 1.20 ignores it.
        affinity: seconds of ``sessionAffinity: ClientIP``, None without.
        health_check_node_port: 0 without.
        topology_mode: of the annotation ``service.kubernetes.io/topology-mode`` or its older
            name; 1.25 requires Auto, 1.30 any value, 1.36 none.
    """

    name: str
    protocol: str
    cluster_ip: Address
    port: int
    endpoints: tuple[EndpointSpec, ...] = ()
    node_port: int = 0
    external_ips: tuple[Address, ...] = ()
    load_balancer_ips: tuple[Address, ...] = ()
    load_balancer_source_ranges: tuple[Network, ...] = ()
    external_local: bool = False
    internal_local: bool = False
    affinity: int | None = None
    health_check_node_port: int = 0
    topology_mode: str | None = None

    @property
    def is_external(self) -> bool:
        """Whether it has frontends other than the ClusterIP."""
        return bool(self.node_port or self.external_ips or self.load_balancer_ips)

    @property
    def uses_cluster(self) -> bool:
        """Whether endpoints of other nodes are used.

        Even under ``externalTrafficPolicy: Local`` they are, for flows of pods and the node.
        """
        return not self.internal_local or self.is_external

    @property
    def has_firewall(self) -> bool:
        """Whether load balancer addresses accept flows from some networks only."""
        return bool(self.load_balancer_ips and self.load_balancer_source_ranges)

    @property
    def uses_local(self) -> bool:
        """Whether the endpoints of this node are used by themselves."""
        return self.internal_local or (self.external_local and self.is_external)
