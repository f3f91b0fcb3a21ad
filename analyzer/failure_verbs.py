"""The verbs that ask what failures do: every one of them, or one as time goes on."""

from __future__ import annotations

from analyzer.api_objects import ApiObjects
from analyzer.inputs import read_input
from analyzer.model.value import replace
from analyzer.output import DONE, INTERRUPTED, finish
from analyzer.reports.progress import progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.outage.control_plane import Topology

#: Failures of one kind that a person sees, and sets of several nodes that a program gets.
_TOP_OF_TEXT: Final = 3
_TOP: Final = 100


def whatif(options: SimpleNamespace) -> int:
    """Say what each failure would cost, or with ``--components`` that of each component."""
    if options.components:
        return _components(options)
    from analyzer.failure.thresholds import breaches
    from analyzer.failure.whatif import Asked, Kind, control_plane_of, what_if
    from analyzer.judging import judged, warnings_of_places
    from analyzer.outage.api_servers import api_processes
    from analyzer.reports.answers import WhatIfAnswer

    objects = ApiObjects(options)
    given = read_input(options, objects)
    absent, services = judged(options, given)
    top = options.top or (_TOP_OF_TEXT if options.format == "text" else _TOP)
    asked = Asked(
        node=options.node,
        control_plane=tuple(options.control_plane),
        kinds=frozenset(map(Kind, options.only)) or frozenset(Kind),
        depth=options.depth,
        top=top,
        by_mean=options.sort == "mean",
    )
    topology = topology_of(options, objects)
    if topology is not None and not control_plane_of(given.cluster, asked):
        # What runs there says so, where no node has the label.
        asked = replace(asked, control_plane=topology.api)
    with progress("failures") as advance:
        found = what_if(services, given.cluster, asked, advance)
    thresholds = {"max_loss": options.max_loss, "min_survives": options.min_survives}
    answer = WhatIfAnswer(
        cluster=given.cluster,
        view=given.view,
        found=found,
        absent=absent,
        diagnostics=(*given.view.diagnostics, *warnings_of_places(given)),
        breaches=tuple(breaches(found, **thresholds)),
        topology=topology,
        api_processes=api_processes(services, given.cluster),
        top=top,
        every=options.all,
        by_name=options.sort == "name",
        **thresholds,
    )
    status = finish(options, options.verb, answer, answer.diagnostics, no=answer.is_broken)
    return INTERRUPTED if found.is_interrupted else status


def topology_of(options: SimpleNamespace, objects: ApiObjects) -> Topology | None:
    """Return the control plane, by what the options say, else the objects; None: not known.

    Raises:
        UsageError: a name that is no node's, or options that contradict each other.
    """
    from analyzer.outage.topologies import Said, topology

    said = Said(
        preset=options.topology,
        control_plane=tuple(options.control_plane),
        etcd=tuple(options.etcd),
        load_balancer=tuple(options.api_load_balancer),
    )
    return topology(said, objects.roles(), objects.cluster.node_names)


def _components(options: SimpleNamespace) -> int:
    from analyzer.outage.components import COMPONENTS

    finish(options, "whatif --components", COMPONENTS, (), no=False)
    return DONE
