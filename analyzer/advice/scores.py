"""What node failures cost one Service, as `what_if` reports for its ServicePorts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from analyzer.failure.incidence import ONE, rank
from analyzer.failure.reaching import reaching_at_every_node
from analyzer.failure.vantages import MeanLoss, mean_over_nodes, worst_at
from analyzer.failure.whatif import FailureKind, WhatIf, WhatIfOptions, what_if
from analyzer.kubeproxy.predict.every_node import EveryNode
from analyzer.model.cluster import Cluster
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.value import replace, value

#: Names of nodes that fail together.
FailedNodes = tuple[str, ...]
_NOTHING = Bounds(NEVER, NEVER)


@value(kw_only=True)
class CostliestFailure:
    """The costliest failure: the nodes that fail, the node it is seen from, and the loss.

    Attributes:
        at: names of the nodes where so much is lost; none: wherever a node lives.
    """

    nodes: tuple[str, ...] = ()
    loss: Bounds = _NOTHING
    at: tuple[str, ...] = ()


@value(kw_only=True)
class Score:
    """The losses of a Service: of its worst ServicePort in each respect.

    Attributes:
        survives: it certainly survives the loss of this many nodes, whichever; None if the nodes
            of its endpoints are not known, or it has none.
        at_most: it certainly does not survive one more, if it is the wrong one; None if not known.
        worst: of the failures that are judged.
        mean: over these failures, and over the living nodes of each, of the loss on the worst
            route there, at least and at most; in the unit of `failure.incidence`, rounded down.
        dropped: nodes that drop its flows whatever fails, since they have no endpoint themselves.
        nodes: how many nodes there are.
    """

    survives: int | None
    at_most: int | None
    worst: CostliestFailure
    mean: tuple[int, int]
    dropped: int
    nodes: int

    @property
    def mean_loss(self) -> Bounds:
        """The mean loss, rounded as it is compared."""
        return Bounds(_share(self.mean[0]), _share(self.mean[1]))

    def key(self) -> tuple[int, ...]:
        """Return the sort key of scores, best first.

        A Service that drops flows while nothing has failed comes last. For ranges the worse end
        counts, and the better one only if everything else is equal.
        """
        survives = -1 if self.survives is None else self.survives
        worst = self.worst.loss
        return (
            self.dropped,
            -survives,
            _exactly(worst.upper),
            rank(self.mean[1]),
            _exactly(worst.lower),
            rank(self.mean[0]),
        )


def _exactly(share: Dyadic) -> int:
    shift = ONE.bit_length() - 1 - share.exponent
    whole = share.numerator << shift if shift >= 0 else share.numerator >> -shift
    return rank(whole)


def _share(number: int) -> Dyadic:
    most = rank(ONE)
    return Dyadic.of(min(rank(number), most), most.bit_length() - 1)


def found_of(services: Sequence[EveryNode], cluster: Cluster) -> WhatIf:
    """Return which share of each ServicePort's flows nodes carry, for every node.

    Raises:
        UsageError: nothing says where any endpoint is.
    """
    asked = WhatIfOptions(kinds=frozenset({FailureKind.NODE}), depth=1)
    every = tuple(map(reaching_at_every_node, services))
    return what_if([each.service for each in every], cluster, asked, None, every)


def score(
    services: Sequence[EveryNode], cluster: Cluster, failures: Iterable[FailedNodes]
) -> Score | None:
    """Return what failures cost the ServicePorts of one Service.

    None: it has no endpoints, or nothing says where they are.
    """
    ends = (end for each in services for end in each.together.endpoints)
    if not any(cluster.placement(each.address).node for each in ends):
        return None
    found = found_of(services, cluster)
    known = {name: at for at, name in enumerate(found.nodes.groups)}
    groups = [tuple(known[n] for n in names if n in known) for names in failures]
    scores = [
        replace(
            _of_port(found, at, groups),
            dropped=dropping(each),
            nodes=sum(len(where.nodes) for where in each.at),
        )
        for at, each in enumerate(services)
    ]
    judged = [each for each in scores if each.survives is not None]
    return worst_of(judged) if judged else None


def dropping(service: EveryNode) -> int:
    """Return how many nodes drop flows to a ServicePort that has endpoints elsewhere."""
    if not any(len(route.shares) for at in service.at for route in at.service.routes):
        return 0
    return sum(
        len(at.nodes) for at in service.at if any(how == "drop" for _, how in at.service.refusals)
    )


def _of_port(found: WhatIf, at: int, failures: Sequence[tuple[int, ...]]) -> Score:
    survival = found.survival(at)
    worst = _worst(found, at, failures)
    lower = upper = 0
    for groups in failures:
        mean = mean_over_nodes(found, at, groups)
        if not mean.nodes:
            mean = MeanLoss(ONE, ONE, 0)
        lower, upper = lower + mean.lower, upper + mean.upper
    number = max(1, len(failures))
    return Score(
        survives=None if survival is None else survival.survives,
        at_most=None if survival is None else survival.at_most,
        worst=worst,
        mean=(lower // number, upper // number),
        dropped=0,
        nodes=0,
    )


def _worst(found: WhatIf, at: int, failures: Sequence[tuple[int, ...]]) -> CostliestFailure:
    rows = found.nodes.services[at]
    every = next((each for each in failures if _takes_all(found, each)), None)
    if every is not None:
        names = tuple(found.nodes.groups[each] for each in every)
        return CostliestFailure(nodes=names, loss=Bounds(ALWAYS, ALWAYS))
    lost = [(row.most(groups), row, groups) for groups in failures for row in rows]
    most, of, which = max(lost, key=lambda each: each[0], default=(0, None, ()))
    if of is None or not most:
        return CostliestFailure()
    names = tuple(found.nodes.groups[each] for each in which)
    where = () if of.at is None else worst_at(found, of, names)
    return CostliestFailure(nodes=names, loss=of.loss(which), at=where)


def _takes_all(found: WhatIf, groups: Sequence[int]) -> bool:
    """Return whether no node is left to ask, which is a total loss whatever the policies are."""
    return {found.nodes.groups[each] for each in groups}.issuperset(found.vantages)


def worst_of(scores: Sequence[Score]) -> Score:
    """Return the worst of several scores, separately in each respect."""
    weakest = min(scores, key=lambda each: (each.survives or 0, each.at_most or 0))
    return Score(
        survives=weakest.survives,
        at_most=weakest.at_most,
        worst=max((each.worst for each in scores), key=_loss),
        mean=max((each.mean for each in scores), key=lambda mean: (mean[1], mean[0])),
        dropped=max(each.dropped for each in scores),
        nodes=max(each.nodes for each in scores),
    )


def either_of(scores: Sequence[Score]) -> Score:
    """Return bounds that hold for each of several scores, if it is not known which applies."""
    losses = [each.worst.loss for each in scores]
    lower = min(losses, key=lambda each: _exactly(each.lower)).lower
    worst = max((each.worst for each in scores), key=_loss)
    survive = [each.survives for each in scores if each.survives is not None]
    most = [each.at_most for each in scores]
    return Score(
        survives=min(survive, default=None),
        at_most=None if None in most else max(each for each in most if each is not None),
        worst=replace(worst, loss=Bounds(lower, worst.loss.upper)),
        mean=(min(each.mean[0] for each in scores), max(each.mean[1] for each in scores)),
        dropped=max(each.dropped for each in scores),
        nodes=max(each.nodes for each in scores),
    )


def _loss(worst: CostliestFailure) -> tuple[int, int]:
    return _exactly(worst.loss.upper), _exactly(worst.loss.lower)


def of_service(
    services: Iterable[EveryNode], key: tuple[str, str], ports: Collection[object] | None = None
) -> Iterator[EveryNode]:
    """Yield the ServicePorts of one Service, all or only these ports (`port_of`)."""
    for each in services:
        name = each.service.name
        if (name.namespace, name.service) == key and (ports is None or port_of(each) in ports):
            yield each


def port_of(service: EveryNode) -> object:
    """Return what distinguishes a ServicePort from others of its Service, apart from its name."""
    return service.service.name.port, service.service.protocol
