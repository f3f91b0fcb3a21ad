"""What clients do, and how it ends: look-ups, connections, and journeys made of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from analyzer.clients.connect import connect, connect_to_pods
from analyzer.clients.connectors import Connector, To
from analyzer.clients.look_up import Candidate, Finish, candidates, look_up, with_options
from analyzer.clients.outcome import OperationOutcome, fails, outcome
from analyzer.clients.plan import EitherPlan, Finished, OperationResult, Plan
from analyzer.clients.resolvers import Port, Resolver
from analyzer.clients.target import ClientTarget, Pins
from analyzer.clients.walk import FractionRange
from analyzer.clients.world import World
from analyzer.kubeproxy.view import Frontend, ServicePort
from analyzer.model.addresses import IPV6
from analyzer.model.resolv_conf import ResolvConf
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value


@value(kw_only=True)
class LookUp:
    """The lookup of a name.

    Attributes:
        exists: returns whether a candidate has an address.
    """

    resolver: Resolver
    conf: ResolvConf
    name: str
    exists: Callable[[str], bool]

    @property
    def client(self) -> str:
        """The name of the client."""
        return self.resolver.name

    @property
    def says(self) -> str:
        """What is done."""
        return f"look up {self.name}"

    @property
    def asked(self) -> tuple[Candidate, ...]:
        """The names that are queried.

        Who tries no search domains is given the name in full.
        """
        found = candidates(self.resolver, self.conf, self.name, self.exists)
        if self.resolver.searches or any(each.exists for each in found):
            return found
        every = candidates(replace(self.resolver, searches=True), self.conf, self.name, self.exists)
        return tuple(replace(each, as_given=True) for each in every if each.exists)[:1] or found

    def plan(self, world: World, pins: Pins, finish: Finish) -> Plan:
        """Return the plan of the operation."""
        return self._plan(with_options(self.resolver, self.conf), world, pins, finish)

    def _plan(self, resolver: Resolver, world: World, pins: Pins, finish: Finish) -> Plan:
        asked = self.conf.nameservers
        if resolver.parallel:
            # From one socket to one address is one flow, however often it is named.
            asked = tuple(dict.fromkeys(asked))
        servers = [world.name_server(each) for each in asked]
        plans = tuple(
            look_up(resolver, self.asked, each, pins, finish) for each in self._orders(servers)
        )
        return plans[0] if len(plans) == 1 else EitherPlan(plans)

    def _orders(self, servers: Sequence[ClientTarget]) -> Iterator[Sequence[ClientTarget]]:
        """Yield the orders in which servers may be asked: with `rotate` any may be the first."""
        turns = len(servers) if self.conf.rotate and not self.resolver.parallel else 1
        for turn in range(turns):
            yield [*servers[turn:], *servers[:turn]]

    def alternatives(self, world: World) -> dict[str, FractionRange]:
        """Return the chance of failure with one attempt, or with new source ports, by change."""
        resolver = with_options(self.resolver, self.conf)
        others = {}
        if resolver.attempts > 1 and resolver.port is Port.SAME:
            others["new-ports"] = replace(resolver, port=Port.NEW)
        if resolver.attempts > 1:
            others["one-attempt"] = replace(
                resolver, attempts=1, backoff=resolver.backoff[:1], timeout=resolver.timeout
            )
        return {what: fails(self._plan(each, world, (), ends)) for what, each in others.items()}


@value(kw_only=True)
class Connection:
    """A connection to a Service.

    Attributes:
        frontend: by which the client reaches the ServicePort; None: it goes to the pods themselves,
            or it is the ClusterIP as ever.
    """

    connector: Connector
    service: ServicePort
    frontend: Frontend | None = None

    @property
    def client(self) -> str:
        """The name of the client."""
        return self.connector.name

    @property
    def says(self) -> str:
        """What is done."""
        frontend = self.frontend
        by = f" by {frontend.kind.value} {frontend}" if frontend is not None else ""
        if frontend is None and self.service.version == IPV6:
            by = " (IPv6)"  # its other half may be reached by the same client
        return f"reach {self.service.name.text}{by}"

    def plan(self, world: World, pins: Pins, finish: Finish) -> Plan:
        """Return the plan of the operation."""
        return self._plan(self.connector, world, pins, finish)

    def _plan(self, connector: Connector, world: World, pins: Pins, finish: Finish) -> Plan:
        if connector.to is To.SERVICE:
            return connect(connector, world.target(self.service), pins, finish)
        sure, perhaps = world.pods(self.service)
        return connect_to_pods(connector, sure, perhaps, pins, finish)

    def alternatives(self, world: World) -> dict[str, FractionRange]:
        """Return the chance of failure with a single attempt, if it has more, by change."""
        if self.connector.tries == 1:
            return {}
        one = replace(self.connector, tries=1)
        return {"one-attempt": fails(self._plan(one, world, (), ends))}


SingleOperation = LookUp | Connection


@value(kw_only=True)
class Journey:
    """Steps in sequence, all of which have to succeed."""

    name: str
    steps: tuple[SingleOperation, ...]

    @property
    def client(self) -> str:
        """The name of the client."""
        return self.name

    @property
    def says(self) -> str:
        """What is done."""
        return ", then ".join(each.says for each in self.steps)

    def plan(self, world: World, pins: Pins, finish: Finish) -> Plan:
        """Return the plan of the operation."""
        known: dict[tuple[int, Pins], Plan] = {}

        def begin(at: int, pins: Pins) -> Plan:
            if at == len(self.steps):
                return finish(OperationResult.ANSWERED, pins)
            if (at, pins) not in known:
                known[at, pins] = self.steps[at].plan(
                    world,
                    pins,
                    lambda result, held: (
                        begin(at + 1, held)
                        if result is OperationResult.ANSWERED
                        else finish(result, held)
                    ),
                )
            return known[at, pins]

        return begin(0, pins)

    def alternatives(self, world: World) -> dict[str, FractionRange]:
        """Return the chance of failure of each step alone."""
        return {
            f"{number}. {each.says}": fails(each.plan(world, (), ends))
            for number, each in enumerate(self.steps, start=1)
        }


Operation = SingleOperation | Journey


@value(kw_only=True)
class PredictedOperation:
    """An operation with its outcome.

    Attributes:
        flow: the chance that one new flow fails, of its only target; None: it has several, or none
            that the rules draw for.
        affine: whether session affinity holds the client to one endpoint there.
        alternatives: the chance to fail if something were otherwise.
    """

    operation: Operation
    outcome: OperationOutcome
    flow: FractionRange | None
    affine: Ternary
    alternatives: dict[str, FractionRange]


def ends(result: OperationResult, _: Pins) -> Plan:
    """Return the plan that ends here."""
    return Finished(result)


def predicted_operation(operation: Operation, world: World) -> PredictedOperation:
    """Return the outcome of an operation."""
    targets = _targets(operation, world)
    one = targets[0] if len(targets) == 1 else None
    return PredictedOperation(
        operation=operation,
        outcome=outcome(operation.plan(world, (), ends)),
        flow=None if one is None else one.lot.fails,
        affine=Ternary.FALSE if one is None else one.affine,
        alternatives=operation.alternatives(world),
    )


def _targets(operation: Operation, world: World) -> list[ClientTarget]:
    match operation:
        case LookUp():
            return [world.name_server(each) for each in operation.conf.nameservers]
        case Connection():
            if operation.connector.to is To.PODS:
                return []
            return [world.target(operation.service)]
        case Journey():
            return []
