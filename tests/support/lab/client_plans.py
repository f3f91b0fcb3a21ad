"""Real programs against real rules, held to their plans: ``python -m`` this, in its own process.

Each way in which an operation may end, of the same result and time to 10 %, is counted, and its
share of all runs put to an exact binomial test; Holm's method over all of them. Hosts limit how
much ICMP they send, which is taken away here: programs run beside each other from one address.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from analyzer.clients.operations import predicted_operation
from analyzer.clients.outcome import OperationOutcome
from analyzer.clients.plan import OperationResult
from analyzer.clients.responses import FlowResponse
from analyzer.failure.agreement import DELAY, STARTING
from analyzer.failure.binomial import holm, p_value_within
from analyzer.inputs.recognised import read_input
from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.select import narrow
from analyzer.model.value import replace
from analyzer.questions.evaluating import dead_of
from netns_lab.arguments import parser
from netns_lab.backends import backend_of
from netns_lab.command import ip_batch
from netns_lab.namespace import leave_host
from netns_lab.naming import use_resolv_conf
from tests.support.clusters import GeneratedCluster
from tests.support.lab.client_programs import (
    FULL_NAME,
    NAME,
    PROGRAMS,
    SEARCH,
    conf_of,
    is_installed,
)

RATE: Final = 1e-6
#: Programs beside each other whose failures take no time.
_AT_ONCE: Final = 4
_DNS: Final = (IPv4Address("10.96.0.10"), IPv4Address("10.96.0.11"))
_WEB: Final = 80


def cluster(endpoints: int) -> GeneratedCluster:
    """Return a cluster whose DNS and whose web Service have so many endpoints, one a node."""
    names = [f"node{at}" for at in range(1, endpoints + 1)]
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": {}},
            "spec": {"podCIDR": f"10.244.{at}.0/24", "podCIDRs": [f"10.244.{at}.0/24"]},
            "status": {"addresses": [{"type": "InternalIP", "address": f"192.168.9.{10 + at}"}]},
        }
        for at, name in enumerate(["node0", *names])
    ]
    items: list[Any] = [*nodes]
    for name, namespace, address, port, number, protocol, host in (
        ("kube-dns", "kube-system", str(_DNS[0]), "dns", 53, "UDP", 2),
        ("kube-dns-2", "kube-system", str(_DNS[1]), "dns", 53, "UDP", 2),
        ("shop", "default", "10.96.7.7", "http", _WEB, "TCP", 3),
    ):
        listed = [{"name": port, "protocol": protocol, "port": number}]
        spec = {
            "type": "ClusterIP",
            "clusterIP": address,
            "clusterIPs": [address],
            "ports": listed,
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
        }
        meta = {"name": name, "namespace": namespace}
        items.append({"kind": "Service", "metadata": meta, "spec": spec, "status": {}})
        places = [
            {
                "addresses": [f"10.244.{at}.{host}"],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "nodeName": each,
            }
            for at, each in enumerate(names, 1)
        ]
        labels = {"kubernetes.io/service-name": name}
        items.append(
            {
                "kind": "EndpointSlice",
                "addressType": "IPv4",
                "metadata": {"name": f"{name}-0", "namespace": namespace, "labels": labels},
                "endpoints": places,
                "ports": listed,
            }
        )
    return GeneratedCluster(items, ("--cluster-cidr=10.244.0.0/16",), RulesLayout.V1_36, 4, "node0")


def run(
    name: str, fate: FlowResponse, dead: int, endpoints: int, runs: int, folder: Path
) -> dict[str, Any]:
    """Run a program so often, and return what was predicted beside what was counted."""
    program = PROGRAMS[name]
    words = [program.words("x", 0, folder)[0]]  # built where there is a network still
    leave_host()
    made = cluster(endpoints)
    dump, objects = folder / "dump.txt", folder / "objects.json"
    dump.write_text(made.dump, encoding="utf-8")
    objects.write_text(json.dumps({"kind": "List", "items": made.items}), encoding="utf-8")
    died = [f"10.244.{at}.{host}" for at in range(1, dead + 1) for host in (2, 3)]
    asked = ["clients", str(dump), "--objects", str(objects), "--node", "node0", "--dead", *died]
    options: SimpleNamespace = parser().parse_args(asked, SimpleNamespace())
    servers_asked = _DNS[: program.servers]
    use_resolv_conf(
        "".join(f"nameserver {each}\n" for each in servers_asked)
        + f"search {' '.join(SEARCH)}\n"
        + (f"options {program.options}\n" if program.options else "")
    )
    given = read_input(options)
    found = dead_of(options, given)
    experiment = importlib.import_module("netns_lab.experiment")
    clients = importlib.import_module("netns_lab.clients")
    dns = importlib.import_module("netns_lab.dns")
    lab = experiment.Lab(
        experiment.LabSetup(
            ruleset=given.ruleset,
            cluster=given.cluster,
            view=given.view,
            dead=found,
            backend=backend_of(given.ruleset),
            flows=1000,
            refusing=frozenset() if fate is FlowResponse.SILENT else found.endpoints,
        )
    )
    for host in (*lab.topology.others, lab.topology.own_pods):
        host.namespace.set("net/ipv4/icmp_ratelimit", 0)
        if fate is FlowResponse.UNREACHABLE:
            # A router says so, where a pod's own route is gone.
            host.namespace.set("net/ipv4/ip_forward", 1)
            gone = [a for a in host.plan.endpoints if str(a) in died]
            ip_batch(
                host.namespace, [f"route replace unreachable {a}/32 table local" for a in gone]
            )
    (service,) = narrow(given.view, ["default/shop"])
    route = service.cluster_route
    assert route is not None
    name_asked = NAME if program.searches else f"{FULL_NAME}."
    conf = conf_of(program.options, servers_asked)
    operation = program.operation(conf, name_asked, service)
    world = replace(clients.world_of(lab, route), fate_of=lambda _: fate)
    predicted = predicted_operation(operation, world).outcome
    is_connection = operation.says.startswith("reach")
    target = (str(route.frontend.address), _WEB) if is_connection else (name_asked, 0)
    client = clients.Client(
        fits=lambda *_: True,
        arguments=lambda *_: words,
        succeeded=lambda status, output: (
            status in program.statuses and ("status:" not in output or "status: NOERROR" in output)
        ),
        operation=lambda *_: operation,
        # Where nobody waits, more of them would wait for each other.
        at_once=min(program.at_once, _AT_ONCE) if fate is FlowResponse.REFUSED else program.at_once,
        deadline=program.deadline,
    )
    servers = lab.serve(lambda _: dns.telling({FULL_NAME: (bytes([192, 0, 2, 1]),)}))
    try:
        done = clients.run_client(lab, client, servers, runs, program.words(*target, folder))
    finally:
        servers.close()
    return told(predicted, done, clients.succeeds)


def told(predicted: OperationOutcome, done: Sequence[Any], chance: Any) -> dict[str, Any]:
    """Return each group of endings with its chance and its count, and whether they agree."""
    groups: list[tuple[bool, float, float, list[tuple[Any, Any]]]] = []
    for each in predicted.endings:
        if not each.chance[1]:
            continue
        ok = each.result is OperationResult.ANSWERED
        low = float(each.time.least) * (1 - DELAY) - 0.01
        high = float(each.time.most) * (1 + DELAY) + STARTING
        same = next((g for g in groups if g[0] == ok and low <= g[2] and g[1] <= high), None)
        if same is None:
            groups.append((ok, low, high, [each.chance]))
        else:
            groups[groups.index(same)] = (
                ok, min(low, same[1]), max(high, same[2]), [*same[3], each.chance]
            )  # fmt: skip
    rows: list[dict[str, object]] = []
    p_values: list[float] = []
    left = list(done)
    for ok, low, high, chances in groups:
        here = [each for each in left if each.succeeded == ok and low <= each.seconds <= high]
        left = [each for each in left if each not in here]
        least = min(1, sum(lower for lower, _ in chances))
        most = min(1, sum(upper for _, upper in chances))
        bounds = chance((1 - most, 1 - least))
        p_values.append(p_value_within(len(here), len(done), bounds))
        rows.append(
            {
                "ok": ok,
                "from": round(low, 2),
                "to": round(high, 2),
                "chance": [float(least), float(most)],
                "count": len(here),
                "p": p_values[-1],
            }
        )
    kept = holm(p_values, RATE)
    failed = sorted(each.seconds for each in done if not each.succeeded)
    return {
        "runs": len(done),
        "succeeded": sum(each.succeeded for each in done),
        "predicted": [float(1 - each) for each in reversed(predicted.fails)],
        "failure_seconds": [
            round(each, 2) for each in failed[:1] + failed[len(failed) // 2 :][:1] + failed[-1:]
        ],
        "groups": rows,
        "elsewhere": [[each.succeeded, round(each.seconds, 2)] for each in left][:10],
        # A busy machine may delay one run or another beyond what is allowed.
        "agrees": all(kept) and len(left) <= len(done) // 20,
    }


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", choices=list(PROGRAMS))
    parser.add_argument("--fate", choices=["silent", "refused", "unreachable"])
    parser.add_argument("--dead", default="1/2", help="so many of so many endpoints")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, help="draws what is not said")
    options = parser.parse_args(words)
    draw = random.Random(options.seed)
    # The kernel's own time-out is longer than a job of the soak.
    there = [n for n, each in PROGRAMS.items() if is_installed(each) and "kernel" not in n]
    name = options.program or draw.choice(there)
    fate = FlowResponse(options.fate or draw.choice(["silent", "refused", "unreachable"]))
    dead, endpoints = (int(each) for each in (options.dead).split("/"))
    if options.seed is not None:
        dead, endpoints = draw.choice([(1, 2), (2, 5)])
        options.runs = 32
    with tempfile.TemporaryDirectory() as folder:
        found = run(name, fate, dead, endpoints, options.runs, Path(folder))
    sys.stdout.write(
        json.dumps({"program": name, "fate": fate.value, "dead": f"{dead}/{endpoints}", **found})
        + "\n"
    )
    return not found["agrees"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
