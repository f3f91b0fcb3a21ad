"""Small dumps, made for one test each."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address, ip_network
from typing import Final

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import Endpoint, ServicePort, Source, View
from analyzer.model.cluster import Cluster
from analyzer.parsers.iptables_save import parse

_CHAIN = re.compile(r"(?:-A|-j|-g) (KUBE-\S+)")
#: The rest of a dump whose other tables do nothing.
FILTER: Final = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"


def dump(*rules: str, missing: Collection[str] = (), masquerades: bool = True) -> str:
    """Return a nat table of `rules`, every chain declared but those that are `missing`.

    With `masquerades`, all that leaves is masqueraded unless rules say which, so that a pod gets an
    answer from itself.
    """
    lines = ["-A PREROUTING -j KUBE-SERVICES", "-A OUTPUT -j KUBE-SERVICES", *rules]
    if masquerades and not any("POSTROUTING" in rule for rule in rules):
        lines.append("-A POSTROUTING -j MASQUERADE")
    named = dict.fromkeys(["KUBE-SERVICES", *_CHAIN.findall("\n".join(lines))])
    declared = [f":{chain} - [0:0]" for chain in named if chain not in missing]
    base = [f":{chain} ACCEPT [0:0]" for chain in ("PREROUTING", "OUTPUT", "POSTROUTING")]
    return "\n".join(["*nat", *base, *declared, *lines, "COMMIT", ""])


def cluster_ip(
    name: str = "ns/a:http",
    address: str = "10.96.0.1",
    port: int = 80,
    *,
    chain: str = "KUBE-SVC-A",
) -> str:
    """Return the rule that sends the flows of a ClusterIP to `chain`."""
    return (
        f"-A KUBE-SERVICES -d {ip_network(address)} -p tcp -m comment "
        f'--comment "{name} cluster IP" -m tcp --dport {port} -j {chain}'
    )


def endpoint(chain: str, destination: str) -> str:
    """Return the rule of an endpoint's chain."""
    return f"-A {chain} -p tcp -m tcp -j DNAT --to-destination {destination}"


def chance(probability: str, target: str, *, chain: str = "KUBE-SVC-A", match: str = "") -> str:
    """Return a rule that draws `target`, if `match` holds too."""
    matches = f"{match} -m statistic --mode random --probability {probability}".strip()
    return f"-A {chain} {matches} -j {target}"


def two_endpoints(first: str = "10.0.0.1:80", second: str = "10.0.0.2:80") -> tuple[str, ...]:
    """Return the rules of a Service that draws its two endpoints alike."""
    return (
        cluster_ip(),
        chance("0.50000000000", "KUBE-SEP-1"),
        "-A KUBE-SVC-A -j KUBE-SEP-2",
        endpoint("KUBE-SEP-1", first),
        endpoint("KUBE-SEP-2", second),
    )


def many_endpoints(count: int) -> str:
    """Return the dump of a Service of so many endpoints, each drawn as often."""
    each = range(count - 1)
    draws = [chance(f"{1 / (count - n):.11f}", f"KUBE-SEP-{n}") for n in each]
    return dump(
        cluster_ip(),
        *draws,
        f"-A KUBE-SVC-A -j KUBE-SEP-{count - 1}",
        *[endpoint(f"KUBE-SEP-{n}", f"10.0.0.{n + 1}:80") for n in range(count)],
    )


def view_of(text: str, cluster: Cluster | None = None) -> View:
    """Return the Services of a dump, read at a node of which nothing is known."""
    return Recogniser(parse(text, "dump.txt"), cluster or Cluster()).view()


def only_service(text: str) -> ServicePort:
    """Return the one ServicePort of a dump."""
    (service,) = view_of(text).services
    return service


def at(text: str, port: int | None = 80) -> Endpoint:
    """Return an endpoint."""
    return Endpoint(ip_address(text), port)


def masquerade_from(view: View, source: Source) -> set[bool | None]:
    """Return whether flows of a source are masqueraded, of all routes together."""
    return {
        share.masquerade
        for service in view.services
        for route in service.routes
        if route.source is source
        for share in route.shares
    }
