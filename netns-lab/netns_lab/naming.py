"""Names of Services for programs in the lab: a resolv.conf, and the DNS servers that answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from analyzer.clients.world import cluster_dns
from analyzer.kubeproxy.view import FrontendKind, ServicePort, View
from netns_lab.dns import telling
from netns_lab.errors import LabError
from netns_lab.inside import fresh_folder, show
from netns_lab.servers import Responder, echo

_DOMAIN: Final = "cluster.local"
_DNS_PORT: Final = 53
#: The file that every program reads.
RESOLV_CONF: Final = Path("/etc/resolv.conf")
#: A folder that every system has; the lab's programs find our file there instead.
_HOLDS: Final = Path("/mnt")


def name_of(service: ServicePort) -> str:
    """Return the name of a ServicePort's Service in the cluster's DNS."""
    return f"{service.name.service}.{service.name.namespace}.svc.{_DOMAIN}"


def resolv_conf(view: View) -> str:
    """Return what the kubelet writes for `dnsPolicy: ClusterFirst`; empty without cluster DNS.

    Source: kubernetes, pkg/kubelet/network/dns/dns.go, generateSearchesForDNSClusterFirst().
    """
    found = cluster_dns(view.services)
    if found is None:
        return ""
    search = f"default.svc.{_DOMAIN} svc.{_DOMAIN} {_DOMAIN}"
    return f"nameserver {found[1]}\nsearch {search}\noptions ndots:5\n"


def use_resolv_conf(text: str) -> None:
    """Replace resolv.conf for programs started by this process from now on, and for no others.

    The mount namespace must be our own (`leave_host`), so that the mount vanishes with us.

    Raises:
        LabError: the system's resolv.conf is not a file.
    """
    at = RESOLV_CONF.resolve()
    if not at.is_file():
        raise LabError(f"{at}: not a file, so it cannot be replaced for programs")
    fresh_folder(_HOLDS)
    held = _HOLDS / RESOLV_CONF.name
    held.write_text(text, encoding="utf-8")
    show(held, at)


def responder(view: View) -> Callable[[int], Responder]:
    """Return the responder of a UDP port: a DNS server at DNS ports, an echo at others."""
    addresses: dict[str, set[bytes]] = {}
    for service in view.services:
        for frontend in service.frontends if service.name.service else ():
            if frontend.kind is FrontendKind.CLUSTER_IP and frontend.address is not None:
                addresses.setdefault(name_of(service), set()).add(frontend.address.packed)
    name_server = telling(addresses)
    ports = {e.port for s in view.services if _is_dns(s) for e in s.endpoints}
    return lambda port: name_server if port in ports or port == _DNS_PORT else echo


def _is_dns(service: ServicePort) -> bool:
    return service.protocol == "udp" and any(f.port == _DNS_PORT for f in service.frontends)
