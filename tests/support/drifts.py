"""A cluster of which each node but a few has one difference, of a kind that is known."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from analyzer.cluster.drift_kinds import DriftKind
from analyzer.kubeproxy.generate import (
    RulesLayout,
    proxy_config,
    render_nft,
    render_rules,
    service_ports,
)

#: As many nodes as there are differences, and as many again without any.
_CIDR: Final = "10.244.0.0/16"
_FLAGS: Final = (f"--cluster-cidr={_CIDR}",)
_KINDS: Final = ("plain", "web", "local", "sticky", "outside", "lonely")


@dataclass(frozen=True)
class Seeded:
    """A difference that was put into one node's dump.

    Attributes:
        service: of it, empty where it is of the node; `what`: part of what is said of it.
        old: changes the objects from which that node's rules were written.
        edit: changes the text of its dump.
    """

    drift: DriftKind
    service: str = ""
    what: str = ""
    old: Callable[[list[Any]], None] | None = None
    edit: Callable[[str], str] | None = None
    second: Callable[[str], str] | None = None
    nft: bool = False


def name(number: int) -> str:
    return f"node-{number:02}"


def address(service: int, endpoint: int) -> str:
    return f"10.244.{endpoint}.{10 + service}"


def objects(nodes: int) -> list[Any]:
    """Return a cluster of six Services of three endpoints, but for one of one."""
    items: list[Any] = [
        {
            "kind": "Node",
            "metadata": {"name": name(at)},
            "spec": {"podCIDR": f"10.244.{at}.0/24", "podCIDRs": [f"10.244.{at}.0/24"]},
            "status": {"addresses": [{"type": "InternalIP", "address": f"192.168.0.{10 + at}"}]},
        }
        for at in range(nodes)
    ]
    for number, kind in enumerate(_KINDS):
        items += _service(number, kind)
    return items


def _service(number: int, kind: str) -> Iterator[Any]:
    spec: dict[str, Any] = {
        "type": "ClusterIP",
        "clusterIP": f"10.96.0.{10 + number}",
        "clusterIPs": [f"10.96.0.{10 + number}"],
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ports": [{"name": "http", "protocol": "TCP", "port": 80}],
    }
    if kind == "web":
        spec |= {"type": "NodePort", "externalTrafficPolicy": "Cluster"}
        spec["ports"][0]["nodePort"] = 30_080
    if kind == "local":
        spec["internalTrafficPolicy"] = "Local"
    if kind == "sticky":
        spec["sessionAffinity"] = "ClientIP"
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 600}}
    if kind == "outside":
        spec["externalIPs"] = ["198.51.100.7"]
    meta = {"name": kind, "namespace": "ns"}
    yield {"kind": "Service", "metadata": meta, "spec": spec, "status": {"loadBalancer": {}}}
    ends = range(1 if kind == "lonely" else 3)
    yield {
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "metadata": {
            "name": f"{kind}-0",
            "namespace": "ns",
            "labels": {"kubernetes.io/service-name": kind},
        },
        "endpoints": [_endpoint(number, at) for at in ends],
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
    }
    for at in ends:
        yield {
            "kind": "Pod",
            "metadata": {"name": f"{kind}-{at}", "namespace": "ns"},
            "spec": {"nodeName": name(at)},
            "status": {
                "phase": "Running",
                "podIP": address(number, at),
                "podIPs": [{"ip": address(number, at)}],
            },
        }


def _endpoint(service: int, at: int, where: str | None = None) -> Any:
    return {
        "addresses": [where or address(service, at)],
        "nodeName": name(at),
        "conditions": {"ready": True, "serving": True, "terminating": False},
    }


def _of(items: list[Any], kind: str, service: str) -> Any:
    return next(
        each
        for each in items
        if each["kind"] == kind and each["metadata"]["name"] in {service, f"{service}-0"}
    )


def endpoints_of(items: list[Any], service: str) -> list[Any]:
    found: list[Any] = _of(items, "EndpointSlice", service)["endpoints"]
    return found


def _spec(items: list[Any], service: str) -> dict[str, Any]:
    found: dict[str, Any] = _of(items, "Service", service)["spec"]
    return found


def _without(pattern: str) -> Callable[[str], str]:
    """Return what takes away the rows that an expression is found in, of which there are some."""

    def edit(dump: str) -> str:
        lines = dump.split("\n")
        kept = [line for line in lines if not re.search(pattern, line)]
        assert len(kept) < len(lines), pattern
        return "\n".join(kept)

    return edit


def _replaced(old: str, new: str) -> Callable[[str], str]:
    def edit(dump: str) -> str:
        assert old in dump, old
        return dump.replace(old, new)

    return edit


def _in_table(table: str, old: str, new: str) -> Callable[[str], str]:
    """Return what changes a text in one table."""

    def edit(dump: str) -> str:
        head, mark, rest = dump.partition(f"*{table}\n")
        own, commit, others = rest.partition("COMMIT\n")
        assert old in own, old
        return f"{head}{mark}{own.replace(old, new)}{commit}{others}"

    return edit


def _gone(items: list[Any], service: str) -> None:
    items[:] = [
        each
        for each in items
        if each["kind"] not in {"Service", "EndpointSlice"}
        or each["metadata"]["name"] not in {service, f"{service}-0"}
    ]


_CHAIN_OF_PLAIN: Final = r"^-A KUBE-SVC-\S+ .*ns/plain:http"

SEEDED: Final = (
    Seeded(DriftKind.NO_SERVICES, edit=_without(r"^-A KUBE-(SERVICES|SVC|SEP|EXT|NODEPORTS)")),
    Seeded(DriftKind.OTHER_MODE, nft=True, what="nftables, not iptables"),
    Seeded(
        DriftKind.BOTH_BACKENDS,
        what="legacy and nft",
        second=_replaced("iptables-save v1.8.9", "iptables-nft-save v1.8.9 (nf_tables)"),
    ),
    Seeded(
        DriftKind.OTHER_BACKEND,
        what="nft, not legacy",
        edit=_replaced("iptables-save v1.8.9", "iptables-nft-save v1.8.9 (nf_tables)"),
    ),
    Seeded(DriftKind.OTHER_MARK, what="0x8000, not 0x4000", edit=_replaced("0x4000", "0x8000")),
    Seeded(
        DriftKind.MISSING_JUMP,
        what="ip nat PREROUTING KUBE-SERVICES",
        edit=_without(r"^-A PREROUTING .*KUBE-SERVICES"),
    ),
    Seeded(
        DriftKind.MISSING_CHAIN,
        what="ip nat KUBE-PROXY-CANARY",
        edit=_in_table("nat", ":KUBE-PROXY-CANARY - [0:0]\n", ""),
    ),
    Seeded(
        DriftKind.EXTRA_CHAIN,
        what="ip nat KUBE-MARK-DROP",
        edit=_replaced("*nat\n", "*nat\n:KUBE-MARK-DROP - [0:0]\n"),
    ),
    Seeded(
        DriftKind.OTHER_POLICY,
        what="ip filter FORWARD DROP",
        edit=_in_table("filter", ":FORWARD ACCEPT", ":FORWARD DROP"),
    ),
    Seeded(DriftKind.MISSING_SERVICE, "ns/plain:http", old=lambda items: _gone(items, "plain")),
    Seeded(
        DriftKind.EXTRA_SERVICE,
        "ns/former:http",
        old=lambda items: items.extend(_former(items)),
    ),
    Seeded(
        DriftKind.MISSING_FRONTEND,
        "ns/outside:http",
        "198.51.100.7:80",
        old=lambda items: _spec(items, "outside").pop("externalIPs"),
    ),
    Seeded(
        DriftKind.EXTRA_FRONTEND,
        "ns/plain:http",
        "198.51.100.9:80",
        old=lambda items: _spec(items, "plain").update(externalIPs=["198.51.100.9"]),
    ),
    Seeded(DriftKind.EMPTY_CHAIN, "ns/plain:http", edit=_without(_CHAIN_OF_PLAIN)),
    Seeded(
        DriftKind.REFUSED,
        "ns/lonely:http",
        old=lambda items: endpoints_of(items, "lonely").clear(),
    ),
    Seeded(
        DriftKind.OTHER_AFFINITY,
        "ns/sticky:http",
        "none, not 600 s",
        old=lambda items: _spec(items, "sticky").update(sessionAffinity="None"),
    ),
    Seeded(
        DriftKind.OTHER_LOCALITY,
        "ns/local:http",
        old=lambda items: _spec(items, "local").update(internalTrafficPolicy="Cluster"),
    ),
    Seeded(
        DriftKind.OTHER_SHARES,
        "ns/plain:http",
        edit=lambda dump: re.sub(
            r"(ns/plain:http -> .*--probability )0\.5\d*", r"\g<1>0.25000000000", dump
        ),
    ),
    Seeded(
        DriftKind.OTHER_MASQUERADE,
        "ns/plain:http",
        edit=_without(r"^-A KUBE-SVC-\S+ .*ns/plain:http.*KUBE-MARK-MASQ"),
    ),
    Seeded(
        DriftKind.LOST_TO_RULES,
        "ns/plain:http",
        edit=_replaced(
            "-A FORWARD ",
            f"-A FORWARD -d {address(0, 1)}/32 -m conntrack --ctstate NEW -j DROP\n-A FORWARD ",
        ),
    ),
    Seeded(
        DriftKind.STALE_ENDPOINT,
        "ns/plain:http",
        "10.244.2.200:8080",
        old=lambda items: endpoints_of(items, "plain").append(_endpoint(0, 2, "10.244.2.200")),
    ),
    Seeded(
        DriftKind.FOREIGN_ENDPOINT,
        "ns/plain:http",
        f"{address(3, 2)}:8080, now of ns/sticky-2",
        old=lambda items: endpoints_of(items, "plain").append(_endpoint(0, 2, address(3, 2))),
    ),
    Seeded(
        DriftKind.UNREADY_ENDPOINT,
        "ns/web:http",
        f"{address(1, 2)}:8080",
        old=lambda items: endpoints_of(items, "web")[2]["conditions"].update(ready=True),
    ),
    Seeded(
        DriftKind.MISSING_ENDPOINT,
        "ns/sticky:http",
        f"{address(3, 1)}:8080",
        old=lambda items: endpoints_of(items, "sticky").pop(1),
    ),
    Seeded(
        DriftKind.OTHER_PORT,
        "ns/lonely:http",
        f"{address(5, 0)}:9090, not {address(5, 0)}:8080",
        old=lambda items: _of(items, "EndpointSlice", "lonely")["ports"][0].update(port=9090),
    ),
    # The same again, of other Services.
    Seeded(
        DriftKind.STALE_ENDPOINT,
        "ns/web:http",
        "10.244.1.201:8080",
        old=lambda items: endpoints_of(items, "web").append(_endpoint(1, 1, "10.244.1.201")),
    ),
    Seeded(
        DriftKind.MISSING_ENDPOINT,
        "ns/plain:http",
        f"{address(0, 0)}:8080",
        old=lambda items: endpoints_of(items, "plain").pop(0),
    ),
    Seeded(DriftKind.MISSING_SERVICE, "ns/sticky:http", old=lambda items: _gone(items, "sticky")),
    Seeded(
        DriftKind.REFUSED,
        "ns/plain:http",
        old=lambda items: _spec(items, "plain").update(internalTrafficPolicy="Local"),
    ),
    Seeded(
        DriftKind.EXTRA_FRONTEND,
        "ns/plain:http",
        "*:30090",
        old=lambda items: _node_port(items, "plain", 30_090),
    ),
)


def _node_port(items: list[Any], service: str, port: int) -> None:
    spec = _spec(items, service)
    spec.update(type="NodePort", externalTrafficPolicy="Cluster")
    spec["ports"][0]["nodePort"] = port


def _former(items: list[Any]) -> list[Any]:
    """Return a Service that is no more, whose endpoint is one of another now."""
    service = copy.deepcopy(_of(items, "Service", "lonely"))
    service["metadata"]["name"] = "former"
    service["spec"].update(clusterIP="10.96.0.99", clusterIPs=["10.96.0.99"])
    of_it = copy.deepcopy(_of(items, "EndpointSlice", "lonely"))
    of_it["metadata"].update(name="former-0", labels={"kubernetes.io/service-name": "former"})
    return [service, of_it]


def write(folder: Path) -> Path:
    """Write the dumps, one difference each for the first nodes behind three; and the objects."""
    clean = 3
    items = objects(clean + len(SEEDED) + clean)
    now = copy.deepcopy(items)
    endpoints_of(now, "web")[2]["conditions"]["ready"] = False
    for number in range(clean + len(SEEDED) + clean):
        at = number - clean
        seeded = SEEDED[at] if 0 <= at < len(SEEDED) else None
        old = copy.deepcopy(now)
        if seeded is not None and seeded.old is not None:
            seeded.old(old)
        config = proxy_config(old, _FLAGS, node=name(number), layout=RulesLayout.V1_36)
        ports = list(service_ports(old, RulesLayout.V1_36))
        dump = f"# Generated by iptables-save v1.8.9\n{_body(render_rules(ports, config))}"
        if seeded is not None and seeded.nft:
            dump = render_nft(ports, config)
        if seeded is not None and seeded.edit is not None:
            dump = seeded.edit(dump)
        (folder / f"{name(number)}-iptables-save.txt").write_text(dump)
        if seeded is not None and seeded.second is not None:
            (folder / f"{name(number)}-nft-save.txt").write_text(seeded.second(dump))
    path = folder / "objects.json"
    path.write_text(json.dumps({"kind": "List", "items": now}))
    return path


def _body(text: str) -> str:
    return text[text.index("*") :]


def node_of(at: int) -> str:
    """Return the node that has a seeded difference."""
    return name(3 + at)
