"""The answer of ``loss`` on every node of a cluster, with everything its reports need."""

from __future__ import annotations

from analyzer.cluster.from_dumps import FromDumps
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.failure.limits import Threshold
    from analyzer.failure.loss_at_every_node import LossAtEveryNode
    from analyzer.failure.models import Dead
    from analyzer.kubeproxy.absent import Absent
    from analyzer.kubeproxy.predict.cluster import Prediction
    from analyzer.kubeproxy.predict.every_node import EveryNode
    from analyzer.kubeproxy.view import View
    from analyzer.model.cluster import Cluster
    from analyzer.model.diagnostics import Diagnostic


@value(kw_only=True)
class LossClusterAnswer:
    """The answer of ``loss`` for every node, predicted from objects or read from dumps.

    Attributes:
        losses: of the ServicePorts that a living node has in its rules, in the order of the report.
        every_node: the ServicePorts themselves.
        alive: names of the live nodes, or of all if none lives; `gone`: of the dead ones.
        in_order, every, brief, narrowed, only_dead, threshold: as of `LossAnswer`.
        if_alive: the same with what is not judged at the nodes that are dead; None: there are none.
    """

    cluster: Cluster
    view: View
    dead: Dead
    losses: tuple[LossAtEveryNode, ...]
    every_node: tuple[EveryNode, ...]
    prediction: Prediction | FromDumps
    absent: Absent
    alive: tuple[str, ...]
    gone: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    in_order: bool = False
    every: bool = False
    brief: bool = False
    narrowed: bool = False
    only_dead: bool = False
    threshold: Threshold | None = None
    if_alive: LossClusterAnswer | None = None

    @property
    def not_judged(self) -> tuple[str, ...]:
        """Names of ServicePorts that are not evaluated, or not in full."""
        from analyzer.reports.not_judged import not_judged

        return not_judged(self.view, self.absent)

    @property
    def is_whole(self) -> bool:
        """Whether the answer is known to be complete."""
        is_cut = self.view.cut or (self.view.untold and not self.only_dead)
        return not self.not_judged and not is_cut and self.knows_every_node

    @property
    def are_all_dead(self) -> bool:
        """Whether every node whose rules are known is dead: what they would do is shown."""
        return all(self.dead.takes(name, self.cluster) for name in self.alive)

    @property
    def knows_every_node(self) -> bool:
        """Whether each node's rules are known, or predicted."""
        return self.prediction.is_whole
