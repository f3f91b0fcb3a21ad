"""The answers of the verbs about one dump, with everything their reports need.

Those of other verbs, whose renderers share little, have files of their own: ``*_answer``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from analyzer.model.value import value
from analyzer.reports.freshness import UNKNOWN, Freshness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

    from analyzer.cluster.from_dumps import FromDumps
    from analyzer.failure.limits import Threshold
    from analyzer.failure.loss import ServiceLoss
    from analyzer.failure.loss_at_nodes import WorstLoss
    from analyzer.failure.models import Dead
    from analyzer.failure.thresholds import Breach
    from analyzer.failure.whatif import Failure, WhatIf
    from analyzer.kubeproxy.absent import Absent
    from analyzer.kubeproxy.predict.cluster import Prediction
    from analyzer.kubeproxy.predict.every_node import EveryNode
    from analyzer.kubeproxy.view import Route, ServicePort, View
    from analyzer.model.cluster import Cluster
    from analyzer.model.diagnostics import Diagnostic
    from analyzer.model.packet import Packet
    from analyzer.model.services import ApiServicePort, ServicePortKey
    from analyzer.model.ternary import Ternary
    from analyzer.outage.api_servers import ApiProcess
    from analyzer.outage.control_plane import ControlPlaneState, ControlPlaneTopology
    from analyzer.outage.scenario import Scenario
    from analyzer.outage.timeline import Played
    from analyzer.semantics.base_chains import Rules
    from analyzer.semantics.fate import Fate, PacketEnd
    from analyzer.semantics.tree import Tree


@value(kw_only=True)
class ServicesAnswer:
    """The answer of ``services``: the Services, all of the dump's or the selected ones.

    Attributes:
        every: whether to show each endpoint of a Service with many.
        specs: what the API says of ServicePorts, by name, protocol and IP version.
        findings: how many invariants ``--check`` found broken; None without it.
        others: dumps of the other IP version, whose Services are there too.
        freshness: of when the rules and the objects are.
    """

    ruleset: Rules
    cluster: Cluster
    view: View
    services: tuple[ServicePort, ...]
    diagnostics: tuple[Diagnostic, ...]
    every: bool = False
    specs: Mapping[ServicePortKey, ApiServicePort] = MappingProxyType({})
    findings: int | None = None
    others: tuple[Rules, ...] = ()
    freshness: Freshness = UNKNOWN

    @property
    def rules(self) -> int:
        """How many rules the dumps hold."""
        return self.ruleset.rules + sum(each.rules for each in self.others)


@value(kw_only=True)
class TreeAnswer:
    """The answer of ``tree``: the tree of each selected route.

    Attributes:
        every: whether to show each of many branches.
    """

    cluster: Cluster
    view: View
    dead: Dead
    trees: tuple[tuple[ServicePort, Route, Tree], ...]
    diagnostics: tuple[Diagnostic, ...]
    every: bool = False


@value(kw_only=True)
class LossAnswer:
    """The answer of ``loss``: what each ServicePort loses.

    Attributes:
        absent: ServicePorts of the objects that the dump does not show, of those asked for.
        in_order: whether to sort by loss.
        every: whether to show all that is hit, each with all endpoints.
        brief: whether to show a line for each ServicePort, hit or not.
        narrowed: whether only some ServicePorts were selected, which are then shown in full.
        only_dead: whether flows count as lost only if they reach dead endpoints.
        rulesets: the dumps that were read.
        typed: arguments of the program that run the same on standard input.
        is_of_bundle: whether the dump is from a bundle.
        repairs: the commands that print how to remove the dead; none if it is not known.
        unrepairable: why `repair` refuses these rules; or empty.
        saved: the file that `repair` reads, where standard input has to be saved first; or empty.
        quiet: whether to leave out what to do next.
        place: the node, if dumps of several nodes are judged.
        threshold: the limit on losses, and what exceeds it; None without one.
    """

    cluster: Cluster
    view: View
    dead: Dead
    losses: tuple[ServiceLoss, ...]
    diagnostics: tuple[Diagnostic, ...]
    absent: Absent
    in_order: bool = False
    freshness: Freshness = UNKNOWN
    every: bool = False
    brief: bool = False
    narrowed: bool = False
    only_dead: bool = False
    rulesets: tuple[Rules, ...] = ()
    typed: str = ""
    is_of_bundle: bool = False
    repairs: Sequence[str] = ()
    unrepairable: str = ""
    saved: str = ""
    quiet: bool = False
    place: str = ""
    threshold: Threshold | None = None

    @property
    def not_judged(self) -> tuple[str, ...]:
        """Names of ServicePorts whose loss is not known, or only in part."""
        from analyzer.reports.not_judged import not_judged

        return not_judged(self.view, self.absent)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is known to be left out."""
        return not self.not_judged and not self.is_cut

    @property
    def is_cut(self) -> bool:
        """Whether rules that matter are not in the dump."""
        return bool(self.view.cut) or bool(self.view.untold and not self.only_dead)


@value(kw_only=True)
class LossNode:
    """One of several nodes, with the losses by its dumps.

    Attributes:
        name: unique among the nodes: its own name, or that of a file.
        node: its own name, if known.
        is_dead: whether it is among the dead, so that no flows of it count.
        answer: None where none of its Services can be judged; `why` is the reason.
    """

    name: str
    node: str | None
    files: tuple[str, ...]
    is_dead: bool
    answer: LossAnswer | None
    why: str | None = None


@value(kw_only=True)
class LossNodesAnswer:
    """The answer of ``loss`` for several dumps: what each ServicePort loses on each node.

    Attributes:
        worst: what each loses at worst, at the nodes that are judged.
        in_order, every, brief, narrowed, quiet, threshold: as of `LossAnswer`.
    """

    nodes: tuple[LossNode, ...]
    worst: tuple[WorstLoss, ...]
    dead: Dead
    cluster: Cluster
    diagnostics: tuple[Diagnostic, ...]
    in_order: bool = False
    every: bool = False
    brief: bool = False
    narrowed: bool = False
    quiet: bool = False
    threshold: Threshold | None = None

    @property
    def answers(self) -> Mapping[str, LossAnswer]:
        """What is lost at each of the nodes that are judged: the living, as far as it is known."""
        return {e.name: e.answer for e in self.nodes if e.answer is not None and not e.is_dead}

    @property
    def unjudged(self) -> tuple[LossNode, ...]:
        """Living nodes without an answer."""
        return tuple(each for each in self.nodes if each.answer is None and not each.is_dead)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is known to be left out, at any node."""
        return (
            not self.unjudged
            and all(each.is_whole for each in self.answers.values())
            and not any(each.missing for each in self.worst)
        )


@value(kw_only=True)
class WhatIfAnswer:
    """The answer of ``whatif``: what each failure costs, and what each ServicePort survives.

    Attributes:
        absent: ServicePorts of the objects that the dump does not show, of those asked for.
        breaches: how the limits are broken, once for each kind of failure.
        max_loss: the limit on what a failure may cost a ServicePort.
        min_survives: the least number of nodes that each has to survive.
        min_survives_zones: the least number of zones.
        is_lost_beyond: whether more than the limit may be lost with nothing dead.
        lost_now: the ServicePorts, by index, of which all new flows on some route are lost with
            nothing dead, or may be.
        prediction: from what every node's rules were predicted, or whose were read; None: one
            node's were read.
        every_node: the ServicePorts at every node, if all nodes are judged.
        topology: which nodes carry the control plane; None: not known.
        api_processes: what default/kubernetes loses with each API server's process alone.
        top: how many failures of one kind to show.
        every: whether to show each node, zone and ServicePort.
        by_name: whether failures and ServicePorts are sorted by name.
        freshness: of when the rules and the objects are.
    """

    cluster: Cluster
    view: View
    found: WhatIf
    absent: Absent
    diagnostics: tuple[Diagnostic, ...]
    breaches: tuple[Breach, ...] = ()
    max_loss: Fraction | None = None
    min_survives: int | None = None
    min_survives_zones: int | None = None
    is_lost_beyond: bool = False
    lost_now: Mapping[int, Ternary] = MappingProxyType({})
    prediction: Prediction | FromDumps | None = None
    every_node: tuple[EveryNode, ...] = ()
    topology: ControlPlaneTopology | None = None
    api_processes: tuple[ApiProcess, ...] = ()
    top: int = 3
    every: bool = False
    by_name: bool = False
    freshness: Freshness = UNKNOWN

    @property
    def not_judged(self) -> tuple[str, ...]:
        """Names of ServicePorts that are not judged, or not in whole."""
        from analyzer.reports.not_judged import not_judged

        return not_judged(self.view, self.absent)

    @property
    def is_whole(self) -> bool:
        """Whether nothing selected is known to be left out."""
        is_read = self.prediction is None or self.prediction.is_whole
        return is_read and not (
            self.not_judged or self.view.lacks_some or self.found.is_interrupted
        )

    def control_plane_after(self, failure: Failure) -> ControlPlaneState | None:
        """Return what a failure leaves of the control plane; None if not known."""
        from analyzer.failure.whatif import FailureKind
        from analyzer.outage.control_plane import control_plane_after

        if self.topology is None:
            return None
        if failure.kind is not FailureKind.ZONE:
            return control_plane_after(self.topology, failure.names)
        zones = {name: self.cluster.zone_of(name) for name in self.topology.nodes}
        return control_plane_after(
            self.topology, [n for n, zone in zones.items() if zone in failure.names]
        )

    @property
    def is_broken(self) -> bool:
        """Whether a limit is broken, or not known to be kept."""
        is_lost = self.is_lost_beyond or (self.limits_survival and bool(self.lost_now))
        return self.is_limited and (bool(self.breaches) or is_lost or not self.is_whole)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.max_loss is not None or self.limits_survival

    @property
    def limits_survival(self) -> bool:
        """Whether there is a limit on what each ServicePort survives."""
        return self.min_survives is not None or self.min_survives_zones is not None


@value(kw_only=True)
class TimelineAnswer:
    """The answer of ``timeline``: what each ServicePort loses over time.

    Attributes:
        services: those of `played`, with the flows that reach no endpoint today.
        absent: ServicePorts of the objects that the dump does not show, of those asked for.
        until: seconds; where it ends.
        rate: new flows a second to each ServicePort; None: shares only.
        slo: the share of flows that has to succeed in `slo_window` seconds.
        every: whether to show each ServicePort, and the sources of durations.
    """

    cluster: Cluster
    view: View
    scenario: Scenario
    played: tuple[Played, ...]
    services: Sequence[ServicePort]
    absent: Absent
    diagnostics: tuple[Diagnostic, ...]
    until: Fraction
    rate: Fraction | None
    slo: Fraction | None
    slo_window: Fraction
    every: bool = False

    @property
    def not_judged(self) -> tuple[str, ...]:
        """Names of ServicePorts that are not judged, or only in part."""
        from analyzer.reports.not_judged import not_judged

        return not_judged(self.view, self.absent)

    @property
    def budget(self) -> Fraction | None:
        """Seconds of all flows that the SLO leaves to lose; None without one."""
        return None if self.slo is None else (1 - self.slo) * self.slo_window


@value(kw_only=True)
class TraceAnswer:
    """The answer of ``trace``: all paths of one packet.

    Attributes:
        assumptions: what they rest on besides the dump.
        every: whether all branches are wanted, however many.
        dead: what is dead, where that was said.
    """

    cluster: Cluster
    node: str | None
    packet: Packet
    state: str
    tree: Tree
    ends: tuple[PacketEnd, ...]
    assumptions: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    every: bool = False
    dead: Dead | None = None

    def is_dead(self, fate: Fate) -> bool | None:
        """Return whether a flow ends at a dead endpoint; None if not known."""
        ends = {(each.address, each.port) for each in self.dead.endpoints} if self.dead else set()
        perhaps = {(e.address, e.port) for e in self.dead.uncertain} if self.dead else set()
        place = fate.address, fate.port
        if fate.kind == "endpoint" and place in perhaps - ends:
            return None
        return fate.kind == "endpoint" and place in ends
