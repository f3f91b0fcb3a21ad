"""What a failure costs ServicePorts at every node of a cluster; equal nodes are computed once.

Clients on a dead node are dead too, so its rules do not count. A ServicePort that no living node
has in its rules is not among the losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from analyzer.failure.loss import CUT_OFF, HARM, LossState, ServiceLoss, service_losses
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import Count
from analyzer.kubeproxy.predict.every_node import EveryNode
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction


@value
class LossAt:
    """What a ServicePort loses at some living nodes, the same at each."""

    loss: ServiceLoss
    nodes: frozenset[str]


@value(kw_only=True)
class LossAtEveryNode:
    """What a ServicePort loses at every living node.

    Attributes:
        at: by nodes, the greatest harm first.
    """

    at: tuple[LossAt, ...]

    @property
    def worst(self) -> ServiceLoss:
        """The loss at the nodes where it is highest."""
        return self.at[0].loss

    @property
    def worst_at(self) -> frozenset[str]:
        """The nodes with that loss."""
        worst = self.worst.state, self.worst.worst
        alike = [each.nodes for each in self.at if (each.loss.state, each.loss.worst) == worst]
        return frozenset().union(*alike)

    @property
    def is_silenced_everywhere(self) -> bool:
        """Whether it is in total loss, and no flow reaches an endpoint at any living node."""
        states = {each.loss.state for each in self.at}
        return self.worst.state is LossState.SILENCED and states <= CUT_OFF

    @property
    def nodes(self) -> int:
        """The number of living nodes."""
        return sum(len(each.nodes) for each in self.at)

    @property
    def mean(self) -> tuple[Fraction, Fraction]:
        """The mean over the living nodes of the loss on the worst route, at least and at most."""
        from fractions import Fraction

        lower, upper = Fraction(0), Fraction(0)
        for each in self.at:
            worst, share = each.loss.worst, Fraction(len(each.nodes), self.nodes)
            lower += worst.lower.as_fraction() * share
            upper += worst.upper.as_fraction() * share
        return lower, upper


def losses_at_every_node(
    services: Iterable[EveryNode],
    died: Dead,
    is_dead: Callable[[str], bool],
    count: Count = Count.ALL,
) -> tuple[LossAtEveryNode, ...]:
    """Return what each ServicePort loses at the living nodes."""
    gone = _Gone(is_dead)
    found = []
    for service in services:
        living = [
            (each.service, alive) for each in service.at if (alive := gone.living(each.nodes))
        ]
        losses = service_losses([each for each, _ in living], died, count)
        at = [LossAt(loss, nodes) for loss, (_, nodes) in zip(losses, living, strict=True)]
        if at:
            found.append(LossAtEveryNode(at=tuple(sorted(at, key=_harm))))
    return tuple(found)


def _harm(each: LossAt) -> tuple[int, float, float, str]:
    loss = each.loss
    worst = loss.worst
    return HARM[loss.state], -float(worst.upper), -float(worst.lower), min(each.nodes)


class _Gone:
    """Separates dead nodes from living ones, checking each node once."""

    def __init__(self, is_dead: Callable[[str], bool]) -> None:
        self._is_dead = is_dead
        self._known: dict[frozenset[str], frozenset[str]] = {}
        self._of: dict[str, bool] = {}

    def living(self, nodes: frozenset[str]) -> frozenset[str]:
        """Return those of these nodes that are alive."""
        found = self._known.get(nodes)
        if found is None:
            for name in nodes:
                if name not in self._of:
                    self._of[name] = self._is_dead(name)
            found = frozenset(name for name in nodes if not self._of[name])
            self._known[nodes] = found
        return found
