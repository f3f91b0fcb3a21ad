"""Real programs as clients, each run many times. A new client is one more row of CLIENTS.

Source: nc(1) of netcat-openbsd, dig(1).
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from analyzer.failure.loss import route_loss
from analyzer.kubeproxy.view import Endpoint, Route, ServicePort
from analyzer.model.measurement import ClientTrial
from analyzer.model.probability import ALWAYS, Bounds
from netns_lab import command
from netns_lab.dns import respond
from netns_lab.errors import LabError
from netns_lab.experiment import Lab, Progress
from netns_lab.servers import Servers

#: Clients at one time; more would fight for the processors and time out by themselves.
_AT_ONCE: Final = 32
_POLL: Final = 0.01
#: Seconds after which a client that should have given up by itself is ended.
_DEADLINE: Final = 60.0

_DNS_PORT: Final = 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program, what it can ask, and how it says that it was answered.

    Attributes:
        fits: whether it can ask a ServicePort of that protocol and port.
        arguments: to ask an address and a port.
        succeeded: from its exit status and its output.
    """

    fits: Callable[[str, int], bool]
    arguments: Callable[[str, int], list[str]]
    succeeded: Callable[[int, str], bool]


CLIENTS: Final[Mapping[str, Client]] = {
    "nc": Client(
        fits=lambda protocol, _: protocol == "tcp",
        arguments=lambda address, port: ["nc", "-zv", "-w", "3", address, str(port)],
        succeeded=lambda status, _: status == 0,
    ),
    "dig": Client(
        fits=lambda protocol, port: protocol == "udp" and port == _DNS_PORT,
        arguments=lambda address, port: [
            "dig",
            f"@{address}",
            *([] if port == _DNS_PORT else ["-p", str(port)]),
            "+tries=1",
            "+time=2",
            "name.example.",
            "A",
        ],
        succeeded=lambda status, output: status == 0 and "status: NOERROR" in output,
    ),
}


def trials(
    lab: Lab, service: ServicePort, route: Route, runs: int, progress: Progress | None = None
) -> Iterator[ClientTrial]:
    """Run each client that fits against the living pods and against the frontend.

    Raises:
        LabError: no client fits, or one is not installed.
    """
    dead = lab.question.dead.endpoints
    succeeds = route_loss(route, lab.question.dead).survives
    frontend = route.frontend
    address = frontend.address or lab.topology.plan.node_address
    port = frontend.port
    assert port is not None  # a route of which the dump has lost it is not asked for
    fitting = [c for c in CLIENTS.values() if c.fits(service.protocol, port)]
    if not fitting:
        raise LabError(
            f"{service.name.text}: no client speaks to {service.protocol} port {port}; "
            f"there are {', '.join(CLIENTS)}"
        )
    servers = lab.serve(responder=respond)
    try:
        for client in fitting:
            for endpoint in (e for e in service.endpoints if e not in dead):
                yield _trial(
                    lab, client, servers, runs, progress, _pod(endpoint), Bounds(ALWAYS, ALWAYS)
                )
            target = f"{frontend.kind.value} of {service.name.text}"
            yield _trial(
                lab,
                client,
                servers,
                runs,
                progress,
                (target, str(address), port),
                succeeds,
            )
    finally:
        servers.close()


def _pod(endpoint: Endpoint) -> tuple[str, str, int]:
    assert endpoint.port is not None
    return "a living pod", str(endpoint.address), endpoint.port


def _trial(
    lab: Lab,
    client: Client,
    servers: Servers,
    runs: int,
    progress: Progress | None,
    target: tuple[str, str, int],
    succeeds: Bounds,
) -> ClientTrial:
    name, address, port = target
    arguments = client.arguments(address, port)
    done: list[tuple[bool, float]] = []
    running: dict[subprocess.Popen[str], float] = {}
    try:
        while len(done) < runs:
            while len(running) < _AT_ONCE and len(done) + len(running) < runs:
                process = command.start(lab.topology.client.namespace, arguments)
                running[process] = time.monotonic()
            servers.serve(_POLL)
            for process in [p for p in running if p.poll() is not None]:
                seconds = time.monotonic() - running.pop(process)
                output = process.communicate()[0]
                done.append((client.succeeded(process.returncode, output), seconds))
                if progress is not None:
                    progress(1)
            _check_deadline(running, arguments)
    finally:
        for process in running:
            process.kill()
            process.communicate()
    return ClientTrial(
        command=" ".join(arguments),
        target=name,
        family="ip6" if ":" in address else "ip",
        runs=runs,
        succeeded=sum(ok for ok, _ in done),
        succeeds=succeeds,
        failure_seconds=tuple(sorted(seconds for ok, seconds in done if not ok)),
    )


def _check_deadline(running: dict[subprocess.Popen[str], float], arguments: list[str]) -> None:
    now = time.monotonic()
    if any(now - begun > _DEADLINE for begun in running.values()):
        raise LabError(f"{' '.join(arguments)} does not end")
