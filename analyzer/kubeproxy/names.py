"""The names that kube-proxy gives to chains, and the comments by which rules name Services.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``servicePortChainName``,
``servicePortEndpointChainName``; versions 1.14 to 1.36.
"""

from __future__ import annotations

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

SERVICES: Final = "KUBE-SERVICES"
NODE_PORTS: Final = "KUBE-NODEPORTS"
EXTERNAL_SERVICES: Final = "KUBE-EXTERNAL-SERVICES"
MARK_MASQUERADE: Final = "KUBE-MARK-MASQ"
MARK_DROP: Final = "KUBE-MARK-DROP"

#: Chains that stand for one ServicePort, by what they do with a flow.
SERVICE_PREFIXES: Final = ("KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-XLB-", "KUBE-FW-")
ENDPOINT_PREFIX: Final = "KUBE-SEP-"
#: Of the sets of nftables mode that keep session affinity.
AFFINITY_PREFIX: Final = "affinity-"
#: Of all lists that do.
AFFINITY_LISTS: Final = (ENDPOINT_PREFIX, AFFINITY_PREFIX)

#: What stands behind the name in the comment of a rule of KUBE-SERVICES, and what it says.
_KINDS: Final = {
    "cluster IP": "ClusterIP",
    "external IP": "ExternalIP",
    "loadbalancer IP": "LoadBalancerIP",
    "has no endpoints": None,
    "has no local endpoints": None,
}


@value
class ServiceName:
    """A ServicePort's name: ``namespace/name:port``, the port's name left out if it has none."""

    namespace: str | None
    service: str | None
    port: str | None
    text: str


def service_name(text: str) -> ServiceName:
    """Return the parts of ``ns/name:port``, ``ns/name`` or, as 1.14 writes it, ``ns/name:``."""
    namespace, slash, rest = text.partition("/")
    if not slash:
        return ServiceName(None, None, None, text)
    service, _, port = rest.partition(":")
    plain = f"{namespace}/{service}" + (f":{port}" if port else "")
    return ServiceName(namespace, service, port or None, plain)


def name_in_chain(chain: str) -> str | None:
    """Return the name that a chain of nftables mode has in its own: ``service-HASH-ns/a/tcp/p``.

    Source: kubernetes, pkg/proxy/nftables/proxier.go, ``servicePortChainNameBase``.
    """
    parts = chain.split("-", 2)[-1].split("/")
    if len(parts) != len(("namespace", "service", "protocol", "port")) or "..." in chain:
        return None
    namespace, service, _, port = parts
    return f"{namespace}/{service}" + (f":{port}" if port else "")


def name_and_kind(comment: str) -> tuple[str | None, str | None]:
    """Return the name, and the kind of frontend, that a comment of kube-proxy's tells."""
    name, blank, says = comment.partition(" ")
    if not blank or not name or says not in _KINDS:
        return None, None
    return name, _KINDS[says]


def chain_hash(*parts: str) -> str:
    """Return the 16 characters with which kube-proxy ends a chain's name."""
    import base64
    import hashlib

    digest = hashlib.sha256("".join(parts).encode("utf-8", "surrogateescape")).digest()
    return base64.b32encode(digest).decode("ascii")[:16]
