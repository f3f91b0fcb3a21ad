"""The change that removes dead endpoints from the rules that were read, and its effect."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from analyzer.errors import InputError, UsageError
from analyzer.failure.conntrack_command import delete_command
from analyzer.failure.loss import LossState, ServiceLoss, losses
from analyzer.failure.route_loss import Count
from analyzer.inputs.recognised import Input, input_of
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import value
from analyzer.questions.evaluating import evaluated_services
from analyzer.questions.repairable import why_not
from analyzer.repair.witness import Repaired, repaired

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.failure.models import Dead
    from analyzer.inputs.api_objects import ApiObjects
    from analyzer.kubeproxy.absent import FrontendMatch
    from analyzer.kubeproxy.view import Endpoint, ServicePort
    from analyzer.repair.patch import RulesPatch
    from analyzer.semantics.base_chains import Rules

_API: Final = "default/kubernetes:"


@value(kw_only=True)
class Made:
    """A repair of one node's rules.

    Attributes:
        after: the rules with the repair, read as a dump.
        services: the selected ones that lose flows to dead endpoints, or may.
        pinned: commands that free the flows that conntrack keeps at dead endpoints, UDP first.
        alone: the API's own Service, if it has no living endpoint and was not selected.
    """

    patches: tuple[RulesPatch, ...]
    after: Input
    services: tuple[Repaired, ...]
    pinned: tuple[str, ...]
    alone: tuple[ServiceLoss, ...]


def repair_of(options: SimpleNamespace, given: Input, died: Dead, objects: ApiObjects) -> Made:
    """Return the change, evaluated on the rules that it leaves.

    Raises:
        AnalyzerError: nothing is dead, or no change is made of such rules.
    """
    for part in given.parts or (given,):
        if why := why_not(part.ruleset):
            raise InputError(f"{part.ruleset.file}: {why}")
    if not died.is_anything:
        raise UsageError("repair: nothing is marked dead; add --dead-node, --dead-zone or --dead")
    _, services = evaluated_services(options, given)
    before = losses(services, died, Count.DEAD)
    alone = () if options.service else tuple(_api(before))
    wanted = frozenset(end for each in before if each not in alone for end in each.dead)
    lost = {_key(each.service) for each in before if each not in alone}
    # Several Services may have the same endpoints, and some of these must not be changed.
    frontends: dict[bool, set[FrontendMatch]] = {True: set(), False: set()}
    for each in given.view.services:
        frontends[_key(each) in lost] |= {
            (each.protocol, f.address, f.port) for f in each.frontends
        }
    patches, rulesets = made(given, wanted, frontends[False] - frontends[True])
    after = input_of(options, rulesets, _others(given), objects, None)
    wide = losses(given.view.services, died, Count.ALL)
    then = losses(after.view.services, died, Count.ALL)
    found = repaired(wide, then, given.ruleset.file)
    return Made(
        patches=patches,
        after=after,
        services=tuple(each for each in found if _key(each.before.service) in lost),
        pinned=tuple(_pinned(before, alone)),
        alone=alone,
    )


def _key(service: ServicePort) -> tuple[str, str, int | None]:
    return service.name.text, service.protocol, service.version


def _api(before: Sequence[ServiceLoss]) -> Iterator[ServiceLoss]:
    """Yield the API's own Service if it has no living endpoint.

    Its servers come back at the same addresses, and must not be refused then.
    """
    for each in before:
        is_api = f"{each.service.name.text}:".startswith(_API)
        if is_api and each.state is LossState.SILENCED:
            yield each


def made(
    given: Input, dead: frozenset[Endpoint], spared: Collection[FrontendMatch]
) -> tuple[tuple[RulesPatch, ...], list[Rules]]:
    """Return the changes, and the rules of each dump with them.

    Flows to one of `spared` are left alone, though they may be sent to the same endpoints.
    """
    patches: list[RulesPatch] = []
    rulesets: list[Rules] = []
    for part in given.parts or (given,):
        ruleset = part.ruleset
        if isinstance(ruleset, Ruleset):
            from analyzer.repair.applied import applied
            from analyzer.repair.iptables import patch_of

            patch = patch_of(ruleset, dead, spared)
            patches.append(patch)
            rulesets.append(applied(ruleset, patch.apply) if patch.apply else ruleset)
        else:
            from analyzer.repair.nft import repaired_tables, with_table

            own, found = repaired_tables(ruleset, dead, spared)
            patches += found
            rulesets.append(with_table(ruleset, own))
    return tuple(patches), rulesets


def _others(given: Input) -> Sequence[Rules]:
    own = {id(part.ruleset) for part in given.parts or (given,)}
    return [each for each in given.every_ruleset if id(each) not in own]


def _pinned(before: Sequence[ServiceLoss], alone: Sequence[ServiceLoss]) -> Iterator[str]:
    """Yield the commands that free flows at dead endpoints, UDP first: it never times out."""
    found = {
        (each.service.protocol != "udp", each.service.protocol, end)
        for each in before
        if each not in alone
        for end in each.dead
    }
    for _, protocol, end in sorted(found, key=str):
        yield delete_command(protocol, end)
