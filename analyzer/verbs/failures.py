"""``whatif`` and ``timeline``: the cost of every failure, or of one over time."""

from __future__ import annotations

from itertools import chain

from analyzer.errors import UsageError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.recognised import read_input
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.output import DONE, INTERRUPTED, finish
from analyzer.reports.progress import progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.inputs.recognised import Input
    from analyzer.kubeproxy.view import Endpoint
    from analyzer.outage.control_plane import ControlPlaneTopology
    from analyzer.outage.scenario import OutageOptions
    from analyzer.outage.topologies import GivenTopology
    from analyzer.questions.predicting import Everywhere

#: Failures of one kind that a person sees, and sets of several nodes that a program gets.
_TOP_OF_TEXT: Final = 3
_TOP: Final = 100


def whatif(options: SimpleNamespace) -> int:
    """Show what each failure would cost, or with ``--components`` that of each component."""
    if options.components:
        return _components(options)
    return whatif_of(options, ApiObjects(options), None)


def whatif_of(options: SimpleNamespace, objects: ApiObjects, every: Everywhere | None) -> int:
    """Show what each failure would cost, on every node of `every` if it is given."""
    from analyzer.failure.reaching import (
        is_lost_beyond,
        lost_now,
        reaching,
        reaching_at_every_node,
        reaching_from_endpoints,
    )
    from analyzer.failure.thresholds import breaches, check_counted
    from analyzer.failure.whatif import FailureKind, WhatIfOptions, control_plane_of, what_if
    from analyzer.kubeproxy.absent import Absent
    from analyzer.outage.api_servers import api_processes
    from analyzer.questions.evaluating import (
        concerning,
        evaluated_services,
        freshness,
        warnings_of_places,
    )
    from analyzer.reports.answers import WhatIfAnswer
    from analyzer.reports.freshness import Freshness

    check_counted(options.only, options.min_survives, ", or pass --min-survives-zones")
    given = None
    absent = Absent()
    if every is None and options.from_objects:
        from analyzer.questions.predicting import everywhere, is_everywhere, predicted_input

        if is_everywhere(options):
            every = everywhere(options, objects)
        else:
            given = predicted_input(options, objects)
    if every is not None:
        view, services, told = every.view, every.asked, every.diagnostics
        absent = every.absent
    else:
        given = read_input(options, objects) if given is None else given
        absent, services = evaluated_services(options, given)
        view = concerning(options, given.view, absent, services)
        told = (*given.view.diagnostics, *warnings_of_places(given))
    top = options.top or (_TOP_OF_TEXT if options.format in {"text", "markdown"} else _TOP)
    asked = WhatIfOptions(
        node=options.node if every is None else None,
        control_plane=tuple(options.control_plane),
        kinds=frozenset(map(FailureKind, options.only)) or frozenset(FailureKind),
        depth=options.depth,
        top=top,
        by_mean=options.sort == "mean",
    )
    topology = topology_of(options, objects)
    if topology is not None and not control_plane_of(objects.cluster, asked):
        # Without the label, the pods on nodes show which carry the control plane.
        asked = replace(asked, control_plane=topology.api)
    with progress("failures") as advance:
        at_every_node = () if every is None else tuple(map(reaching_at_every_node, every.services))
        own = () if options.max_loss is None else reaching_from_endpoints(services)
        given_services = reaching(services), objects.cluster, asked
        found = what_if(*given_services, advance, at_every_node, own)
    at_all = [[service] for service in services]
    if every is not None:
        at_all = [[at.service for at in each.at] for each in every.services]
    if options.min_survives_zones is not None and found.zones is None:
        raise UsageError("--min-survives-zones: no zone is known; the nodes of --objects have none")
    thresholds = {
        "max_loss": options.max_loss,
        "min_survives": options.min_survives,
        "min_survives_zones": options.min_survives_zones,
    }
    answer = WhatIfAnswer(
        cluster=objects.cluster,
        view=view,
        found=found,
        absent=absent,
        diagnostics=told,
        breaches=tuple(breaches(found, **thresholds)),
        is_lost_beyond=is_lost_beyond(chain(*at_all), options.max_loss),
        lost_now={
            at: lost for at, lost in enumerate(map(lost_now, at_all)) if lost is not Ternary.FALSE
        },
        topology=topology,
        api_processes=api_processes(services, objects.cluster),
        prediction=None if every is None else every.grounds,
        every_node=() if every is None else every.services,
        top=top,
        every=options.all,
        by_name=options.sort == "name",
        freshness=Freshness() if given is None else freshness(options, given),
        **thresholds,
    )
    status = finish(options, "whatif", answer, answer.diagnostics, no=answer.is_broken)
    return INTERRUPTED if found.is_interrupted else status


def topology_of(options: SimpleNamespace, objects: ApiObjects) -> ControlPlaneTopology | None:
    """Return the control plane, from options, else from objects; None if not known.

    Raises:
        UsageError: a name that is no node's, or options that contradict each other.
    """
    from analyzer.outage.topologies import topology

    return topology(said_of(options), objects.roles(), objects.cluster.node_names)


def said_of(options: SimpleNamespace) -> GivenTopology:
    """Return what the options say about the control plane."""
    from analyzer.outage.topologies import GivenTopology

    return GivenTopology(
        preset=options.topology,
        control_plane=tuple(options.control_plane),
        etcd=tuple(options.etcd),
        load_balancer=tuple(options.api_load_balancer),
    )


def _components(options: SimpleNamespace) -> int:
    from analyzer.outage.components import COMPONENTS

    finish(options, "whatif --components", COMPONENTS, (), no=False)
    return DONE


def timeline(options: SimpleNamespace) -> int:
    """Show what an outage costs over time."""
    from analyzer.failure.reaching import reaching
    from analyzer.outage.scenario import scenario
    from analyzer.outage.timeline import play
    from analyzer.questions.evaluating import (
        concerning,
        dead_of,
        evaluated_services,
        warnings_of_dead,
    )
    from analyzer.reports.answers import TimelineAnswer

    objects = ApiObjects(options)
    given = read_input(options, objects)
    absent, judged_services = evaluated_services(options, given)
    services = reaching(judged_services)
    died = dead_of(options, given)
    asked = _asked(options, given)
    found = scenario(
        asked, died, services, given.cluster, topology_of(options, objects), objects.workloads()
    )
    is_played = found.died.is_anything or options.frozen or options.kube_proxy_dead
    if not is_played and options.reboots_after is None:
        raise UsageError(
            "nothing is marked dead; add --dead-node, --dead-zone or --dead, or --frozen for an "
            "outage of the API alone"
        )
    specs = given.services() if given.lists_endpoints else ()
    played = play(
        services,
        found.died,
        found.causes.fates,
        {each.key: each for each in specs},
        options.until,
        found.reboot,
        # Without kube-proxy, rules do not change.
        () if options.kube_proxy_dead else found.unsettled,
    )
    answer = TimelineAnswer(
        cluster=given.cluster,
        view=concerning(options, given.view, absent, judged_services),
        scenario=found,
        played=played,
        services=judged_services,
        absent=absent,
        diagnostics=(*given.view.diagnostics, *warnings_of_dead(options, given, died)),
        until=options.until,
        rate=options.rate,
        slo=options.slo,
        slo_window=options.slo_window,
        every=options.all,
    )
    return finish(options, options.verb, answer, answer.diagnostics, no=False)


def _asked(options: SimpleNamespace, given: Input) -> OutageOptions:
    """Return the options of an outage, besides what is dead."""
    from analyzer.outage.causes import Reconciler
    from analyzer.outage.clocks import DURATIONS
    from analyzer.outage.eviction import Rates
    from analyzer.outage.scenario import OutageOptions
    from analyzer.questions.evaluating import dead_of

    if options.frozen and options.healing:
        raise UsageError("--frozen and --healing cannot be combined")
    with_api: frozenset[Endpoint] = frozenset()
    if options.dies_with_api:
        named = {"dead": options.dies_with_api, "dead_node": [], "dead_zone": []}
        with_api = dead_of(type(options)(**{**vars(options), **named}), given).endpoints
    times = {name: getattr(options, name.replace("-", "_")) for name in DURATIONS}
    return OutageOptions(
        heals=True if options.healing else False if options.frozen else None,
        api_back=options.api_back_after,
        proxy_dead=options.kube_proxy_dead,
        reboots_after=options.reboots_after,
        with_api=with_api,
        reconciler=Reconciler(options.endpoint_reconciler_type),
        rates=Rates(
            normal=options.node_eviction_rate,
            secondary=options.secondary_node_eviction_rate,
            threshold=options.unhealthy_zone_threshold,
            large=options.large_cluster_size_threshold,
        ),
        said={name: span for name, span in times.items() if span is not None},
    )
