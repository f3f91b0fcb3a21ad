"""What kube-proxy's design promises a flow, derived from API objects alone.

Nothing of the analyzer's reading of rules is used here. Source: kubernetes,
pkg/proxy/topology.go, ``CategorizeEndpoints``; pkg/proxy/serviceport.go; pkg/proxy/iptables/
proxier.go, ``syncProxyRules``, of the versions that the captures are of.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address, ip_network
from itertools import pairwise
from pathlib import Path
from typing import Any

from analyzer.model.addresses import Address, Network
from analyzer.model.probability import Dyadic
from tests.support.captures import expected_shares


@dataclass(frozen=True)
class Source:
    """Where a flow comes from; `made_here`: the node itself."""

    name: str
    address: Address
    made_here: bool = False


@dataclass(frozen=True)
class Frontend:
    """One address and port of a ServicePort; `kind` as in the API."""

    service: str
    protocol: str
    kind: str
    address: Address
    port: int

    def __str__(self) -> str:
        return f"{self.service} {self.kind} {self.address}:{self.port}/{self.protocol}"


@dataclass(frozen=True)
class Endpoint:
    address: Address
    port: int
    local: bool
    ready: bool
    serving_terminating: bool
    zones: frozenset[str]
    nodes: frozenset[str]


@dataclass(frozen=True)
class Promise:
    """A flow's fate; `endpoints` share it evenly, and `masqueraded` tells of each.

    `kind` is endpoint, reject, drop, or pass where nothing takes the flow.
    """

    kind: str
    endpoints: frozenset[tuple[Address, int]] = frozenset()
    masqueraded: frozenset[tuple[Address, int]] = frozenset()


class Promises:
    """Of one capture: the objects, kube-proxy's version and flags, and the node."""

    def __init__(self, folder: Path, family: int) -> None:
        run = json.loads((folder / "run.json").read_text())
        flags = dict(flag.lstrip("-").partition("=")[::2] for flag in run["flags"])
        major, minor, *_ = folder.parent.name.split("-")[0].split(".")
        self.version = int(major), int(minor)
        self.node = run["node"]
        self.family = family
        self.nftables = folder.parent.name.endswith("-nftables")
        ignored = self.nftables and self.version < (1, 31)
        self.masquerades_all = "masquerade-all" in flags and not ignored
        self.kubelet = folder.name.endswith("+kubelet")
        networks = [ip_network(n) for n in flags.get("cluster-cidr", "").split(",") if n]
        self.pods = next((n for n in networks if n.version == family), None)
        (objects,) = folder.glob("objects.json*")
        data = objects.read_bytes()
        text = gzip.decompress(data) if objects.suffix == ".gz" else data
        self._items = json.loads(text)["items"]

    def _of_kind(self, kind: str) -> list[Any]:
        return [item for item in self._items if item["kind"] == kind]

    @cached_property
    def _slices(self) -> dict[tuple[str, str], list[Any]]:
        found: dict[tuple[str, str], list[Any]] = {}
        for each in self._of_kind("EndpointSlice"):
            theirs = each["metadata"]
            name = theirs["labels"]["kubernetes.io/service-name"]
            found.setdefault((theirs["namespace"], name), []).append(each)
        return found

    @cached_property
    def _older(self) -> dict[tuple[str, str], list[Any]]:
        found: dict[tuple[str, str], list[Any]] = {}
        for each in self._of_kind("Endpoints"):
            theirs = each["metadata"]
            found.setdefault((theirs["namespace"], theirs["name"]), []).append(each)
        return found

    @cached_property
    def _node(self) -> Any:
        return next(n for n in self._of_kind("Node") if n["metadata"]["name"] == self.node)

    @cached_property
    def node_addresses(self) -> tuple[Address, ...]:
        kinds = {"InternalIP", "ExternalIP"}
        found = [
            ip_address(a["address"])
            for a in self._node["status"]["addresses"]
            if a["type"] in kinds
        ]
        return tuple(a for a in found if a.version == self.family)

    def pod_here(self) -> Address:
        """Return an address of the node's pods that no endpoint has."""
        spec = self._node.get("spec", {})
        networks = [ip_network(n) for n in spec.get("podCIDRs", [])]
        if "podCIDR" in spec:
            networks.append(ip_network(spec["podCIDR"]))
        found = [n for n in (*networks, self.pods) if n is not None and n.version == self.family]
        network = found[0]
        return network[network.num_addresses - 2]

    # --- ServicePorts ---

    def frontends(self) -> Iterator[tuple[Any, Any, Frontend]]:
        """Give each Service and port with each of its frontends."""
        for service in self._of_kind("Service"):
            spec, meta = service["spec"], service["metadata"]
            if spec.get("clusterIP") in (None, "None", ""):
                continue
            ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress", [])
            cluster_ips = spec.get("clusterIPs") or [spec["clusterIP"]]
            if all(ip_address(each).version != self.family for each in cluster_ips):
                continue  # whatever other addresses it has
            addresses = [
                *[("ClusterIP", a) for a in cluster_ips],
                *[("ExternalIP", a) for a in spec.get("externalIPs", [])],
                *[("LoadBalancerIP", each["ip"]) for each in ingress if "ip" in each],
            ]
            for port in spec["ports"]:
                name = f"{meta['namespace']}/{meta['name']}:{port.get('name', '')}"
                protocol = port["protocol"].lower()
                for kind, text in addresses:
                    address = ip_address(text)
                    if address.version == self.family:
                        yield service, port, Frontend(name, protocol, kind, address, port["port"])
                if "nodePort" in port and self.node_addresses:
                    own = self.node_addresses[0]
                    yield service, port, Frontend(name, protocol, "NodePort", own, port["nodePort"])

    def _endpoints(self, service: Any, port: Any) -> list[Endpoint]:
        meta, wanted = service["metadata"], port.get("name", "")
        if self.version < (1, 19):
            return list(self._of_endpoints(meta, wanted))
        found = []
        for each in self._slices.get((meta["namespace"], meta["name"]), []):
            for number in [p["port"] for p in each["ports"] or [] if p.get("name", "") == wanted]:
                for endpoint in each["endpoints"] or []:
                    found += [
                        self._endpoint(endpoint, ip_address(text), number)
                        for text in endpoint["addresses"]
                        if ip_address(text).version == self.family
                    ]
        return list(dict.fromkeys(found))

    def _endpoint(self, endpoint: Any, address: Address, port: int) -> Endpoint:
        conditions = endpoint.get("conditions", {})
        ready = conditions.get("ready") is not False
        terminating = conditions.get("terminating") is True
        node = endpoint.get("nodeName") or endpoint.get("topology", {}).get(
            "kubernetes.io/hostname"
        )
        hints = endpoint.get("hints") or {}
        return Endpoint(
            address,
            port,
            local=node == self.node,
            ready=ready,
            serving_terminating=terminating and conditions.get("serving") is True,
            zones=frozenset(z["name"] for z in hints.get("forZones", [])),
            nodes=frozenset(n["name"] for n in hints.get("forNodes", [])),
        )

    def _of_endpoints(self, meta: Any, wanted: str) -> Iterator[Endpoint]:
        for each in self._older.get((meta["namespace"], meta["name"]), []):
            for subset in each.get("subsets") or []:
                numbers = [p["port"] for p in subset["ports"] if p.get("name", "") == wanted]
                for number in numbers:
                    for address in subset.get("addresses") or []:
                        local = address.get("nodeName") == self.node
                        yield Endpoint(
                            ip_address(address["ip"]),
                            number,
                            local,
                            True,
                            False,
                            frozenset(),
                            frozenset(),
                        )

    def shares(self, number: int) -> tuple[Dyadic, ...]:
        """Return what the rules of `number` endpoints draw, in some order."""
        if not self.nftables:
            return expected_shares(self.version, number)
        edges = [-(-(at << 32) // number) for at in range(number + 1)] if number else []
        return tuple(Dyadic.of(high - low, 32) for low, high in pairwise(edges))

    # --- policies ---

    def promise(self, service: Any, port: Any, frontend: Frontend, source: Source) -> Promise:
        """Return what becomes of a new flow."""
        spec = service["spec"]
        endpoints = self._endpoints(service, port)
        cluster = self._cluster(service, endpoints)
        here = self._here(endpoints)
        checks_first = self._checks_own_flows_first(frontend, source)
        if self.nftables and not checks_first and self._is_kept_out(spec, frontend, source):
            return Promise("drop")  # before anything else is asked, endpoints or none
        if not cluster and not here:
            return self._none_at_all(frontend, source)
        if frontend.kind == "ExternalIP" and source.made_here and self.version < (1, 22):
            return Promise("pass")  # only what comes in is looked at
        if frontend.kind == "ClusterIP":
            local = spec.get("internalTrafficPolicy") == "Local" and self.version >= (1, 22)
            chosen = here if local else cluster
            marked = self.masquerades_all or (
                self.pods is not None and source.address not in self.pods
            )
            return self._sent(chosen, source, marked=marked) if chosen else Promise("drop")
        return self._external(spec, frontend, source, cluster, here)

    def _external(
        self,
        spec: Any,
        frontend: Frontend,
        source: Source,
        cluster: list[Endpoint],
        here: list[Endpoint],
    ) -> Promise:
        if self._is_kept_out(spec, frontend, source):
            return self._refused(frontend, source)
        ignored = frontend.kind == "ExternalIP" and self.version < (1, 19)
        refused = spec.get("externalTrafficPolicy") == "Local" and not here
        if refused and self._checks_own_flows_first(frontend, source):
            return Promise("drop")
        if spec.get("externalTrafficPolicy") != "Local" or ignored:
            return self._sent(cluster, source, marked=True)
        if self.pods is not None and source.address in self.pods:
            return self._sent(cluster, source, marked=False)
        if source.made_here and self.version >= (1, 16):
            return self._sent(cluster, source, marked=True)
        return self._sent(here, source, marked=False) if here else self._refused(frontend, source)

    def _checks_own_flows_first(self, frontend: Frontend, source: Source) -> bool:
        """Tell whether endpoints are asked for before nat and source ranges are.

        In nftables mode of 1.30 filter-output has the priority -110, dstnat -100.
        """
        early = self.nftables and self.version < (1, 31)
        return early and source.made_here and frontend.kind in ("ExternalIP", "LoadBalancerIP")

    def _is_kept_out(self, spec: Any, frontend: Frontend, source: Source) -> bool:
        """Tell whether source ranges of a balancer leave a source out."""
        listed = [ip_network(n) for n in spec.get("loadBalancerSourceRanges", [])]
        ranges = [n for n in listed if n.version == self.family]  # of no other version
        asked = frontend.kind == "LoadBalancerIP" and bool(ranges)
        return asked and not _within(source.address, ranges)

    def _refused(self, frontend: Frontend, source: Source) -> Promise:
        """Up to 1.23 a mark says what to drop; the kubelet's rules do, in INPUT and OUTPUT."""
        if self.version >= (1, 25):
            return Promise("drop")
        met = frontend.kind == "NodePort" or source.made_here
        return Promise("drop" if self.kubelet and met else "pass")

    def _none_at_all(self, frontend: Frontend, source: Source) -> Promise:
        """Up to 1.18 external addresses are rejected in INPUT, then in FORWARD too."""
        everywhere = frontend.kind == "ClusterIP" or (
            frontend.kind == "LoadBalancerIP" and self.version < (1, 16)
        )
        # What the node makes for its own NodePort comes to INPUT in the end.
        everywhere |= self.nftables  # OUTPUT is looked at too
        met = frontend.kind == "NodePort" or (self.version >= (1, 19) and not source.made_here)
        return Promise("reject" if everywhere or met else "pass")

    def _sent(self, endpoints: list[Endpoint], source: Source, *, marked: bool) -> Promise:
        found = frozenset((e.address, e.port) for e in endpoints)
        # A set of 1.36's nftables mode holds the node's own endpoints: no other's flow comes here.
        by_set = self.nftables and self.version >= (1, 36)
        back = {e.address for e in endpoints if e.local or not by_set} & {source.address}
        # What comes in and stays on the node never meets POSTROUTING.
        masked = frozenset(
            (address, port)
            for address, port in found
            if (marked or address in back)
            and (source.made_here or address not in self.node_addresses)
        )
        return Promise("endpoint", found, masked)

    def _cluster(self, service: Any, endpoints: list[Endpoint]) -> list[Endpoint]:
        ready = [e for e in endpoints if e.ready]
        fitting = self._hinted(service, ready)
        if fitting or self.version < (1, 26):
            return fitting
        return [e for e in endpoints if e.serving_terminating]

    def _here(self, endpoints: list[Endpoint]) -> list[Endpoint]:
        found = [e for e in endpoints if e.ready and e.local]
        if found or self.version < (1, 26):
            return found
        return [e for e in endpoints if e.serving_terminating and e.local]

    def _hinted(self, service: Any, ready: list[Endpoint]) -> list[Endpoint]:
        """Leave out endpoints that topology hints keep for others."""
        if self.version < (1, 23):
            return ready
        annotations = service["metadata"].get("annotations") or {}
        asked = {
            annotations.get("service.kubernetes.io/topology-aware-hints"),
            annotations.get("service.kubernetes.io/topology-mode"),
        } & {"auto", "Auto"}
        if self.version < (1, 33) and not asked:
            return ready
        by_node = [e for e in ready if self.node in e.nodes]
        if self.version >= (1, 34) and by_node and all(e.nodes for e in ready):
            return by_node
        zone = self._node["metadata"]["labels"].get("topology.kubernetes.io/zone")
        by_zone = [e for e in ready if zone in e.zones]
        return by_zone if by_zone and all(e.zones for e in ready) else ready


def _within(address: Address, networks: list[Network]) -> bool:
    return any(address in network for network in networks)
