"""New names of nft tables, chains, sets and stateful objects.

In nftables mode kube-proxy's names contain what they are for, after eight letters of its hash: both
are made again from the new names.
"""

from __future__ import annotations

import re

from analyzer.anonymise.naming import Naming
from analyzer.anonymise.words import is_protocol, listed
from analyzer.kubeproxy.names import nft_endpoint_name, nft_service_name
from analyzer.model.addresses import address_from_text, address_to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: The table of kube-proxy, and what it calls chains, sets and maps on every node.
KUBE_PROXY: Final = "kube-proxy"
FIXED: Final = frozenset(
    listed("""
    cluster-ips-check filter-forward filter-input filter-output filter-output-post-dnat
    filter-output-pre-dnat filter-prerouting filter-prerouting-pre-dnat firewall-check
    mark-for-masquerade masquerading nat-output nat-postrouting nat-prerouting
    nodeport-endpoints-check reject-chain service-endpoints-check services firewall-ips
    no-endpoint-nodeports no-endpoint-services service-ips service-nodeports cluster-ips
    hairpin-connections nodeport-ips
    """)
)
#: Chains in any program's table: the kernel's names of hooks.
_HOOKS: Final = frozenset(listed("prerouting input forward output postrouting ingress egress"))
#: Tables that programs call so on every node.
_TABLES: Final = frozenset(
    listed("""
    nat filter mangle raw security broute kube-proxy calico docker-bridges firewalld cni_hostport
    flannel-ipv4 flannel-ipv6 libvirt libvirt_network ovn-kubernetes netavark lxd istio-cni
    f2b-table crowdsec crowdsec6 miniupnpd
    """)
)
_OWN: Final = re.compile(
    r"(service|external|firewall|local|endpoint|affinity)-([A-Z2-7]{8})-([^/]+/[^/]+/[a-z]+/[^_]*)"
    r"(?:__(.+)/(\d{1,5}))?"
)


def table_name(naming: Naming, name: str) -> str:
    """Return the new name of a table."""
    return name if name in _TABLES else naming.names.name("table", name)


def chain_name(naming: Naming, table: str, name: str) -> str:
    """Return the new name of a chain in a table."""
    if table == KUBE_PROXY:
        return _own_name(naming, name)
    return name if name in _HOOKS else naming.chains.renamed(name)


def set_name(naming: Naming, table: str, name: str) -> str:
    """Return the new name of a set or map in a table."""
    return _own_name(naming, name) if table == KUBE_PROXY else naming.names.name("set", name)


def _own_name(naming: Naming, name: str) -> str:
    if name in FIXED:
        return name
    found = _OWN.fullmatch(name)
    if found is None:
        return naming.names.note("chain", name, f"removed-{naming.mark(name)}")
    kind, digest, path, host, port = found.groups()
    namespace, service, protocol, port_name = path.split("/")
    old = f"{namespace}/{service}" + (f":{port_name}" if port_name else "")
    new = naming.names.service_port(old)
    if new is None or not is_protocol(protocol):
        return naming.names.note("chain", name, f"removed-{naming.mark(name)}")
    if host is None:
        made, wanted = nft_service_name(new, protocol), nft_service_name(old, protocol)
    else:
        address = address_from_text(host) or address_from_text(host.replace(".", ":"))
        if address is None:
            return naming.names.note("chain", name, f"removed-{naming.mark(name)}")
        text = address_to_text(naming.names.address(address))
        made = nft_endpoint_name(
            new, protocol, f"[{text}]:{port}" if ":" in text else f"{text}:{port}"
        )
        wanted = nft_endpoint_name(old, protocol, f"[{host}]:{port}")
    if wanted != f"{digest}-{name.split('-', 2)[2]}":
        # A hash of something else stays one.
        made = naming.names.hashed("hash", digest, 8) + made[8:]
    return naming.names.note("chain", name, f"{kind}-{made}")
