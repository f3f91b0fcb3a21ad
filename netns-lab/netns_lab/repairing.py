"""A repair tested on the kernel: applied to the rules while flows continue.

Theory of operation
===================

The lab has the rules of the dump, and the dead are silent. First each route to them is measured, to
confirm the loss. Then flows are sent that conntrack keeps. The repair is applied and undone, which
must restore the rules byte for byte; applied again; and applied a third time, which must be refused
and change nothing. The loaded rules must then be those the prediction was made from. Flows that
conntrack keeps must continue to their endpoints; those to dead endpoints are freed with the
commands that `repair` prints, and must then reach living ones. Each route is measured again, and
again after kube-proxy's rules have been rewritten on top of the repair.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from analyzer.failure.agreement import judge_all
from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.measurement import Measurement
from analyzer.questions.repairing import Made
from analyzer.repair.chains import Graph
from analyzer.reports.lab_answers import RepairCheck, RepairedRoute
from netns_lab.columns import RawSocketAddress, raw_sockaddrs
from netns_lab.command import run
from netns_lab.errors import LabError
from netns_lab.established import Established
from netns_lab.experiment import Lab
from netns_lab.in_turn import in_turn
from netns_lab.measure import Progress

#: Flows of each route that conntrack keeps meanwhile.
_KEPT: Final = 200

_Place = tuple[ServicePort, Route]


class Proof:
    """One repair, tested in one lab."""

    def __init__(self, lab: Lab, given: Input, made: Made, flows: int) -> None:
        self._lab = lab
        self._given = given
        self._made = made
        self._flows = flows
        self.checks: list[RepairCheck] = []
        self._dead = raw_sockaddrs(lab.question.dead.endpoints)

    def run(
        self, places: Sequence[tuple[_Place, _Place]], progress: Progress
    ) -> Iterator[RepairedRoute]:
        """Yield the measurements of each route; `places` has each route before and after.

        Raises:
            LabError: the kernel does not accept the repair, or holds other rules than it should.
        """
        rounds = [self._measured([old for old, _ in places], progress)]
        # Where the repair leaves the dead in, as with hostPorts, a flow that is freed may return.
        mended = [old for old, (_, new) in places if not self._draws_the_dead(new)]
        if len(mended) < len(places):
            says = f"dead endpoints are left out of every route: {len(mended):,} of {len(places):,}"
            self._check(says, holds=False)
        kept = self._begun(mended)
        self._apply()
        self._go_on(kept)
        rounds.append(self._measured([new for _, new in places], progress))
        self._sync()
        rounds.append(self._measured([new for _, new in places], progress))
        self._take_back()
        verdicts = iter(judge_all([m for each in rounds for some in each for m in some]))
        before, after, synced = ([next(verdicts) for some in e for _ in some] for e in rounds)
        for a, b, c in zip(before, after, synced, strict=True):
            yield RepairedRoute(before=a, after=b, synced=c)

    def _check(self, says: str, holds: bool) -> None:
        self.checks.append(RepairCheck(says, holds))

    def _measured(self, places: Sequence[_Place], progress: Progress) -> list[list[Measurement]]:
        found = in_turn(self._lab, [(*each, self._flows) for each in places], progress)
        for why_not in (each.why_not for each in found if each.why_not is not None):
            raise LabError(why_not)
        return [each.measurements for each in found]

    # --- rules ---------------------------------------------------------------------

    def _apply(self) -> None:
        backend = self._lab.backend
        self._untouched = backend.saved()
        self._change()
        self._undo()
        same = backend.saved() == self._untouched
        self._check("the undo leaves the rules byte for byte as they were", same)
        self._change()
        applied = backend.saved()
        again = [backend.change(each.apply) for each in self._made.patches if each.apply]
        refused = not any(again) and backend.saved() == applied
        self._check("applying it twice fails and changes nothing", refused)
        backend.adopt(self._made.after.ruleset)

    def _change(self) -> None:
        for patch in self._made.patches:
            if patch.apply and not self._lab.backend.change(patch.apply):
                raise LabError(f"the kernel does not accept the change of {patch.family}")

    def _undo(self) -> None:
        for patch in self._made.patches:
            if patch.undo and not self._lab.backend.change(patch.undo):
                raise LabError(f"the kernel does not accept the undo of {patch.family}")

    def _sync(self) -> None:
        backend = self._lab.backend
        ruleset = self._given.ruleset
        if isinstance(ruleset, Ruleset):
            gone = Graph(ruleset.tables["nat"], self._lab.question.dead.endpoints).gone
            taken = backend.resync(ruleset, gone)
            self._check("a sync that deletes the chains of dead endpoints succeeds", taken)
        taken = backend.resync(ruleset)
        self._check("a full sync of kube-proxy's rules on top succeeds", taken)
        try:
            backend.adopt(self._made.after.ruleset)
        except LabError:
            self._check("and leaves the repair as it was", False)
        else:
            self._check("and leaves the repair as it was", True)

    def _take_back(self) -> None:
        self._undo()
        self._lab.backend.adopt(self._given.ruleset)

    # --- flows that continue ----------------------------------------------------------

    def _begun(
        self, places: Sequence[_Place]
    ) -> list[tuple[Established, Mapping[int, RawSocketAddress]]]:
        """Send flows that conntrack keeps, and return where they arrived."""
        self._lab.forget_flows()
        runs = [
            Established(self._lab, service, route, _KEPT, None)
            for service, route in places
            if service.affinity is None and _is_kept(service, route)
        ]
        return [(each, each.send()) for each in runs]

    def _draws_the_dead(self, route: Route) -> bool:
        dead = self._lab.question.dead.endpoints
        return any(share.upper and end in dead for end, share in zip(*route.draws(), strict=True))

    def _go_on(self, kept: Sequence[tuple[Established, Mapping[int, RawSocketAddress]]]) -> None:
        living = stayed = pinned = freed = lost = 0
        for each, first in kept:
            then = each.send()
            living += sum(sockaddr not in self._dead for sockaddr in first.values())
            stayed += sum(
                then.get(tag) == sockaddr
                for tag, sockaddr in first.items()
                if sockaddr not in self._dead
            )
            pinned += sum(
                then.get(tag) == sockaddr
                for tag, sockaddr in first.items()
                if sockaddr in self._dead
            )
        for command in self._made.pinned:
            # It fails if it finds none to delete.
            run(self._lab.topology.node, shlex.split(command), check=False)
        for each, first in kept:
            then = each.send()
            freed += sum(
                sockaddr in self._dead and then.get(tag) not in self._dead
                for tag, sockaddr in first.items()
            )
            lost += sum(
                then.get(tag) != sockaddr
                for tag, sockaddr in first.items()
                if sockaddr not in self._dead
            )
        if kept:
            says = (
                f"flows that conntrack keeps at living endpoints continue: {stayed:,} of {living:,}"
            )
            self._check(says, stayed == living and not lost)
            says = f"those at dead endpoints are free after conntrack -D: {freed:,} of {pinned:,}"
            self._check(says, freed == pinned)


def _is_kept(service: ServicePort, route: Route) -> bool:
    """Return whether conntrack keeps flows of a route until they are sent again.

    The node's own stack resets a connection that none of its programs has opened.
    """
    if route.source is Source.NODE:
        return service.protocol == "udp"
    return route.source is not Source.HAIRPIN
