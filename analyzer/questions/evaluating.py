"""What of a dump is evaluated and what is not, with the notes that a reader needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from analyzer.errors import InputError, UsageError, suggestion
from analyzer.model.addresses import IPV4
from analyzer.model.diagnostics import Diagnostic, Severity, partial_warning
from analyzer.questions.overruled import overruled
from analyzer.questions.whose_dump import of_another_node
from analyzer.reports.phrases import count, listed

TYPE_CHECKING = False
if TYPE_CHECKING:  # what `services` does not need without objects is not loaded
    from types import SimpleNamespace

    from analyzer.failure.models import Dead
    from analyzer.inputs.recognised import Input
    from analyzer.kubeproxy.absent import Absent
    from analyzer.kubeproxy.view import Endpoint, ServicePort, View
    from analyzer.questions.predicting import Shown
    from analyzer.reports.freshness import Freshness


def evaluated_services(
    options: SimpleNamespace, given: Input
) -> tuple[Absent, tuple[ServicePort, ...]]:
    """Return the selected ServicePorts: those missing from the dump, and those in it.

    Raises:
        InputError: it has none of them; the message says what to give instead.
        UsageError: none has the requested name or namespace.
    """
    file, view = given.ruleset.file, given.view
    if view.unseen:
        raise InputError(f"{file}: no Service to judge: {view.unseen}")
    absent, services = selected(options, view, given.absent())
    if not services:
        raise InputError(f"{file}: no Service to judge: {_why_none(absent, is_cut=bool(view.cut))}")
    return absent, services


def selected(
    options: SimpleNamespace, view: View, absent: Absent, place: str = "this dump"
) -> tuple[Absent, tuple[ServicePort, ...]]:
    """Return the selected ServicePorts: those that are absent, and those of the view.

    Raises:
        UsageError: none has the requested name or namespace.
    """
    if not options.service and not options.namespace:
        return absent, view.services
    from analyzer.kubeproxy.select import narrow
    from analyzer.model.value import replace

    every = replace(view, services=(*view.services, *absent.every))
    wanted = set(map(id, narrow(every, options.service, options.namespace, place)))
    absent = replace(
        absent,
        lacking=tuple(each for each in absent.lacking if id(each) in wanted),
        beyond=tuple(each for each in absent.beyond if id(each) in wanted),
        unled=tuple(each for each in absent.unled if id(each) in wanted),
    )
    return absent, tuple(each for each in view.services if id(each) in wanted)


def concerning(
    options: SimpleNamespace, view: View, absent: Absent, asked: Sequence[ServicePort]
) -> View:
    """Return the view without what is not judged of Services that are not asked about.

    `absent` and `asked` are what `selected` returned. What may be of any Service, as a chain
    without a name is, remains.
    """
    open_ = dict.fromkeys([*view.left_out, *(each.name for each in view.in_part)])
    if not open_ or not (options.service or options.namespace):
        return view
    from analyzer.kubeproxy.absent import unshown
    from analyzer.kubeproxy.select import narrow
    from analyzer.model.value import replace

    named = {name: unshown(name) for name in open_}
    every = replace(view, services=(*view.services, *absent.every, *named.values()))
    meant = (*asked, *narrow(every, options.service, options.namespace))
    names = {each.name.text for each in meant}

    def is_meant(name: str) -> bool:
        own = named[name].name
        return own.service is None or own.text in names

    return replace(
        view,
        left_out=tuple(each for each in view.left_out if is_meant(each)),
        in_part=tuple(each for each in view.in_part if is_meant(each.name)),
    )


def dead_of(
    options: SimpleNamespace,
    given: Input | Shown,
    *,
    may_be_gone: bool = False,
    unshown: Collection[Endpoint] = (),
) -> Dead:
    """Return what the options say is dead; the rest as of `failure.models.dead`.

    Raises:
        UsageError: a name that does not occur.
    """
    from analyzer.failure.models import dead
    from analyzer.model.value import replace

    places = {name: _places_of(name, options, given) for name in options.dead}
    died = dead(
        given.view,
        given.cluster,
        may_be_gone,
        endpoints=[each for listed in places.values() for each in listed],
        nodes=options.dead_node,
        zones=options.dead_zone,
        unshown=unshown,
    )
    return replace(died, named=tuple(places))


def _places_of(name: str, options: SimpleNamespace, given: Input | Shown) -> Sequence[str]:
    """Return what ``--dead`` names: a pod's addresses, or `name` itself, which is one.

    Raises:
        UsageError: the objects have no such pod, or it answers nowhere.
    """
    from analyzer.model.addresses import address_from_text, network_from_text

    namespace, slash, _ = name.partition("/")
    if not slash or network_from_text(name) is not None or address_from_text(namespace) is not None:
        return (name,)
    if not options.objects:
        raise UsageError(
            f"--dead {name}: finding a pod needs --objects, with pods or endpointslices; or pass "
            "its address"
        )
    pods = given.pods()
    if name not in pods:
        raise UsageError(f"--dead {name}: the objects have no such pod{suggestion(name, pods)}")
    if not pods[name]:
        raise UsageError(
            f"--dead {name}: that pod has finished, has no address, or has its node's and is not "
            "an endpoint; pass IP:PORT"
        )
    known = {str(end) for end in given.view.endpoints}
    known |= {str(end.address) for end in given.view.endpoints}
    # A pod of both IP versions may be an endpoint of one.
    return [each for each in pods[name] if each in known] or pods[name]


def check_marked(options: SimpleNamespace, died: Dead) -> None:
    """Refuse to report to a program that nothing is lost if nothing is marked dead.

    Raises:
        UsageError: people get an overview instead.
    """
    if died.is_anything:
        return
    asked = "--max-loss" if options.max_loss is not None else f"--format {options.format}"
    if asked not in {"--format text", "--format markdown"}:
        raise UsageError(f"{asked}: nothing is marked dead; add --dead-node, --dead-zone or --dead")


def lacking(given: Input) -> Iterator[Diagnostic]:
    """Yield notes on ServicePorts that are in the objects but not in the dump.

    And of objects of another time.
    """
    yield from mismatches(given)
    yield from overruled(given.cluster, given.view, given.ruleset.file)
    absent = () if given.view.unseen else given.absent().lacking
    if absent:
        yield _told(
            given,
            Severity.WARNING,
            "missing-service",
            f"the dump has no rule for {count(len(absent), 'ServicePort')} of the objects "
            f"({listed([each.name.text for each in absent])}): "
            + _why_lacking(is_cut=bool(given.view.cut)),
        )


def not_compared(options: SimpleNamespace, given: Input) -> Iterator[Diagnostic]:
    """Yield notes for ``--check`` on what of the objects is not compared with rules.

    Its verdict is then only of a part, which `--strict` does not let pass.
    """
    beyond = () if given.view.unseen else given.absent().beyond
    if beyond:
        program = "iptables-save" if beyond[0].version == IPV4 else "ip6tables-save"
        yield partial_warning(
            "other-ip-version",
            f"{count(len(beyond), 'ServicePort')} of IPv{beyond[0].version} not compared with "
            f"rules ({listed([each.name.text for each in beyond])}); pass the output of "
            f"`{program}`, too",
            given.ruleset.file,
        )
    code = says = ""
    if given.services() and not given.lists_endpoints:
        code, says = "no-endpointslices", "list no EndpointSlices"
    elif options.objects and not (given.services() or given.other_services()):
        code, says = "no-services", "have no Service that kube-proxy writes rules for"
    if code:
        yield partial_warning(
            code,
            f"the objects {says}: rules are not compared with the objects; take them with "
            "`kubectl get services,endpointslices,nodes,pods -A -o json`",
            given.ruleset.file,
        )


def warnings_of_dead(options: SimpleNamespace, given: Input, died: Dead) -> Iterator[Diagnostic]:
    """Yield notes for readers of losses on what is dead, and where endpoints are."""
    yield from mismatches(given)
    yield from overruled(given.cluster, given.view, given.ruleset.file)
    if died.takes(options.node, given.cluster):
        yield _told(
            given,
            Severity.WARNING,
            "node-is-dead",
            f"this dump is from {options.node}, which you declared dead: it sends no flows; the "
            "numbers are what its rules would do",
        )
    for name in died.unseen:
        yield _told(
            given,
            Severity.WARNING,
            "dead-not-shown",
            f"--dead {name}: no Service of this dump shows that endpoint; it may be in a part "
            "that the dump does not show, so losses there are ranges",
        )
    if died.assumed:
        yield _by_pod_cidr(given, len({each.address for each in died.assumed}))


def warnings_of_places(given: Input) -> Iterator[Diagnostic]:
    """Yield notes for readers of `whatif` on where endpoints are."""
    yield from mismatches(given)
    yield from overruled(given.cluster, given.view, given.ruleset.file)
    if not given.cluster.pod_networks.by_length:
        return
    placed = given.cluster.is_placed_by_pod_network
    assumed = {each.address for each in given.view.endpoints if placed(each.address)}
    if assumed:
        yield _by_pod_cidr(given, len(assumed))


def freshness(options: SimpleNamespace, given: Input) -> Freshness:
    """Return when the rules and the objects were taken, as far as known."""
    from analyzer.inputs.files import Member
    from analyzer.reports.freshness import Freshness

    of_bundle = [each for each in options.dumps or () if isinstance(each, Member)]
    own = next((each for each in of_bundle if each == given.ruleset.file), None)
    header = given.ruleset.taken
    taken = None if own is None else own.taken
    synced = None if own is None else own.synced
    if header or taken or synced:
        from datetime import UTC, datetime

        from analyzer.parsers.ages import dump_taken, time_from_text

        return Freshness(
            rules=time_from_text(taken) if taken else dump_taken(header),
            synced=None if synced is None else datetime.fromtimestamp(synced, UTC),
            objects=given.taken(),
        )
    return Freshness(objects=given.taken()) if options.format == "json" else Freshness()


def mismatches(given: Input) -> Iterator[Diagnostic]:
    """Warn if the objects were taken at another time than the dump, or it is of another node."""
    yield from _another_time(given)
    yield from of_another_node(given)


def _another_time(given: Input) -> Iterator[Diagnostic]:
    """Warn if the objects were taken at another time than the dump."""
    ruleset = given.ruleset
    header = ruleset.taken
    seen = given.taken() if header else None
    if seen is None:
        return
    from analyzer.parsers.ages import dump_taken
    from analyzer.reports.freshness import SAME_TIME, long

    dumped = dump_taken(header)
    apart = 0.0 if dumped is None else (dumped - seen).total_seconds()
    if abs(apart) <= SAME_TIME:
        return
    which = "older" if apart > 0 else "newer"
    yield _told(
        given,
        Severity.WARNING,
        "objects-of-another-time",
        f"judging by the last sign of life of a node in them ({seen:%Y-%m-%d %H:%M %Z}) the "
        f"objects are {long(abs(apart))} {which} than the dump, if its node's clock is in UTC: "
        "node, zone and pod of each endpoint are as of then, and pods may have moved in "
        "between; take both again, or mark what is dead by address with --dead",
    )


def _by_pod_cidr(given: Input, number: int) -> Diagnostic:
    return _told(
        given,
        Severity.INFO,
        "node-by-pod-cidr",
        f"{count(number, 'endpoint address is', 'endpoint addresses are')} assumed to be on the "
        f"node whose podCIDR contains {'it' if number == 1 else 'them'}: neither EndpointSlices "
        "nor pods nor --node-of say where",
    )


def _told(given: Input, severity: Severity, code: str, message: str) -> Diagnostic:
    return Diagnostic(severity=severity, code=code, message=message, file=given.ruleset.file)


def _why_none(absent: Absent, *, is_cut: bool) -> str:
    """Return why no ServicePort of a dump can be judged, and what to do."""
    if absent.lacking:
        lacking = listed([each.name.text for each in absent.lacking])
        return f"the dump has no rule for {lacking} of the objects: {_why_lacking(is_cut=is_cut)}"
    if is_cut:
        return "the dump is truncated before the first rule of a Service; take it again"
    if absent.beyond:
        version = absent.beyond[0].version
        program = {4: "iptables", 6: "ip6tables"}.get(version or 4)
        number = count(len(absent.beyond), "ServicePort")
        return (
            f"the dump has no rule for a Service, but the objects have {number} of IPv{version}; "
            f"run `{program}-save`"
        )
    return (
        "the dump has no rule for a Service; run `iptables-save` on a node where kube-proxy "
        "runs, or `nft list ruleset` if it runs in nftables mode"
    )


def _why_lacking(*, is_cut: bool) -> str:
    if is_cut:
        return "it is truncated; take it again"
    return "it is older than they are, or was taken in the middle of a sync; take it again"
