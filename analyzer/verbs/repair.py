"""``repair``: the change that removes dead endpoints from a node's rules."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from analyzer.errors import InputError, UsageError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.recognised import Input, read_input
from analyzer.model.addresses import VERSIONS
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import replace
from analyzer.output import DONE, finish, show
from analyzer.questions.evaluating import dead_of, freshness, warnings_of_dead
from analyzer.questions.next_command import command, dumps_of, words_of_dead
from analyzer.questions.repairing import Made, repair_of
from analyzer.repair.leftover import undo_of
from analyzer.repair.patch import NotCopied
from analyzer.repair.witness import RepairedOutcome
from analyzer.reports.freshness import Freshness, long
from analyzer.reports.repair_answer import RepairAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace

    from analyzer.failure.models import Dead
    from analyzer.kubeproxy.view import Endpoint


def repair(options: SimpleNamespace) -> int:
    """Print the change, and return the exit status."""
    objects = ApiObjects(options)
    whole = read_input(options, objects)
    given = _of_family(options, whole)
    if options.prints == "undo" and (undo := _undo(given)):
        show(undo, options)
        return DONE
    # What is dead may be named by its addresses of both versions.
    died = _dead_of_family(options, dead_of(options, whole))
    made = _narrowed(options, repair_of(options, given, died, objects))
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
        patches=made.patches,
        services=made.services,
        pinned=made.pinned,
        alone=tuple(dict.fromkeys(each.service.name.text for each in made.alone)),
        unplaced=len(died.uncertain),
        undo=_command_of_undo(options),
        diagnostics=diagnostics,
        freshness=told,
    )
    left = any(each.fate is RepairedOutcome.LEFT for each in made.services)
    no = left or bool(answer.problems or died.uncertain)
    return finish(options, options.verb, answer, diagnostics, no=no)


def _undo(given: Input) -> str:
    """Return the commands that undo the repair among the rules; empty if there is none.

    Raises:
        InputError: it is not known how.
    """
    try:
        return "".join(undo_of(part.ruleset) for part in given.parts or (given,))
    except NotCopied as why:
        raise InputError(f"{given.ruleset.file}: {why}") from None


def _command_of_undo(options: SimpleNamespace) -> str:
    """Return the command that prints the undo; standard input is not there to be read again."""
    dumps = dumps_of(options)
    if "-" in dumps:
        return "kubeodds repair ... --print undo"
    family = [] if options.family is None else ["--family", options.family]
    more = [*words_of_dead(options), *family, "--print", "undo"]
    return command(options, "repair", dumps, more)


def _dead_of_family(options: SimpleNamespace, died: Dead) -> Dead:
    """Return what is dead with its endpoints of the selected IP version only."""
    if options.family is None:
        return died
    version = VERSIONS[options.family]

    def own(endpoints: frozenset[Endpoint]) -> frozenset[Endpoint]:
        return frozenset(each for each in endpoints if each.address.version == version)

    return replace(
        died,
        endpoints=own(died.endpoints),
        uncertain=own(died.uncertain),
        zoneless=own(died.zoneless),
        assumed=own(died.assumed),
    )


def _narrowed(options: SimpleNamespace, made: Made) -> Made:
    """Return a repair narrowed to the selected IP version: nft dumps contain both."""
    if options.family is None:
        return made
    version = VERSIONS[options.family]
    own = (each for each in made.services if each.before.service.version == version)
    is_6 = version != VERSIONS["ip"]
    return replace(
        made,
        patches=tuple(each for each in made.patches if each.family == options.family),
        services=tuple(own),
        pinned=tuple(each for each in made.pinned if (" -f ipv6 " in each) is is_6),
    )


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
            "dumps of both IP versions: run --family ip and --family ip6 one after the other, or "
            "--format json"
        )
    return given


def _old(told: Freshness, most: int, file: str) -> Iterator[Diagnostic]:
    """Warn of rules that may be others by now."""
    if told.rules is None:
        return
    age = (datetime.now(UTC) - told.rules).total_seconds()
    if age > 60 * most:
        yield Diagnostic(
            severity=Severity.WARNING,
            code="old-dump",
            message=(
                f"these rules are {long(age)} old, by this machine's clock and if the node's is "
                "in UTC: endpoints may have changed; take the dump again before you apply a "
                "change"
            ),
            file=file,
        )
