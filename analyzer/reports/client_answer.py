"""What ``client`` answers."""

from __future__ import annotations

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

    from analyzer.clients.callers import Callers
    from analyzer.clients.operations import PredictedOperation
    from analyzer.failure.models import Dead
    from analyzer.kubeproxy.absent import Absent
    from analyzer.kubeproxy.view import Source, View
    from analyzer.model.addresses import Address, Network
    from analyzer.model.cluster import Cluster
    from analyzer.model.diagnostics import Diagnostic


@value(kw_only=True)
class ClientAnswer:
    """The answer of ``client``: the outcomes of client operations.

    Attributes:
        fates: what the dead were declared to do, by name.
        client: the address of the client; None: any that the rules do not single out.
        singled_out: ServicePorts, each with the networks whose clients have another result.
        balanced: the nodes among which a balancer draws, with the chance of each; empty without it.
        assumed: what it assumes besides the dump.
        absent: ServicePorts of the objects that the dump does not show, of those asked for.
        max_failure: the limit on the chance to fail.
        is_open: whether a Service that is not judged may lose more than the one that was chosen, or
            is one of those that were named.
        is_named: whether Services were named.
        every: whether to show each way in which an operation may end.
    """

    view: View
    cluster: Cluster
    dead: Dead
    fates: tuple[tuple[str, str], ...]
    source: Source
    balanced: tuple[tuple[str, Fraction], ...]
    found: tuple[PredictedOperation, ...]
    callers: Callers | None
    assumed: tuple[str, ...]
    absent: Absent
    diagnostics: tuple[Diagnostic, ...]
    max_failure: Fraction | None = None
    is_open: bool = False
    is_named: bool = False
    every: bool = False
    client: Address | None = None
    singled_out: tuple[tuple[str, tuple[Network, ...]], ...] = ()

    @property
    def not_judged(self) -> tuple[str, ...]:
        """Names of ServicePorts that are not judged, or only in part."""
        from analyzer.reports.not_judged import not_judged

        return not_judged(self.view, self.absent)

    @property
    def is_broken(self) -> bool:
        """Whether some operation may fail more often than the limit."""
        fails, most = [each.outcome.fails[1] for each in self.found], self.max_failure
        is_open = self.is_open or bool(self.singled_out or self.view.untold)
        return most is not None and (is_open or max(fails) > most)
