"""Cost of `whatif` beyond reading, on a dump of 10,000 Services and on larger generated values.

``python -m netns_lab.bench_whatif dump|values`` measures one of them and prints CPU seconds and
memory as JSON; `compare` measures both and yields a line of text for each.
"""

from __future__ import annotations

import gc
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

from analyzer.arguments.command_line import parse
from analyzer.failure.whatif import WhatIf, WhatIfOptions, what_if
from analyzer.inputs.recognised import read_input
from analyzer.kubeproxy.generate import GeneratedService, iptables_save, services
from analyzer.kubeproxy.names import service_name
from analyzer.kubeproxy.view import (
    Endpoint,
    Frontend,
    FrontendKind,
    LazyShares,
    Route,
    ServicePort,
    Share,
    Source,
)
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster, Node, Placement
from analyzer.model.endings import Endings
from analyzer.model.probability import (
    ALWAYS,
    NEVER,
    XT_STATISTIC_BITS,
    Bounds,
    Dyadic,
    threshold_from_text,
)
from analyzer.questions.evaluating import evaluated_services

#: For the dump: Services of ten endpoints each, and nodes.
_SERVICES: Final = 10_000
_NODES: Final = 1_000
#: For the values: nodes, endpoints of the Services, and DaemonSets on all nodes.
_MANY_NODES: Final = 5_000
_SIZES: Final = (1, 2, 2, 3, 3, 5, 10, 25, 40, 60)
_DAEMON_SETS: Final = 20
_ZONES: Final = 10
_PODS: Final = IPv4Address("10.0.0.0")


def main(words: Sequence[str]) -> int:
    """Measure one case and print the result."""
    gc.disable()  # as the program does
    kinds: dict[str, Callable[[], dict[str, Any]]] = {"dump": _of_dump, "values": _of_values}
    sys.stdout.write(json.dumps(kinds[words[0]]()) + "\n")
    return 0


def compare(rounds: int) -> Iterator[str]:
    """Yield one line per case: medians over some rounds."""
    for kind in ("dump", "values"):
        runs = sorted((_run(kind) for _ in range(rounds)), key=lambda each: each["whatif"])
        found = runs[len(runs) // 2]
        yield (
            f"  {found['nodes']:,} nodes, {found['services']:,} ServicePorts, "
            f"{found['endpoints']:,} endpoints, {found['from']}: {found['pairs']:,} pairs, all "
            f"nodes and {found['zones']} zones in {found['whatif']:.3f} s and "
            f"{found['memory']:.0f} MiB beyond reading ({found['reading']:.3f} s, "
            f"{found['before']:.0f} MiB)"
        )


def _run(kind: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "netns_lab.bench_whatif", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _of_dump() -> dict[str, Any]:
    """Read a dump and objects as the command does, and measure."""
    with tempfile.TemporaryDirectory() as folder:
        dump, objects = (str(Path(folder) / name) for name in ("dump.txt", "objects.json"))
        given = list(services(_SERVICES, nodes=_NODES))
        Path(dump).write_text(iptables_save(given), encoding="ascii")
        Path(objects).write_text(json.dumps({"items": list(_objects(given))}), encoding="ascii")
        # In another process, because memory used to make the files is not returned to the system.
        command = [sys.executable, "-c", _READ, dump, objects]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


_READ: Final = """
import sys
from netns_lab.bench_whatif import of_files
of_files(*sys.argv[1:])
"""


def of_files(dump: str, objects: str) -> None:
    """Print the cost of reading these files, and of judging all failures."""
    gc.disable()
    begun = time.process_time()
    options = parse(["whatif", dump, "--objects", objects])
    given = read_input(options)
    _, found = evaluated_services(options, given)
    reading = time.process_time() - begun
    told = _measured(found, given.cluster, reading, "out of a dump")
    sys.stdout.write(json.dumps(told) + "\n")


def _of_values() -> dict[str, Any]:
    """Measure on values like those a reader would return."""
    begun = time.process_time()
    draw = random.Random(0)  # noqa: S311  # no secret
    sizes = [_SIZES[at % len(_SIZES)] for at in range(_SERVICES - _DAEMON_SETS)]
    sizes += [_MANY_NODES] * _DAEMON_SETS
    nodes = [f"node-{at:04}" for at in range(_MANY_NODES)]
    shares = {size: _shares(size) for size in sorted(set(sizes))}
    placements: dict[Address, Placement] = {}
    found = []
    for number, size in enumerate(sizes):
        on = (
            range(size)
            if size == _MANY_NODES
            else [draw.randrange(_MANY_NODES) for _ in range(size)]
        )
        endpoints = []
        for node in on:
            address = _PODS + len(placements)
            placements[address] = Placement(nodes[node], f"zone-{node % _ZONES}")
            endpoints.append(Endpoint(address, 80))
        found.append(_service(number, _Listed(endpoints, shares[size])))
    cluster = Cluster({name: Node(name=name) for name in nodes}, placements)
    return _measured(found, cluster, time.process_time() - begun, "values")


class _Listed(LazyShares):
    """Shares as the reader of plain rules makes them: one list of bounds for all of one size."""

    def __init__(self, endpoints: Sequence[Endpoint], shares: Sequence[Bounds]) -> None:
        self._endpoints = endpoints
        self._shares = shares
        self._printed = [str(each) for each in endpoints]

    def __len__(self) -> int:
        return len(self._endpoints)

    def __getitem__(self, at: Any) -> Any:
        return [*map(Share, self._endpoints, self._shares, [False] * len(self))][at]

    def columns(self) -> tuple[Sequence[str], Sequence[Bounds]]:
        return self._printed, self._shares

    def draws(self) -> tuple[Sequence[Endpoint], Sequence[Bounds]]:
        return self._endpoints, self._shares

    def masquerades(self) -> Sequence[bool | None]:
        return (False,) * len(self)

    def losses(self) -> Sequence[Endings]:
        return ()


def _service(number: int, shares: _Listed) -> ServicePort:
    frontend = Frontend(FrontendKind.CLUSTER_IP, IPv4Address("10.128.0.1") + number, 80)
    route = Route(frontend, Source.POD, shares, NEVER)
    name = service_name(f"ns/svc-{number}:http")
    return ServicePort(name=name, protocol="tcp", frontends=(frontend,), routes=(route,))


def _shares(size: int) -> list[Bounds]:
    """Return the shares that kube-proxy's rules give `size` endpoints."""
    left, found = ALWAYS, []
    for behind in range(size, 1, -1):
        chance = Dyadic.of(threshold_from_text(f"{1 / behind:.10f}"), XT_STATISTIC_BITS)
        found.append(left * chance)
        left = left * ~chance
    return [Bounds(each, each) for each in (*found, left)]


def _objects(given: Sequence[GeneratedService]) -> Iterator[dict[str, Any]]:
    for number in range(_NODES):
        labels = {"topology.kubernetes.io/zone": f"zone-{number % _ZONES}"}
        yield {"kind": "Node", "metadata": {"name": f"node-{number:04}", "labels": labels}}
    for each in given:
        namespace, _, name = each.name.partition(":")[0].partition("/")
        port = {"name": "http", "protocol": each.protocol.upper()}
        meta = {"namespace": namespace, "name": name}
        spec = {"clusterIP": str(each.address), "ports": [{**port, "port": each.port}]}
        yield {"kind": "Service", "metadata": meta, "spec": spec}
        endpoints = [
            {
                "addresses": [str(address)],
                "conditions": {"ready": True},
                "nodeName": f"node-{(int(address) - int(_PODS)) // 256 % _NODES:04}",
            }
            for address, _ in each.endpoints
        ]
        yield {
            "kind": "EndpointSlice",
            "addressType": "IPv4",
            "metadata": {**meta, "labels": {"kubernetes.io/service-name": name}},
            "ports": [{**port, "port": 8080}],
            "endpoints": endpoints,
        }


def _measured(
    found: Sequence[ServicePort], cluster: Cluster, reading: float, source: str
) -> dict[str, Any]:
    before = _peak()
    begun = time.process_time()
    answer: WhatIf = what_if(found, cluster, WhatIfOptions(top=10))
    took = time.process_time() - begun
    return {
        "from": source,
        "nodes": len(answer.of_nodes),
        "zones": len(answer.of_zones),
        "services": len(found),
        "endpoints": sum(len(each.routes[0].shares) for each in found),
        "pairs": answer.sets[0].number,
        "reading": reading,
        "whatif": took,
        "before": before,
        "memory": _peak() - before,
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
