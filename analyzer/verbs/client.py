"""``client``: what clients see of a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from analyzer.clients.callers import Callers, callers
from analyzer.clients.connectors import CONNECTORS, Connector, To
from analyzer.clients.losing import losing_most
from analyzer.clients.operations import (
    Connection,
    Journey,
    Operation,
    SingleOperation,
    predicted_operation,
)
from analyzer.clients.resolvers import RESOLVERS
from analyzer.clients.responses import FlowResponse
from analyzer.clients.world import EntryNode, World, dns_at
from analyzer.errors import InputError, UsageError, suggestion
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.files import read_file
from analyzer.inputs.nodes import read_nodes
from analyzer.inputs.recognised import read_input
from analyzer.inputs.source_kind import client_source
from analyzer.kubeproxy.select import narrow
from analyzer.kubeproxy.view import FrontendKind
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.value import replace, value
from analyzer.output import finish
from analyzer.questions.direct import DirectFlows
from analyzer.questions.evaluating import dead_of, evaluated_services, warnings_of_dead
from analyzer.reports.client_answer import ClientAnswer
from analyzer.reports.not_judged import not_judged
from analyzer.verbs.client_assumed import of_choice, weights
from analyzer.verbs.client_names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.failure.models import Dead
    from analyzer.inputs.recognised import Input
    from analyzer.kubeproxy.view import Endpoint, ServicePort
    from analyzer.model.addresses import Address, Network
    from analyzer.model.resolv_conf import ResolvConf

#: Names in every cluster, in a form that needs the search domains.
_LOOKED_UP: Final = "kubernetes.default"
_USUAL: Final = {"lookup": "glibc", "connect": "tcp"}


def client(options: SimpleNamespace) -> int:
    """Show what clients see, and return the exit status."""
    asked = _Asked(options)
    operations = asked.operations()
    found = tuple(predicted_operation(each, asked.world) for each in operations)
    answer = ClientAnswer(
        view=asked.given.view,
        cluster=asked.given.cluster,
        dead=asked.died,
        fates=tuple((name, fate.value) for name, fate in options.fate),
        source=asked.world.source,
        client=asked.world.client,
        singled_out=tuple(asked.singled_out.items()),
        balanced=tuple((each.node or "", each.chance) for each in asked.world.entries)
        if options.balancer
        else (),
        found=found,
        callers=asked.callers(),
        assumed=tuple(asked.assumed),
        absent=asked.absent,
        diagnostics=asked.diagnostics,
        max_failure=options.max_failure,
        is_open=asked.is_open,
        is_named=bool(options.service or options.namespace),
        every=options.all,
    )
    return finish(options, options.verb, answer, answer.diagnostics, no=answer.is_broken)


@value(kw_only=True)
class _Fates:
    """The given kinds of death, by endpoint, address, node and zone."""

    said: Mapping[str, FlowResponse]
    given: Input

    def of(self, endpoint: Endpoint) -> FlowResponse:
        """Return how a dead endpoint behaves, by its own options or else those of its node."""
        place = self.given.cluster.placement(endpoint.address)
        for name in (str(endpoint), str(endpoint.address), place.node, place.zone):
            if name is not None and name in self.said:
                return self.said[name]
        return FlowResponse.SILENT


class _Asked:
    """The options of the verb, and the input they apply to."""

    def __init__(self, options: SimpleNamespace) -> None:
        self._options = options
        self._objects = ApiObjects(options)
        self.assumed: list[str] = []
        self.is_open = False  # until a Service is chosen among those that are judged
        #: By ServicePort the networks whose clients the rules treat differently from others.
        self.singled_out: dict[str, tuple[Network, ...]] = {}
        if options.balancer:
            inputs = read_nodes(options)
            self._inputs = {each.of.node or each.of.name: each.given for each in inputs}
            self.given = next(iter(self._inputs.values()))
        else:
            self.given = read_input(options, self._objects)
        source, address = client_source(options.source, self.given, balanced=bool(options.balancer))
        self.absent, self.services = evaluated_services(options, self.given)
        self.died = self._dead()
        fates = _Fates(said=self._said(), given=self.given)
        self._names = Names(options, self.given.view, self.absent, self.assumed, source)
        self.diagnostics = (
            *self.given.view.diagnostics,
            *warnings_of_dead(options, self.given, self.died),
        )
        one = EntryNode(node=self.given.view.node, chance=Fraction(1), view=self.given.view)
        self.world = World(
            entries=tuple(self._balanced(fates)) if options.balancer else (one,),
            dead=self.died,
            fate_of=fates.of,
            source=source,
            client=address,
            ready=self._objects.ready_endpoints,
            direct=DirectFlows(self.given, source, address),
        )

    def _dead(self) -> Dead:
        if not self._options.balancer:
            return dead_of(self._options, self.given, unshown=self._ready())
        views = [each.view for each in self._inputs.values()]
        every = tuple(service for each in views for service in each.services)
        whole = replace(self.given, view=replace(self.given.view, services=every))
        return dead_of(self._options, whole, unshown=self._ready())

    def _ready(self) -> list[Endpoint]:
        """Return the endpoints that the API lists as ready, which clients may draw themselves."""
        every = (self._objects.ready_endpoints(each) for each in self.given.view.services)
        return [end for ready in every for end in ready or ()]

    def _said(self) -> dict[str, FlowResponse]:
        """Return what `--fate` says, by names that are dead.

        Raises:
            UsageError: a name is none of them, or has two fates.
        """
        died, cluster = self.died, self.given.cluster
        ends = died.endpoints | died.uncertain
        nodes = {n for n in cluster.node_names if died.takes(n, cluster)} | {*died.nodes}
        known = {*nodes, *died.zones, *map(str, ends), *(str(e.address) for e in ends)}
        said: dict[str, FlowResponse] = {}
        for name, fate in self._options.fate:
            if name not in known:
                marked = f"nothing of that name is marked dead{suggestion(name, known)}"
                raise UsageError(f"--fate {name}={fate.value}: {marked}")
            if said.setdefault(name, fate) is not fate:
                raise UsageError(f"--fate {name}: is it {said[name].value}, or {fate.value}?")
        if died.is_anything and not said:
            self.assumed.append("dead endpoints are silent; --fate says otherwise")
        return said

    # --- a balancer -------------------------------------------------------------------

    def _balanced(self, fates: _Fates) -> Iterator[EntryNode]:
        """Yield the nodes among which a balancer draws."""
        drawn = weights(self._options, self._inputs, self.given.cluster.node_names)
        whole = sum(drawn.values())
        unknown = []
        for node, weight in drawn.items():
            fate = None
            if self.died.takes(node, self.given.cluster):
                fate = fates.said.get(node) or fates.said.get(
                    self.given.cluster.zone_of(node) or "", FlowResponse.SILENT
                )
            given = self._inputs.get(node)
            if fate is None and given is None:
                unknown.append(node)
            yield EntryNode(
                node=node,
                chance=Fraction(weight, whole),
                view=None if given is None else given.view,
                fate=fate,
            )
        if unknown:
            self.assumed.append(
                f"nothing is known about the rules of {', '.join(unknown)}, so chances are "
                "ranges; pass their dumps too"
            )

    # --- what is done -----------------------------------------------------------------

    def operations(self) -> tuple[Operation, ...]:
        """Return the operations of clients.

        Raises:
            UsageError: there is nothing that they can do, or a name is not known.
        """
        options = self._options
        if options.requires:
            for option in ("client", "lookup", "service"):
                if getattr(options, option) not in (None, []):
                    raise UsageError(f"--{option}: not with --requires, whose journeys define it")
            return tuple(self._journeys())
        names = tuple(dict.fromkeys(options.client))
        resolvers = [RESOLVERS[n] for n in names or RESOLVERS if n in RESOLVERS]
        connectors = [self._tuned(CONNECTORS[n]) for n in names or CONNECTORS if n in CONNECTORS]
        found: list[Operation] = []
        if options.balancer:
            if options.lookup is not None or (names and resolvers):
                raise UsageError(
                    "--balancer: look-ups do not go through a load balancer; leave out --lookup"
                )
            resolvers = []
        if options.lookup is not None and names and not resolvers:
            raise UsageError(
                f"--lookup: {', '.join(names)} does not look up names; --client glibc does"
            )
        asks_names = options.lookup is not None or bool(names) or not options.service
        if resolvers and asks_names:
            conf = self._names.conf(must=options.lookup is not None or bool(names))
            if conf is None:
                self._note_no_look_ups()
            else:
                self._note_servers(conf)
                name = _LOOKED_UP if options.lookup is None else options.lookup
                found += [self._names.look_up(each.name, name, conf) for each in resolvers]
        if connectors and (names or options.service or options.lookup is None):
            reached = self._reached(connectors, must=bool(names or options.service))
            found += [self._connection(each, service) for each, service in reached]
        if not found:
            raise UsageError("there is nothing that these clients can reach; name a --service")
        return tuple(found)

    def _connection(self, connector: Connector, service: ServicePort) -> Connection:
        frontend = self.world.route(service).frontend
        self._note_rules(service)
        if connector.to is To.PODS and self._objects.ready_endpoints(service) is None:
            self._note(
                "clients that choose among endpoints themselves know those that the rules draw; "
                "--objects with endpointslices says which are ready"
            )
        told = connector.to is To.SERVICE and frontend.kind is not FrontendKind.CLUSTER_IP
        return Connection(connector=connector, service=service, frontend=frontend if told else None)

    def _note_no_look_ups(self) -> None:
        self.is_open = True
        says = (
            f"look-ups are not judged: {self._names.unknown}; pass --resolv-conf FILE, or --client "
            "for clients that connect"
        )
        warning = Diagnostic(
            severity=Severity.WARNING,
            code="no-name-server",
            message=says,
            file=self.given.ruleset.file,
        )
        self.diagnostics = (*self.diagnostics, warning)

    def _note_servers(self, conf: ResolvConf) -> None:
        client = self.world.client
        if client is not None and all(each.version != client.version for each in conf.nameservers):
            raise UsageError(
                f"--from {client}: no name server has an IPv{client.version} address; pass "
                "--client for clients that connect"
            )
        for address in conf.nameservers:
            service = dns_at(self.given.view.services, address)
            if service is not None:
                self._note_rules(service, address)

    def _note_rules(self, service: ServicePort, address: Address | None = None) -> None:
        says = (
            f"rules of the node itself may stop flows to {service.name.text}: each of their "
            "packets is drawn anew, so chances and delays are bounds"
        )
        if self.world.is_stopped(service, address):
            self._note(says)
        self._note_singled_out(service, address)

    def _note_singled_out(self, service: ServicePort, address: Address | None = None) -> None:
        name, networks = service.name.text, self.world.singled_out(service, address)
        if networks:  # of both IP versions
            known = self.singled_out.get(name, ())
            self.singled_out[name] = tuple(dict.fromkeys((*known, *networks)))

    def _note(self, says: str) -> None:
        if says not in self.assumed:
            self.assumed.append(says)

    def _tuned(self, connector: Connector) -> Connector:
        """Return a client with the given timeout and number of tries."""
        options = self._options
        if options.timeout is not None:
            connector = replace(connector, timeout=(options.timeout,))
        return connector if options.tries is None else replace(connector, tries=options.tries)

    def _reached(
        self, connectors: Sequence[Connector], *, must: bool
    ) -> Sequence[tuple[Connector, ServicePort]]:
        """Return who connects where: to the given ServicePorts, else where each fails most often.

        Raises:
            UsageError: none of them can be reached by TCP from the clients.
        """
        reached = {id(each) for each in self.world.services()}
        found = [s for s in self.services if s.protocol == "tcp" and id(s) in reached]
        options = self._options
        if options.service or options.namespace:
            if not found and must:
                where = self.world.source.value
                raise UsageError(
                    f"--service: none of these can be reached by TCP from {where}"
                    + (" through a NodePort" if options.balancer else "")
                )
            self.is_open |= any(map(self.world.may_connect, self.absent.every))
            return [(each, service) for service in found for each in connectors]
        view = self.given.view
        self.is_open |= bool(not_judged(view, self.absent) or view.lacks_some)
        if not found:
            return []
        chosen = losing_most(connectors, found, self.world)
        for service in chosen.others:
            self._note_singled_out(service)
        for says in of_choice(chosen):
            self._note(says)
        return chosen.reached

    def _journeys(self) -> Iterator[Journey]:
        from analyzer.parsers.journeys import journeys_from_bytes

        options = self._options
        if options.balancer:
            raise UsageError("--balancer and --requires cannot be combined")
        written = journeys_from_bytes(
            read_file(options.requires, options.max_input), options.requires
        )
        for each in written:
            steps = []
            for at, step in enumerate(each.steps, 1):
                place = f"{options.requires}: {each.name}, step {at}"
                steps.append(self._step(step.kind, step.what, step.client, place))
            yield Journey(name=each.name, steps=tuple(steps))

    def _step(self, kind: str, what: str, name: str | None, place: str) -> SingleOperation:
        name = name or _USUAL[kind]
        known: Mapping[str, object] = RESOLVERS if kind == "lookup" else CONNECTORS
        if name not in known:
            raise InputError(f"{place}: no client {name!r} for {kind}{suggestion(name, known)}")
        if kind == "lookup":
            conf = self._names.conf(must=True)
            assert conf is not None
            self._note_servers(conf)
            return self._names.look_up(name, what, conf)
        reached = {id(each) for each in self.world.services()}
        try:
            services = narrow(self.given.view, [what], [])
        except UsageError as error:
            raise InputError(f"{place}: {error}") from None
        found = [s for s in services if s.protocol == "tcp" and id(s) in reached]
        if len(found) != 1:
            names = ", ".join(s.name.text for s in found)
            says = f"it may be {names}" if found else "none can be reached by TCP from there"
            raise InputError(f"{place}: connect = {what!r} has to name one ServicePort; {says}")
        return self._connection(self._tuned(CONNECTORS[name]), found[0])

    # --- who calls --------------------------------------------------------------------

    def callers(self) -> Callers | None:
        """Return the client pods, and which of them are dead; None if not selected.

        Raises:
            UsageError: the objects have no such pod.
        """
        if self._options.caller is None:
            return None
        namespace, selector = self._options.caller
        pods = self._objects.callers(namespace, selector)
        if not pods:
            raise UsageError(
                f"--caller {namespace}/{selector}: the objects have no such pod; pass --objects "
                "with pods"
            )
        found = callers(pods, self.died, self.given.cluster)
        here = self.given.view.node
        elsewhere = {node for node in found.living.values() if node not in (None, here)}
        if here is not None and elsewhere and not self._options.balancer:
            self.assumed.append(
                f"callers on {', '.join(sorted(elsewhere))} traverse the same rules as on {here}"
            )
        return found
