"""What a repair of rules must do, by the analyzer's own reading of rules that hold it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from fractions import Fraction

from analyzer.failure.loss import losses
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import RouteLoss
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import Endpoint, Source, View
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.repair.applied import applied
from analyzer.repair.iptables import patch_of
from analyzer.repair.witness import RepairedOutcome, repaired
from analyzer.reports.repair_answer import RepairAnswer

#: Of draws of 31 bits, one behind the other, and of kube-proxy's ten digits.
_NEAR = Fraction(1, 2**28)


def dead_of(endpoints: Collection[Endpoint]) -> Dead:
    return Dead(endpoints=frozenset(endpoints), named=tuple(map(str, endpoints)))


def held(before: View, after: View, endpoints: Collection[Endpoint]) -> Counter[RepairedOutcome]:
    """Assert the promises of a repair, and count what became of the routes to dead endpoints.

    Routes that lose nothing to the dead are the same: `repaired` raises otherwise.
    """
    dead = dead_of(endpoints)
    fates: Counter[RepairedOutcome] = Counter()
    then = {
        (s.service.name.text, s.service.protocol, s.service.version): s
        for s in losses(after.services, dead)
    }
    for each in repaired(losses(before.services, dead), then.values(), "dump"):
        service = each.before.service
        routes = {
            (r.route.frontend, r.route.source, network): r
            for r in then[service.name.text, service.protocol, service.version].routes
            for network in r.route.networks or (None,)
        }
        for was, fate in each.routes:
            fates[fate] += 1
            now = routes.get((was.route.frontend, was.route.source, was.route.network))
            if (
                fate is RepairedOutcome.COVERED
                and now is not None
                and was.route.source is not Source.HAIRPIN
            ):
                _spread_evenly(was, now, dead)
            elif fate is RepairedOutcome.REFUSED and now is not None:
                assert not now.on_dead.upper
            elif (
                fate is RepairedOutcome.LEFT
            ):  # what it asks for the dump does not tell: nothing is certain
                assert not was.on_dead.lower
    return fates


def repair_answer(ruleset: Ruleset, view: View, dead: Dead) -> RepairAnswer:
    """Return the answer of `repair`."""
    patch = patch_of(ruleset, dead.endpoints)
    then = Recogniser(applied(ruleset, patch.apply), Cluster()).view() if patch.apply else view
    before, after = losses(view.services, dead), losses(then.services, dead)
    return RepairAnswer(
        file=ruleset.file,
        view=view,
        dead=dead,
        prints="patch",
        patches=(patch,),
        services=tuple(repaired(before, after, ruleset.file)),
        pinned=("conntrack -D -p tcp --reply-src 10.0.0.1 --reply-port-src 80",),
        alone=("default/kubernetes:https",),
        unplaced=1,
        undo="kubeodds repair dump.txt --dead 10.0.0.1 --print undo",
        diagnostics=view.diagnostics,
    )


def _spread_evenly(was: RouteLoss, now: RouteLoss, dead: Dead) -> None:
    """Assert that the living of a route have all of its flows, in equal shares."""
    living = {e for e in was.route.draws()[0] if e not in dead.endpoints}
    endpoints, shares = now.route.draws()
    assert set(endpoints) == living
    if not was.route.is_exact or not now.route.is_exact:
        return
    whole = sum((share.lower.as_fraction() for share in was.route.draws()[1]), Fraction())
    for share in shares:
        assert abs(share.lower.as_fraction() - whole / len(living)) < _NEAR
    masquerade = dict(zip(*_masquerades(was), strict=True))
    for endpoint, found in zip(*_masquerades(now), strict=True):
        assert masquerade[endpoint] == found


def _masquerades(loss: RouteLoss) -> tuple[list[Endpoint], list[bool | None]]:
    return [*loss.route.draws()[0]], [*loss.route.masquerades()]
