"""The names of kube-proxy's chains, and the comments by which rules name Services.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``servicePortChainName``,
``servicePortEndpointChainName``; pkg/proxy/nftables/proxier.go, ``hashAndTruncate``;
versions 1.14 to 1.36.
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

#: Prefixes of the chains of one ServicePort, by what they do with a flow.
SERVICE_PREFIXES: Final = ("KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-XLB-", "KUBE-FW-")
ENDPOINT_PREFIX: Final = "KUBE-SEP-"
#: The one of them that only admits sources, and the others, which send flows on.
FIREWALL_PREFIX: Final = "KUBE-FW-"
ENTERED_PREFIXES: Final = tuple(each for each in SERVICE_PREFIXES if each != FIREWALL_PREFIX)
#: Prefixes of chains that have rules whenever one jumps to them.
NEVER_EMPTY: Final = (ENDPOINT_PREFIX,)
#: Prefixes of chains of hostPorts, which kube-proxy does not write.
HOST_PORTS: Final = ("CNI-DN-", "KUBE-HOSTPORTS")
#: The table of nft with hostPorts; there is one of ip and one of ip6.
HOST_PORT_TABLE: Final = "cni_hostport"
#: Of the chains of one endpoint in nftables mode.
NFT_ENDPOINT_PREFIX: Final = "endpoint-"
#: Of those of one ServicePort or endpoint.
_NFT_FIREWALL: Final = "firewall-"
_NFT_PREFIXES: Final = ("service-", "external-", _NFT_FIREWALL, "local-", NFT_ENDPOINT_PREFIX)
#: The verdict maps of nftables mode that lead to the chains of Services.
NFT_SERVICE_MAPS: Final = frozenset({"service-ips", "service-nodeports"})
#: The set of this node's endpoints whose flows to themselves nftables mode masquerades (1.36).
HAIRPIN_SET: Final = "hairpin-connections"
#: Of the sets of session affinity in nftables mode.
AFFINITY_PREFIX: Final = "affinity-"
#: Of all lists of session affinity.
AFFINITY_LISTS: Final = (ENDPOINT_PREFIX, AFFINITY_PREFIX)
#: Characters of a name in nftables mode, without the longest prefix. Source: ``NameLengthMax``
#: of sigs.k8s.io/knftables, less ``chainNamePrefixLengthMax``.
_NFT_NAME_LENGTH: Final = 256 - 16

_FORWARD: Final = "KUBE-FORWARD"
#: Chains of iptables mode in which kube-proxy, or the kubelet for it, refuses flows.
_REFUSING: Final = frozenset(
    {
        SERVICES,
        NODE_PORTS,
        EXTERNAL_SERVICES,
        MARK_DROP,
        "KUBE-FIREWALL",
        _FORWARD,
        "KUBE-PROXY-FIREWALL",
    }
)
#: The table of nftables mode.
_NFT_TABLE: Final = "kube-proxy"
#: Its chains with the verdicts on flows to Services without endpoints. Not cluster-ips-check: it
#: refuses flows to a Service only if the rules that lead to that are missing. Not firewall-check:
#: the chains of Services that it leads to refuse.
_NFT_REFUSING: Final = frozenset(
    {"service-endpoints-check", "nodeport-endpoints-check", "reject-chain"}
)

#: What follows the name in the comment of a rule of KUBE-SERVICES, and the kind that it means.
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
    return ServiceName(namespace, service, port or None, text if port else f"{namespace}/{service}")


def plain_name(name: str) -> str:
    """Return a ServicePort's name without the colon that up to 1.18 is at its end."""
    return name.removesuffix(":")


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
    """Return the name and the kind of frontend in a comment of kube-proxy's."""
    name, blank, says = comment.partition(" ")
    if not blank or not name or says not in _KINDS:
        return None, None
    return name, _KINDS[says]


def chain_hash(*parts: str) -> str:
    """Return the 16 characters at the end of the name of a chain of kube-proxy's."""
    import base64
    import hashlib

    digest = hashlib.sha256("".join(parts).encode("utf-8", "surrogateescape")).digest()
    return base64.b32encode(digest[:10]).decode("ascii")  # 16 characters of 5 bits each


def is_own(chain: str, table: str) -> bool:
    """Return whether a chain is one of kube-proxy's; `table` may have its family before it."""
    if table.rpartition(" ")[2] == _NFT_TABLE:
        return True
    return chain in _REFUSING or chain.startswith((*SERVICE_PREFIXES, ENDPOINT_PREFIX))


def may_refuse(chain: str, table: str) -> bool:
    """Return whether kube-proxy refuses flows there that it has no endpoint for, or does not admit.

    It does so in filter; what ends a flow in nat, or in KUBE-FORWARD (which drops what conntrack
    finds INVALID), is no such answer, even if the chain is its own.

    Source: kubernetes, pkg/proxy/iptables/proxier.go and pkg/proxy/nftables/proxier.go.
    """
    bare = table.rpartition(" ")[2]
    if bare == _NFT_TABLE:
        return chain in _NFT_REFUSING or chain.startswith(_NFT_FIREWALL)
    return bare != "nat" and chain in _REFUSING and chain != _FORWARD


def is_of_service(chain: str) -> bool:
    """Return whether a chain is that of one Service or endpoint."""
    return chain.startswith((*SERVICE_PREFIXES, ENDPOINT_PREFIX, *_NFT_PREFIXES))


def nft_service_name(name: str, protocol: str) -> str:
    """Return the name of a ServicePort's chains in nftables mode, after their prefix."""
    return _hashed(_nft_path(name, protocol))


def nft_endpoint_name(name: str, protocol: str, endpoint: str) -> str:
    """Return the name of an endpoint's chain and set there, after their prefix.

    `endpoint` is ``address:port``, as the EndpointSlice spells it up to 1.30.
    """
    host, _, port = endpoint.rpartition(":")
    # A name cannot have a colon.
    host = host.strip("[]").replace(":", ".")
    return _hashed(f"{_nft_path(name, protocol)}__{host}/{port}")


def _nft_path(name: str, protocol: str) -> str:
    parts = service_name(name)
    return f"{parts.namespace}/{parts.service}/{protocol}/{parts.port or ''}"


def _hashed(path: str) -> str:
    """Return a path after 8 characters of its hash, truncated if it is too long for nft."""
    name = f"{chain_hash(path)[:8]}-{path}"
    return name if len(name) <= _NFT_NAME_LENGTH else f"{name[: _NFT_NAME_LENGTH - 3]}..."
