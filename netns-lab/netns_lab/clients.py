"""Real programs as clients, each run many times. A new client is one more row of CLIENTS.

A client that hears nothing for some seconds takes its flow for lost. So servers are served between
the starts of clients too, and where this machine was too busy to serve them for a good part of that
time, all clients of the same batch are started anew, fewer at once: whether one of them was lost
nobody can tell. It is always the whole batch, those included that had ended: a client that waits is
interrupted more often than one that was answered, so that to drop only who was would favour the
living.

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
#: Seconds without an answer to anybody, of the two that the least patient client waits.
_STALL: Final = 1.0
#: Batches in a row that a busy machine may spoil.
_MOST_SPOILT: Final = 10
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
    spoilt, at_once = 0, _AT_ONCE
    while len(done) < runs:
        batch = _Batch(lab, client, servers, arguments)
        ended = batch.run(min(at_once, runs - len(done)))
        if batch.stalled > _STALL:
            spoilt, at_once = spoilt + 1, max(1, at_once // 2)
            if spoilt == _MOST_SPOILT:
                raise LabError(
                    f"{' '.join(arguments)}: this machine is too busy to tell who is lost from who "
                    f"has to wait, of late for {batch.stalled:.1f} s; try again when it is not"
                )
            continue
        spoilt = 0
        done += ended
        if progress is not None:
            progress(len(ended))
    return ClientTrial(
        command=" ".join(arguments),
        target=name,
        family="ip6" if ":" in address else "ip",
        runs=runs,
        succeeded=sum(ok for ok, _ in done),
        succeeds=succeeds,
        failure_seconds=tuple(sorted(seconds for ok, seconds in done if not ok)),
    )


class _Batch:
    """Clients that run at the same time.

    Attributes:
        stalled: for how many seconds, at most, nobody was answered.
    """

    def __init__(self, lab: Lab, client: Client, servers: Servers, arguments: list[str]) -> None:
        self._lab = lab
        self._client = client
        self._servers = servers
        self._arguments = arguments
        self._served = time.monotonic()
        self.stalled = 0.0

    def run(self, number: int) -> list[tuple[bool, float]]:
        """Start so many, and return whether each succeeded and what it took, as they end."""
        done: list[tuple[bool, float]] = []
        running: dict[subprocess.Popen[str], float] = {}
        try:
            for _ in range(number):
                process = command.start(self._lab.topology.client.namespace, self._arguments)
                running[process] = time.monotonic()
                self._serve()
            while running:
                self._serve()
                for process in [p for p in running if p.poll() is not None]:
                    seconds = time.monotonic() - running.pop(process)
                    output = process.communicate()[0]
                    done.append((self._client.succeeded(process.returncode, output), seconds))
                _check_deadline(running, self._arguments)
        finally:
            for process in running:
                process.kill()
                process.communicate()
        return done

    def _serve(self) -> None:
        self._servers.serve(_POLL)
        now = time.monotonic()
        self.stalled = max(self.stalled, now - self._served)
        self._served = now


def _check_deadline(running: dict[subprocess.Popen[str], float], arguments: list[str]) -> None:
    now = time.monotonic()
    if any(now - begun > _DEADLINE for begun in running.values()):
        raise LabError(f"{' '.join(arguments)} does not end")
