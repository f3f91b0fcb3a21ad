"""``repair``: the change that takes dead endpoints out of a node's rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from analyzer.api_objects import ApiObjects
from analyzer.dumps import has_services
from analyzer.errors import InputError, UsageError
from analyzer.failure.loss import Count, ServiceLoss, State, losses
from analyzer.inputs import Input, input_of, read_input
from analyzer.judging import dead_of, freshness, judged, warnings_of_dead
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.rules import Ruleset
from analyzer.output import finish
from analyzer.repair.patch import Patch
from analyzer.repair.witness import Fate, repaired
from analyzer.reports.freshness import Freshness, long
from analyzer.reports.repair_answer import RepairAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.kubeproxy.view import Endpoint, ServicePort
    from analyzer.semantics.base_chains import Rules

_IPV4: Final = 4
_API: Final = "default/kubernetes:"
#: Of what iptables or nft prints whole; a listing may leave out what rules ask for.
_LISTING: Final = "iptables-list"


def repair(options: SimpleNamespace) -> int:
    """Print the change, and return the exit status."""
    objects = ApiObjects(options)
    given = _of_family(options, read_input(options, objects))
    for part in given.parts or (given,):
        _check(part.ruleset)
    _, services = judged(options, given)
    died = dead_of(options, given)
    if not died.is_anything:
        raise UsageError("repair: nothing is marked dead; add --dead-node, --dead-zone or --dead")
    before = losses(services, died, Count.DEAD)
    alone = () if options.service else tuple(_api(before))
    wanted = frozenset(end for each in before if each not in alone for end in each.dead)
    patches, rulesets = made(given, wanted)
    after = input_of(options, rulesets, _others(given), objects, None)
    wide = losses(given.view.services, died, Count.ALL)
    then = losses(after.view.services, died, Count.ALL)
    asked = {_key(each.service) for each in before if each not in alone}
    found = tuple(
        each
        for each in repaired(wide, then, given.ruleset.file)
        if _key(each.before.service) in asked
    )
    told = freshness(options, given)
    diagnostics = (
        *given.view.diagnostics,
        *warnings_of_dead(options, given, died),
        *_old(told, options.max_age, given.ruleset.file),
    )
    answer = RepairAnswer(
        file=given.ruleset.file,
        view=given.view,
        dead=died,
        prints=options.prints,
        patches=patches,
        services=found,
        pinned=tuple(_pinned(before, alone)),
        alone=tuple(dict.fromkeys(each.service.name.text for each in alone)),
        unplaced=len(died.uncertain),
        diagnostics=diagnostics,
        freshness=told,
    )
    left = any(each.fate is Fate.LEFT for each in found) or answer.problems or died.uncertain
    return finish(options, options.verb, answer, diagnostics, no=bool(left))


def _key(service: ServicePort) -> tuple[str, str, int | None]:
    return service.name.text, service.protocol, service.version


def _api(before: Sequence[ServiceLoss]) -> Iterator[ServiceLoss]:
    """Give the API's own Service where nobody is left of it.

    Its servers come back at the same addresses, and must not be refused by then.
    """
    for each in before:
        is_api = f"{each.service.name.text}:".startswith(_API)
        if is_api and each.state is State.SILENCED:
            yield each


def made(given: Input, dead: frozenset[Endpoint]) -> tuple[tuple[Patch, ...], list[Rules]]:
    """Return the changes, and the rules of each dump with them."""
    patches: list[Patch] = []
    rulesets: list[Rules] = []
    for part in given.parts or (given,):
        ruleset = part.ruleset
        if isinstance(ruleset, Ruleset):
            from analyzer.repair.applied import applied
            from analyzer.repair.iptables import patch_of

            patch = patch_of(ruleset, dead)
            patches.append(patch)
            rulesets.append(applied(ruleset, patch.apply) if patch.apply else ruleset)
        else:
            from analyzer.repair.nft import repaired_tables, with_table

            own, found = repaired_tables(ruleset, dead)
            patches += found
            rulesets.append(with_table(ruleset, own))
    return tuple(patches), rulesets


def _of_family(options: SimpleNamespace, given: Input) -> Input:
    """Return the part of one IP version, where dumps of both are given.

    Raises:
        UsageError: text would be of both, which no program reads.
    """
    parts = given.parts or (given,)
    if options.family is not None:
        own = [
            each
            for each in parts
            if not isinstance(each.ruleset, Ruleset) or each.ruleset.family == options.family
        ]
        if not own:
            raise UsageError(f"--family {options.family}: no dump is of that IP version")
        return own[0]
    if len(parts) > 1 and options.format == "text" and options.prints != "conntrack":
        raise UsageError(
            "dumps of both IP versions: ask for one after the other, --family ip and --family ip6, "
            "or for --format json"
        )
    return given


def _check(ruleset: Rules) -> None:
    """Refuse rules of which a change could not be made.

    Raises:
        InputError: the message says what to give instead.
    """
    if isinstance(ruleset, Ruleset):
        from analyzer.repair.applied import has_repair

        repaired_already = has_repair(ruleset)
        if ruleset.input_format == _LISTING:
            raise InputError(
                f"{ruleset.file}: a listing leaves out part of what rules ask for, so that no "
                "change is made of it; take iptables-save"
            )
    else:
        from analyzer.repair.nft import has_repair as has_table

        repaired_already = has_table(ruleset)
        if not has_services(ruleset):
            raise InputError(
                f"{ruleset.file}: nft prints rules of iptables-nft only in part; take "
                "iptables-nft-save"
            )
    if repaired_already:
        raise InputError(
            f"{ruleset.file}: there is a repair among these rules; undo it, and take the dump anew"
        )


def _others(given: Input) -> Sequence[Rules]:
    own = {id(part.ruleset) for part in given.parts or (given,)}
    return [each for each in given.every_ruleset if id(each) not in own]


def _pinned(before: Sequence[ServiceLoss], alone: Sequence[ServiceLoss]) -> Iterator[str]:
    """Give the commands that free flows at dead endpoints, UDP first: those never end by timeout.

    Source: conntrack(8).
    """
    found = {
        (each.service.protocol != "udp", each.service.protocol, end)
        for each in before
        if each not in alone
        for end in each.dead
    }
    for _, protocol, end in sorted(found, key=str):
        family = "" if end.address.version == _IPV4 else "-f ipv6 "
        port = "" if end.port is None else f" --reply-port-src {end.port}"
        yield f"conntrack -D {family}-p {protocol} --reply-src {end.address}{port}"


def _old(told: Freshness, most: int, file: str) -> Iterator[Diagnostic]:
    """Warn of rules that may be others by now."""
    if told.rules is None:
        return
    age = (datetime.now(UTC) - told.rules).total_seconds()
    if age > 60 * most:
        yield Diagnostic(
            severity=Severity.WARNING,
            code="old-dump",
            message=f"these rules are {long(age)} old, by this machine's clock and if the node's "
            "is in UTC: endpoints may be others by now; take the dump anew before a change is "
            "applied",
            file=file,
        )
