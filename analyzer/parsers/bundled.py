"""The kind of a file in a bundle, recognised by its content and not by its path.

Source of the layouts, each looked up in its repository: docs/bundles.md.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from analyzer.parsers.archive import ArchivedFile

#: Kinds of files: rules (`LISTED` has one table per file), and what belongs to them.
SAVED, LISTED, NFT, NFT_JSON = "iptables-save", "iptables-list", "nft", "nft-json"
OBJECTS, ADDRESSES, IPSETS = "objects", "addresses", "ipsets"
ROUTES, NEIGHBOURS, CONNTRACK = "routes", "neighbours", "conntrack"
MANIFEST, HOSTNAME, METRICS, PART = "manifest", "hostname", "metrics", "part"
#: A listing that cannot be used, because it shows no devices.
WITHOUT_DEVICES: Final = "list-without-devices"
RULES: Final = (SAVED, LISTED, NFT, NFT_JSON)

_FENCE: Final = re.compile(rb"# [^\n]*\n\n```\n")
_SAVED: Final = re.compile(rb"\*(?:nat|filter|mangle|raw|security)\s*$")
_POLICY: Final = re.compile(rb"-P (?:PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING) [A-Z]+\b")
_CHAIN: Final = re.compile(rb"\s*Chain \S+ \((?:policy [A-Z]+|\d+ references?)")
_NFT: Final = re.compile(rb"table (?:ip|ip6|inet|arp|bridge|netdev) \S+ \{\s*$")
_FLOW: Final = re.compile(
    rb"(?:ipv[46]\s+\d+\s+)?[a-z0-9]+\s+\d+\s+(?:\d+\s+)?(?:[A-Z_0-9]+\s+)?src=\S+\s+dst="
)
_IPSET: Final = re.compile(rb"create \S+ (?:hash|bitmap|list):")
_OBJECTS: Final = (b"{", b"---", b"apiVersion:", b"items:", b"kind:")
_OF_API: Final = re.compile(
    rb"\bkind\"?:\s*\"?(?:Service|EndpointSlice|Endpoints|Node|Pod|Lease|Deployment|ReplicaSet"
    rb"|StatefulSet|DaemonSet|ServiceCIDR)(?:List)?\"?\s*[,}\r\n]"
)
#: Fields of API objects that files describing objects do not have.
_LIVE: Final = re.compile(rb"\b(?:resourceVersion|uid|items)\"?:")
_HOST: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{0,252}\n?")
_METRIC: Final = b"kubeproxy_sync_proxy_rules_last_timestamp_seconds"
_MOST_OF_METRICS: Final = 1 << 22
_MOST_OF_HOST: Final = 256


def kind_of(entry: ArchivedFile, content: Callable[[], bytes]) -> str:
    """Return the kind of a file; empty if it is of no use.

    `content` returns all of it, and is called only if the beginning does not decide.
    """
    head = unfenced(entry.head)
    name = entry.name.rpartition("/")[2]
    if name == "MANIFEST" and (not head or head.startswith(b"# kubeodds collect")):
        return MANIFEST
    if name.endswith(".part"):  # as `collect` calls what is not whole
        return PART
    if name == "hostname" and entry.size < _MOST_OF_HOST and _HOST.fullmatch(head):
        return HOSTNAME
    first = _first(head)
    if _SAVED.match(first):
        return SAVED
    if _POLICY.match(first):
        return LISTED
    if _CHAIN.match(first):
        return (
            LISTED if re.search(rb"\n *(?:num +)?pkts +bytes +target ", head) else WITHOUT_DEVICES
        )
    if _NFT.match(first):
        return NFT
    if _IPSET.match(first):
        return IPSETS
    # On a kernel without rules, nft prints its version only.
    if first.startswith(b'{"nftables"'):
        return NFT_JSON if b'"table"' in content() else ""
    if first.startswith(b"["):
        if b'"addr_info"' in head:
            return ADDRESSES
        if b'"lladdr"' in head or b'"state":["' in head:
            return NEIGHBOURS
        if b'"dst":' in head and b'"dev":' in head:
            return ROUTES
    if _FLOW.match(first):
        return CONNTRACK
    if head.lstrip().startswith(_OBJECTS) and (b"apiVersion" in head or b'"kind"' in head):
        whole = content()
        return OBJECTS if _OF_API.search(whole) and _LIVE.search(whole) else ""
    if head.startswith(b"# HELP ") and entry.size < _MOST_OF_METRICS:
        return METRICS if _METRIC in content() else ""
    return ""


def unfenced(data: bytes) -> bytes:
    """Return what a program printed, without the frame that cilium-bugtool puts around it."""
    found = _FENCE.match(data)
    if found is None:
        return data
    end = data.rfind(b"\n```")
    return data[found.end() : end + 1 if end >= found.end() else len(data)]


def last_sync(metrics: bytes) -> float | None:
    """Return when kube-proxy last wrote its rules, in seconds since 1970; None if it does not say.

    Source: Kubernetes, pkg/proxy/metrics/metrics.go, ``SyncProxyRulesLastTimestamp``: "The last
    time proxy rules were successfully synced". Labels, which it may have, are ignored.
    """
    found = re.findall(
        rb"^" + _METRIC + rb"(?:\{[^}\n]*\})? (\d{1,12}(?:\.\d+)?(?:e\+\d{1,2})?)",
        metrics,
        re.MULTILINE,
    )
    seconds = [float(each) for each in found]
    return max((each for each in seconds if 0 < each < _LAST_SECOND), default=None)


#: The year 9999, the last that a date can have.
_LAST_SECOND: Final = 253_000_000_000


def _first(head: bytes) -> bytes:
    """Return the first line that is not a comment."""
    lines = head.split(b"\n")
    found = (line for line in lines if line.strip() and not line.startswith(b"#"))
    return next(found, b"").rstrip().lstrip(b" ")
