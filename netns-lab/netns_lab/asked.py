"""Set-up of a lab verb: the routes to replay, and the labs that replay them."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from analyzer.errors import UsageError, suggestion
from analyzer.failure.models import Dead
from analyzer.inputs.recognised import Input, read_input
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.routes.past_refusal import has_others
from analyzer.kubeproxy.select import narrow
from analyzer.kubeproxy.view import Route, ServicePort, Source, each_network
from analyzer.model.diagnostics import Diagnostic, Severity, partial_warning
from analyzer.model.endings import UNKNOWN_END, Ending, EndKind
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.model.value import replace
from analyzer.reports.lab_answers import LeftOut
from analyzer.reports.phrases import SOURCES, count, listed
from netns_lab.backends import backend_of
from netns_lab.beyond import OtherNode
from netns_lab.deaths import Death, deaths_of, without_flapping
from netns_lab.errors import LabError
from netns_lab.namespace import leave_host
from netns_lab.node_ports import of_another, own_first
from netns_lab.plan import used_addresses
from netns_lab.pod_devices import pod_device
from netns_lab.reasons import DEAD, INTERRUPTED, passes_by, why_elsewhere, why_no_client, why_not
from netns_lab.sources import version_of

_Routes = list[tuple[ServicePort, Route]]
_AskedRoutes = Iterator[tuple[ServicePort, Route]]


class SetUp(NamedTuple):
    """What is measured: the labs, each with its routes, and the input they were made from."""

    labs: list[tuple[Any, _Routes]]
    given: Input
    dead: Dead
    deaths: tuple[Death, ...]
    left_out: list[LeftOut]
    told: tuple[Diagnostic, ...] = ()

    @property
    def routes(self) -> _Routes:
        """The routes of all labs."""
        return [each for _, routes in self.labs for each in routes]


def set_up(options: SimpleNamespace, flows: int, *, sends_behind: bool = False) -> SetUp:
    """Leave the host's network, read the input, and build the labs: one for each IP version.

    One lab serves both versions only if one nft ruleset has the rules of both. If `sends_behind`,
    endpoints whose nodes have rules of their own send flows, too.
    """
    leave_host()
    given = read_input(options)
    routes, left_out = replayable(options, given)
    made = labs_for(options, given, routes, flows, sends_behind=sends_behind)
    labs, mute, told = with_senders(made.labs, given)
    left_out += mute
    if not any(some for _, some in labs):
        raise LabError(left_out[-1].reason)
    return made._replace(labs=labs, left_out=left_out, told=(*made.told, *told))


def with_senders(
    made: Iterable[tuple[Any, _Routes]], given: Input
) -> tuple[list[tuple[Any, _Routes]], list[LeftOut], list[Diagnostic]]:
    """Return the labs with the routes that have senders, the routes that have none, and warnings.

    Of a hairpin route each endpoint sends a part. The warnings name living endpoints that send
    none, though others of their Service do.
    """
    labs: list[tuple[Any, _Routes]] = []
    left_out: list[LeftOut] = []
    mute: dict[tuple[str, str], list[str]] = {}
    for lab, routes in made:
        kept = []
        for service, route in routes:
            of_itself = route.shares if route.source is Source.HAIRPIN else ()
            senders = [each.endpoint for each in of_itself]
            reasons = {each: lab.behind.why_not(service, route, each) for each in senders}
            if reasons and None not in reasons.values():
                why = "; ".join(dict.fromkeys(filter(None, reasons.values())))
                left_out.append(left_out_of(service, route, why))
                continue
            kept.append((service, route))
            for endpoint, reason in reasons.items():
                if reason is not None and reason != DEAD:
                    mute.setdefault((service.name.text, reason), []).append(str(endpoint))
        labs.append((lab, kept))
    told = [
        partial_warning(
            "not-replayed",
            f"flows of {listed(list(dict.fromkeys(some)))} to {name}, their own Service, are not "
            f"replayed: {reason}",
            given.ruleset.file,
        )
        for (name, reason), some in mute.items()
    ]
    return labs, left_out, told


def labs_for(
    options: SimpleNamespace,
    given: Input,
    routes: _Routes,
    flows: int,
    clients: int = 0,
    *,
    sends_behind: bool = False,
) -> SetUp:
    """Build the labs for some routes, with `flows` flows of each or `clients` of each kind.

    The host's network must have been left already.
    """
    dead, deaths = deaths_of(options, given)
    # Only now: scapy looks at interfaces when it is imported, and must not see the host's.
    experiment = importlib.import_module("netns_lab.experiment")
    labs: list[tuple[Any, _Routes]] = []
    nodes, told = other_nodes(options, given, dead)
    for part in given.parts or (given,):
        own = [(s, r) for s, r in routes if not given.parts or version_of(s, r) in part.versions]
        if not own:
            continue
        question = experiment.LabSetup(
            ruleset=part.ruleset,
            cluster=given.cluster,
            view=part.view,
            own=own_first(given),
            dead=dead,
            others=part.rulesets[1:],
            nodes=nodes,
            assumed=given.assumed,
            sends_behind=sends_behind,
            lenient=options.lenient,
            deaths=without_flapping(deaths),
            backend=options.backend or backend_of(part.ruleset),
            flows=flows,
            clients=clients,
            # A client program may also contact others, first of all the cluster's DNS.
            routes=() if getattr(options, "client", None) else tuple(own),
            pod_device=pod_device(given.every_ruleset, given.assumed),
        )
        labs.append((experiment.Lab(question), own))
    return SetUp(labs, given, dead, deaths, [], tuple(told))


def other_nodes(
    options: SimpleNamespace, given: Input, dead: Dead
) -> tuple[tuple[OtherNode, ...], list[Diagnostic]]:
    """Read the dumps of ``--rules NODE=DUMP``; warn of those that have no effect.

    Raises:
        AnalyzerError: one cannot be read, or names no other node of the cluster.
    """
    files: dict[str, list[str]] = {}
    for word in options.rules:
        name, sign, file = word.partition("=")
        if not sign or not file:
            raise UsageError(f"--rules {word}: expected NODE=DUMP, for example worker2=dump2.txt")
        if name == given.view.node:
            raise UsageError(f"--rules {word}: {name} is the node that DUMP is from")
        if name not in given.cluster.node_names:
            raise UsageError(
                f"--rules {word}: no such node is known"
                + suggestion(name, given.cluster.node_names)
            )
        files.setdefault(name, []).append(file)
    found, said_of = [], []
    for name, dumps in files.items():
        if dead.takes(name, given.cluster):
            text = f"--rules {name}: that node is dead, so its rules have no effect"
            said_of.append(_warning("rules-of-the-dead", text, dumps[0]))
            continue
        own = {"dumps": dumps, "node": name, "node_ip": [], "others": []}
        of_dump: dict[str, object] = {
            "ipsets": None,
            "addresses": None,
            "routes": [],
        }  # which are of DUMP's node
        theirs = read_input(SimpleNamespace(**{**vars(options), **of_dump, **own}))
        every = theirs.every_ruleset
        found.append(
            OtherNode(
                name=name,
                given=theirs,
                rulesets=every,
                pod_device=pod_device(every, theirs.assumed),
            )
        )
    return tuple(found), said_of


def _warning(code: str, message: str, file: str) -> Diagnostic:
    return Diagnostic(severity=Severity.WARNING, code=code, message=message, file=file)


def replayable(options: SimpleNamespace, given: Input) -> tuple[_Routes, list[LeftOut]]:
    """Return the routes to replay, and those that cannot be replayed.

    Raises:
        LabError: no route can be replayed.
    """
    ports_of = of_another(given.every_ruleset, given.cluster, given.view.node)
    used = cache(partial(used_addresses, given.view, given.cluster))
    asked = [
        (
            service,
            route,
            why_not(service, route, ports_of=ports_of)
            or why_no_client(route, used)
            or why_elsewhere(route, given.view.node, given.cluster),
        )
        for service, route in routes_of(options, given)
    ]
    routes = [(service, route) for service, route, reason in asked if reason is None]
    left_out = [
        left_out_of(service, route, reason)
        for service, route, reason in asked
        if reason is not None
    ]
    if not routes:
        why = next(iter(said(left_out, given)), None)
        raise LabError(why.message if why else "no frontend has flows from there")
    return routes, left_out


def left_out_of(service: ServicePort, route: Route, reason: str) -> LeftOut:
    """Return the record of a route that is not replayed, with the reason."""
    return LeftOut(
        service=service.name.text,
        protocol=service.protocol,
        frontend=f"{route.frontend.kind.value} {route.frontend}",
        source=route.source.value,
        reason=reason,
    )


def said(left_out: Iterable[LeftOut], given: Input) -> list[Diagnostic]:
    """Return one warning for each ServicePort, source and reason, and one for an interruption."""
    every = [*left_out]
    cut = sum(each.reason == INTERRUPTED for each in every)
    numbers = Counter((e.service, e.source, e.reason) for e in every if e.reason != INTERRUPTED)
    says = f"interrupted: {count(cut, 'route')} not measured, or only in part"
    told = [partial_warning("not-replayed", says, given.ruleset.file)] if cut else []
    return told + [
        partial_warning(
            "not-replayed",
            f"{count(number, 'route')} to {name} from {SOURCES[Source(source)]} "
            f"{'is' if number == 1 else 'are'} not replayed: {reason}",
            given.ruleset.file,
        )
        for (name, source, reason), number in numbers.items()
    ]


def notes(made: SetUp) -> list[Diagnostic]:
    """Return what the labs changed or left out when they loaded the dumps, without repetition."""
    found = (note for lab, _ in made.labs for note in lab.notes)
    return list(dict.fromkeys([*made.told, *found]))


def routes_of(options: SimpleNamespace, given: Input) -> _AskedRoutes:
    """Yield the routes asked about; for refused frontends, the route with its refusal."""
    for service in narrow(given.view, options.service):
        for source in Source:
            if source.value in (options.sources or ["pod"]):
                yield from routes_to(service, source, given)


def routes_to(service: ServicePort, source: Source, given: Input) -> _AskedRoutes:
    """Yield the routes to one ServicePort; for refused frontends, the route with its refusal."""
    refusals = dict(service.refusals)
    for route in each_network(service.every_route(source)):
        how = refusals.get(route.frontend)
        nowhere = not route.shares and not route.astray
        if how is None or not nowhere:
            yield service, route
            continue
        ends = Ending(kind=EndKind.REFUSED, how=how)
        # Rules of nftables mode refuse in every hook.
        of_iptables = given.view.mode is ProxyMode.IPTABLES
        if of_iptables and passes_by(route, given.every_ruleset):
            # What comes from outside goes back there: its own network decides how it ends.
            is_open = route.source is Source.EXTERNAL or _has_others(given)
            ends = UNKNOWN_END if is_open else Ending(kind=EndKind.UNCHANGED)
        yield service, replace(route, astray=((ends, Bounds(ALWAYS, ALWAYS)),))


def _has_others(given: Input) -> bool:
    """Return whether others' rules or a policy may end flows that kube-proxy does not refuse."""
    rulesets = [*given.every_ruleset]
    of_iptables = [each for each in rulesets if isinstance(each, Ruleset)]
    chains = (c for each in of_iptables for t in each.tables.values() for c in t.chains.values())
    accept = all(chain.policy in {None, "ACCEPT"} for chain in chains)
    return len(of_iptables) < len(rulesets) or not accept or has_others(of_iptables)


def place_of(service: ServicePort, route: Route) -> tuple[Any, ...]:
    """Return the key by which a route of one dump finds its counterpart in another."""
    name = service.name.text, service.protocol, service.version
    return *name, route.frontend, route.source, route.network


def names(dead: Dead, deaths: Iterable[Death] = ()) -> str:
    """Return the dead nodes, zones and endpoints in words, each with its kind of death if given."""
    kinds = {each.what: f" ({each.kind})" for each in deaths}
    named = [f"node {n}{kinds.pop(n, '')}" for n in dead.nodes]
    named += [f"zone {z}" for z in dead.zones]
    named += [f"endpoint {e}{kinds.pop(e, '')}" for e in dead.named]
    late = "".join(f"; not dead: {what}{how}" for what, how in kinds.items())
    return (", ".join(named) or "nothing") + late
