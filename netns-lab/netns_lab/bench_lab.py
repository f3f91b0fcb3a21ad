"""``make bench-lab``: time of the lab by itself, and compared with scapy and with restoring.

Prints CPU seconds of the process and ratios of one run. It judges nothing and never fails a build.
Captures that are not in the repository are read from the folder in KUBEODDS_CAPTURES.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from analyzer.kubeproxy.generate import GeneratedService, iptables_save, services
from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.value import replace
from netns_lab import asked
from netns_lab.arguments import SOURCES, parser
from netns_lab.command import program
from netns_lab.contender import Contender, kubeodds
from netns_lab.namespace import Namespace, leave_host

#: Flows of each route whose speed is measured.
_FLOWS: Final = 100_000
#: Scapy loses packets if there are more flows.
_SCAPY_FLOWS: Final = 2_000
#: Rules of a generated Service of ten endpoints.
_RULES: Final = 32
#: Services for the overhead of a route (1,000 rules), and the flows of each route.
_SMALL: Final = 31
_FEW: Final = 256

BenchCase = Callable[[Path], Iterator[str]]


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmark, or the cases named on the command line."""
    parser = argparse.ArgumentParser(prog="bench-lab", description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)} (default: all)")
    options = parser.parse_args(words)
    leave_host()
    print(f"{os.cpu_count()} processors, Linux {os.uname().release}; CPU seconds\n")
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if not options.cases or name in options.cases:
                for line in case(Path(folder)):
                    print(line, flush=True)
    return 0


def _cpu() -> float:
    used = os.times()
    return used.user + used.system


def _dump(folder: Path, given: Sequence[GeneratedService]) -> Path:
    path = folder / f"{len(given)}-services.save"
    path.write_text(iptables_save(given), encoding="ascii")
    return path


def _lab(path: Path, *words: str, flows: int) -> tuple[Any, list[tuple[ServicePort, Route]]]:
    given = ["run", str(path), *words, "--flows", str(flows)]
    options = parser().parse_args(given, SimpleNamespace())
    ((lab, routes),) = asked.set_up(options, flows).labs
    return lab, routes


def _dead(given: GeneratedService, count: int) -> list[str]:
    return ["--dead", *(str(address) for address, _ in given.endpoints[:count])] if count else []


def _engine(folder: Path) -> Iterator[str]:
    """Report how many flows of one route are sent and counted per CPU second."""
    tcp, udp = services(2)
    cases = (
        ("UDP, endpoint and answer, 5 of 10 dead", udp, 5),
        ("UDP, endpoint only, all dead", udp, 10),
        ("TCP SYN, all alive", tcp, 0),
        ("TCP SYN, 3 of 10 dead", tcp, 3),
    )
    path = _dump(folder, (tcp, udp))
    for name, given, dead in cases:
        lab, routes = _lab(path, *_dead(given, dead), "--service", given.name, flows=_FLOWS)
        begun = _cpu()
        (found,) = lab.measure(*routes[0])
        took = _cpu() - begun
        lost = found.unaccounted + found.dropped_by_capture
        yield f"{name:42} {_FLOWS / took / 1000:5.0f}k flows a CPU second; {lost} lost"
        lab.close()


def _scapy(folder: Path) -> Iterator[str]:
    """Compare one route with the same measured by scapy."""
    from netns_lab import bench_scapy
    from netns_lab.layout import PacketLayout
    from netns_lab.replay import Flows

    _, given = services(2)
    given = replace_port(given)
    path = _dump(folder, (given,))
    lab, routes = _lab(path, *_dead(given, 5), flows=_FLOWS)
    begun = _cpu()
    lab.measure(*routes[0])
    ours = _FLOWS / (_cpu() - begun)
    topology = lab.topology
    clients = tuple(topology.plan.clients_from(Source.POD))
    macs = topology.gateway_mac, topology.client.mac
    to = given.address, given.port
    flows = Flows(PacketLayout(4, "udp"), to, clients, macs, _SCAPY_FLOWS)
    sends = _SCAPY_FLOWS / bench_scapy.sends(lab, flows, _SCAPY_FLOWS)
    cpu, landed = bench_scapy.measures(lab, flows, _SCAPY_FLOWS)
    measures = _SCAPY_FLOWS / cpu
    yield (
        f"to scapy's sendp with AsyncSniffer {ours / measures:5.1f}x "
        f"({measures:,.0f} a CPU second, {landed} of {_SCAPY_FLOWS} heard)"
    )
    yield f"to scapy's sendp, sending alone    {ours / sends:5.1f}x ({sends:,.0f} a CPU second)"
    lab.close()


def replace_port(given: GeneratedService) -> GeneratedService:
    """Return a copy of the Service whose endpoints serve port 53."""
    return replace(given, endpoints=tuple((address, 53) for address, _ in given.endpoints))


def _nodes(folder: Path) -> Iterator[str]:
    """Report the time to build labs of 20 and of 100 nodes."""
    from netns_lab.plan import HostPlan, LabPlan
    from netns_lab.ready import wait_until_ready
    from netns_lab.sources import Sending
    from netns_lab.topology import build

    del folder
    from ipaddress import IPv4Address, IPv4Network

    for count in (20, 100):
        others = tuple(
            HostPlan(
                name=f"n{at}",
                addresses=(IPv4Address(f"192.168.1.{at + 1}"),),
                endpoints=(IPv4Address(f"10.244.{at}.1"),),
                networks=(IPv4Network(f"10.244.{at}.0/24"),),
            )
            for at in range(count)
        )
        wanted = LabPlan(
            node="node",
            node_addresses=(IPv4Address("192.168.0.1"),),
            own_pods=HostPlan(name="pods", addresses=(), endpoints=(), networks=()),
            others=others,
            clients={Sending(Source.POD, 4): (IPv4Address("10.245.0.1"),)},
        )
        begun, clock = _cpu(), time.monotonic()
        lab = build(wanted)
        wait_until_ready(lab.namespaces)
        yield (
            f"{count} nodes built and ready {_cpu() - begun:.2f} s "
            f"({time.monotonic() - clock:.2f} s by the clock)"
        )


def _overhead(folder: Path) -> Iterator[str]:
    """Report the time of a route beyond that of its flows, with 1,000 rules."""
    # Only now: scapy looks at interfaces when it is imported, and must not see the host's.
    from netns_lab.in_turn import in_turn

    path = _dump(folder, list(services(_SMALL)))
    lab, routes = _lab(path, flows=_FEW)
    few, many = ([(*each, flows) for each in routes] for flows in (_FEW, _FEW * 9))
    in_turn(lab, few)  # the first time sockets are opened
    took, longer = (_cpu_of(partial(in_turn, lab, each)) / len(routes) for each in (few, many))
    beside = took - (longer - took) / 8
    yield f"overhead of a route beside its flows, 1,000 rules {1000 * beside:.1f} ms"
    lab.close()


def _cpu_of(call: Callable[[], object]) -> float:
    begun = _cpu()
    call()
    return _cpu() - begun


def _capture(
    folder: Path, name: str, flows: int, *, mode: str, sources: Sequence[str] = SOURCES
) -> Iterator[str]:
    """Report the time of the whole command for every route of a capture from some sources."""
    del folder
    captures = os.environ.get("KUBEODDS_CAPTURES")
    where = Path(captures or "/nonexistent", mode, name)
    dump = next((d for n in _DUMPS for d in (where / n, where / f"{n}.gz") if d.exists()), None)
    if dump is None:
        yield f"{name} of {mode}: left out, KUBEODDS_CAPTURES does not hold it"
        return
    objects = next(o for n in ("objects.json", "objects.json.gz") if (o := where / n).exists())
    node = json.loads((where / "run.json").read_text(encoding="utf-8"))["node"]
    run = kubeodds(
        "lab", "run", dump, "--objects", objects, "--node", node, "--flows", str(flows),
        "--from", *sources,
    )  # fmt: skip
    run.run()
    which = "every route" if sources == SOURCES else f"every frontend from {sources[0]}"
    yield f"{name} of {mode}, {which} x {flows:,} flows, whole command {run.median:.1f} s"


def _large(folder: Path, rules: int) -> Iterator[str]:
    """Compare measuring the last Service of a large dump with restoring the dump."""
    given = list(services(rules // _RULES))
    path = _dump(folder, given)
    restore = Contender("restore", [program("iptables-legacy-restore"), str(path)])
    restore.run(Namespace("restore"))
    run = kubeodds("lab", "run", path, "--service", given[-1].name)
    run.run()
    yield (
        f"{rules:,} rules, the last Service measured: {run.median:.1f} s, restoring alone "
        f"{restore.median:.1f} s; {run.peak / 1024:.0f} MiB"
    )


_DUMPS: Final = ("iptables-legacy-save.txt", "iptables-nft-save.txt", "nft-list-ruleset.txt")
CASES: Final[dict[str, BenchCase]] = {
    "engine": _engine,
    "scapy": _scapy,
    "nodes": _nodes,
    "overhead": _overhead,
    "features": partial(_capture, name="features", flows=5_000, mode="1.36.2-iptables-legacy"),
    "features-nftables": partial(_capture, name="features", flows=5_000, mode="1.36.2-nftables"),
    "scale": partial(
        _capture, name="scale-1000", flows=1_000, mode="1.36.2-iptables-legacy", sources=("pod",)
    ),
    "100000": partial(_large, rules=100_000),
    "320000": partial(_large, rules=320_000),
}

if __name__ == "__main__":
    sys.exit(main())
