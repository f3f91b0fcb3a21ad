"""Real programs as clients, each run many times. A new client takes one more row of CLIENTS.

A client without an answer for some seconds gives its flow up. So the servers answer between the
starts of clients too. If the machine was too busy to serve them for a good part of that time, no
one can say that a client was lost, and the whole batch is restarted, with fewer at once. The
batch includes clients that had ended: waiting clients are interrupted more often than answered
ones, so that dropping only the interrupted ones would bias the result towards success. Source:
nc(1) of netcat-openbsd, dig(1).
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Final, NamedTuple

from analyzer.clients.connectors import CONNECTORS
from analyzer.clients.operations import Connection, LookUp, Operation, predicted_operation
from analyzer.clients.outcome import OperationOutcome
from analyzer.clients.resolvers import RESOLVERS
from analyzer.clients.walk import FractionRange
from analyzer.clients.world import EntryNode, World
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, ServicePort
from analyzer.model.measurement import ClientExit, ClientTrial
from analyzer.model.probability import ALWAYS, Bounds, Dyadic
from analyzer.model.resolv_conf import ResolvConf
from analyzer.model.value import replace, value
from netns_lab import command
from netns_lab.dns import respond
from netns_lab.errors import LabError
from netns_lab.experiment import Lab
from netns_lab.measure import Progress
from netns_lab.naming import responder
from netns_lab.places import LabPlaces
from netns_lab.servers import Servers
from netns_lab.sources import version_of

#: Clients at one time; more would compete for the processors and time out by themselves.
_AT_ONCE: Final = 32
#: Seconds for which no server ran, of the two that the least patient client waits.
_STALL: Final = 1.0
#: Batches in a row that a busy machine may spoil.
_MOST_SPOILT: Final = 10
_POLL: Final = 0.01
_DEADLINE: Final = 60.0

_DNS_PORT: Final = 53
#: Bits to which predicted chances are rounded outwards.
_BITS: Final = 64
#: Characters of a line of output that are kept.
_MOST_SAID: Final = 200


@value(kw_only=True)
class Client:
    """A program that plays a client, and how it reports that it was answered.

    Attributes:
        fits: whether it can contact a ServicePort of this protocol and port.
        arguments: its command line for an address and a port.
        succeeded: from its exit status and its output.
        operation: what it does with a frontend, as the analysis sees it; None if not known.
        at_once: how many are run at one time.
        tells_exits: whether its runs are also reported by exit status.
        by_name: it looks up a Service's name, or is given no address, so it cannot be run against a
            single pod.
        deadline: seconds after which a run that should have given up is an error.
    """

    fits: Callable[[str, int], bool]
    arguments: Callable[[str, int], list[str]]
    succeeded: Callable[[int, str], bool]
    operation: Callable[[ServicePort, Frontend], Operation] | None
    at_once: int = _AT_ONCE
    deadline: float = _DEADLINE
    tells_exits: bool = False
    by_name: bool = False


_ALWAYS: Final = Bounds(ALWAYS, ALWAYS)


def _one_query(_: ServicePort, frontend: Frontend) -> Operation:
    assert frontend.address is not None  # only ClusterIPs are asked
    return LookUp(
        resolver=replace(RESOLVERS["dig"], attempts=1, timeout=Fraction(2)),
        conf=ResolvConf(nameservers=(frontend.address,)),
        name="name.example.",
        exists=lambda _: True,
    )


def _three_seconds(service: ServicePort, _: Frontend) -> Operation:
    connector = replace(CONNECTORS["tcp"], timeout=(Fraction(3),))
    return Connection(connector=connector, service=service)


CLIENTS: Final[Mapping[str, Client]] = {
    "nc": Client(
        fits=lambda protocol, _: protocol == "tcp",
        arguments=lambda address, port: ["nc", "-zv", "-w", "3", address, str(port)],
        succeeded=lambda status, _: status == 0,
        operation=_three_seconds,
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
        operation=_one_query,
    ),
}


class Run(NamedTuple):
    """One run of a program."""

    succeeded: bool
    seconds: float
    status: int
    output: str


def trials(
    lab: Lab,
    service: ServicePort,
    route: Route,
    runs: int,
    progress: Progress | None = None,
    *,
    own: Client | None = None,
) -> Iterator[ClientTrial]:
    """Run each client that fits, or `own`, against the living pods and the frontend.

    `own` is the user's program, whose exit statuses are reported too.

    Raises:
        LabError: no client fits, or one is not installed.
    """
    dead = lab.question.dead.endpoints
    frontend = route.frontend
    world = world_of(lab, route)
    address = frontend.address or lab.topology.plan.node_address(version_of(service, route))
    port = frontend.port
    assert port is not None  # a route of which the dump has lost it is not asked for
    fitting = [c for c in CLIENTS.values() if c.fits(service.protocol, port)]
    if own is not None:
        fitting = [own]
    if not fitting:
        raise LabError(
            f"{service.name.text}: no client speaks to {service.protocol} port {port}; "
            f"there are {', '.join(CLIENTS)}"
        )
    if own is None:
        servers = lab.serve(lambda _: respond)
    else:
        servers = lab.serve(responder(lab.question.view), LabPlaces(lab).talk)
    try:
        for client in fitting:
            alive = [e for e in service.endpoints if e not in dead]
            for endpoint in () if client.by_name else alive:
                yield _trial(lab, client, servers, runs, progress, _pod(endpoint), _ALWAYS)
            target = f"{frontend.kind.value} of {service.name.text}", str(address), port
            predicted = None
            if client.operation is not None:
                predicted = predicted_operation(client.operation(service, frontend), world).outcome
                longest = max((float(e.time.most) for e in predicted.endings), default=0.0)
                patience = max(client.deadline, longest + _DEADLINE)
                client = replace(client, deadline=patience)  # noqa: PLW2901  # the same, for longer
            yield _trial(lab, client, servers, runs, progress, target, predicted)
    finally:
        servers.close()


def world_of(lab: Lab, route: Route) -> World:
    """Return the surroundings of a route's clients, as the analysis sees them."""
    view = lab.question.view
    return World(
        entries=(EntryNode(node=view.node, chance=Fraction(1), view=view),),
        dead=lab.question.dead,
        fate_of=lab.fate_of,
        source=route.source,
    )


def succeeds(fails: FractionRange) -> Bounds:
    """Return the chance of success, rounded outwards, from the chance of failure."""
    scale = 1 << _BITS
    lower, upper = (1 - fails[1]) * scale // 1, -(-(1 - fails[0]) * scale // 1)
    return Bounds(Dyadic.of(lower, _BITS), Dyadic.of(upper, _BITS))


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
    predicted: OperationOutcome | Bounds | None,
) -> ClientTrial:
    """Run a client against a target; `predicted` is the chance of success, an outcome, or None."""
    name, address, port = target
    arguments = client.arguments(address, port)
    done = run_client(lab, client, servers, runs, arguments, progress)
    takes = predicted.failing() if isinstance(predicted, OperationOutcome) else None
    return ClientTrial(
        command=" ".join(arguments),
        target=name,
        family="ip6" if ":" in address else "ip",
        runs=runs,
        succeeded=sum(each.succeeded for each in done),
        succeeds=succeeds(predicted.fails)
        if isinstance(predicted, OperationOutcome)
        else predicted,
        # Judged as a document has them.
        failure_seconds=tuple(sorted(round(e.seconds, 3) for e in done if not e.succeeded)),
        failure_takes=None if takes is None else (float(takes.least), float(takes.most)),
        exits=_exits(done) if client.tells_exits else (),
    )


def _exits(runs: Sequence[Run]) -> tuple[ClientExit, ...]:
    """Return the runs by exit status, the most frequent status first."""
    found = []
    ordered = sorted(runs, key=lambda each: (each.status, each.seconds))
    for status, group in groupby(ordered, key=lambda each: each.status):
        alike = list(group)
        said = [line.strip() for line in alike[0].output.splitlines() if line.strip()]
        found.append(
            ClientExit(
                status=status,
                runs=len(alike),
                says=said[-1][:_MOST_SAID] if said else "",
                seconds=(
                    alike[0].seconds,
                    alike[len(alike) // 2].seconds,
                    alike[-1].seconds,
                ),
            )
        )
    return tuple(sorted(found, key=lambda each: -each.runs))


def run_client(
    lab: Lab,
    client: Client,
    servers: Servers,
    runs: int,
    arguments: list[str],
    progress: Progress | None = None,
) -> list[Run]:
    """Run a client `runs` times.

    Raises:
        LabError: the machine is too busy to tell, or a client does not end.
    """
    done: list[Run] = []
    spoilt, at_once = 0, client.at_once
    while len(done) < runs:
        batch = _Batch(lab, client, servers, arguments)
        ended = batch.run(min(at_once, runs - len(done)))
        if batch.stalled > _STALL:
            spoilt, at_once = spoilt + 1, max(1, at_once // 2)
            if spoilt == _MOST_SPOILT:
                raise LabError(
                    f"{' '.join(arguments)}: this machine is too busy to tell lost clients from "
                    f"delayed ones (it stalled for {batch.stalled:.1f} s); try again later"
                )
            continue
        spoilt = 0
        done += ended
        if progress is not None:
            progress(len(ended))
    return done


class _Batch:
    """Clients that run at the same time.

    Attributes:
        stalled: the longest time that no server ran, seconds.
    """

    def __init__(self, lab: Lab, client: Client, servers: Servers, arguments: list[str]) -> None:
        self._lab = lab
        self._client = client
        self._servers = servers
        self._arguments = arguments
        self._served = time.monotonic()
        self.stalled = 0.0

    def run(self, number: int) -> list[Run]:
        """Start `number` clients, and return their runs in the order in which they ended."""
        done: list[Run] = []
        running: dict[subprocess.Popen[str], float] = {}
        try:
            for _ in range(number):
                begun = time.monotonic()  # it runs before this process continues
                process = command.start(self._lab.topology.client.namespace, self._arguments)
                running[process] = begun
                self._serve()
            while running:
                self._serve()
                for process in [p for p in running if p.poll() is not None]:
                    seconds = time.monotonic() - running.pop(process)
                    output = process.communicate()[0]
                    succeeded = self._client.succeeded(process.returncode, output)
                    done.append(Run(succeeded, seconds, process.returncode, output))
                self._check_deadline(running)
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

    def _check_deadline(self, running: dict[subprocess.Popen[str], float]) -> None:
        now = time.monotonic()
        if any(now - begun > self._client.deadline for begun in running.values()):
            raise LabError(
                f"{' '.join(self._arguments)}: it did not end within {self._client.deadline:.0f} "
                "s; give it a time limit of its own, for example curl -m 3 or nc -w 3"
            )
