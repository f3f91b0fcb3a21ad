"""The command line: runs a verb and exits."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence

from analyzer.arguments.command_line import parse
from analyzer.errors import AnalyzerError, InputError, UsageError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.files import refuse_to_read_twice
from analyzer.inputs.recognised import Input, read_input
from analyzer.model.diagnostics import Diagnostic
from analyzer.output import BAD_INPUT, DONE, INTERRUPTED, complain, finish, say

TYPE_CHECKING = False
if TYPE_CHECKING:  # what one verb needs, another need not wait for
    from types import SimpleNamespace
    from typing import Final

    from analyzer.model.services import ApiServicePort, ServicePortKey


def run() -> None:
    """Run the command line and exit."""
    if sys.stdout is None or sys.stderr is None:  # closed by the caller: there is nowhere to write
        os._exit(BAD_INPUT)
    if sys.stdin is None:  # closed too: there is nothing to read
        sys.stdin = io.TextIOWrapper(io.BytesIO())
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.unraisablehook = _raise_again
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        # The reader has enough, as `head` has: end as a filter does, in silence.
        import signal

        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
        raise
    # The kernel takes back at once what Python would free piece by piece.
    os._exit(status)


def _raise_again(lost: sys.UnraisableHookArgs) -> None:
    """Raise a Ctrl-C again that came where Python ignores exceptions, as in some callbacks."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    import signal

    # A moment later: here it would be ignored, too.
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


def main(arguments: Sequence[str]) -> int:
    """Run one verb and return the exit status."""
    try:
        if arguments[:1] == ["lab"]:
            return _lab(arguments[1:])
        if arguments[:2] == ["help", "lab"]:
            return _lab([*arguments[2:], "--help"])
        options = parse(arguments)
        options.typed = arguments
        refuse_to_read_twice(options)
        if options.verb.startswith("cluster "):
            from analyzer.verbs.cluster import run_verb

            return run_verb(options)
        if options.verb not in {"anonymise", "collect", "completion", "gate", "watch"}:
            from analyzer.inputs.bundle import opened

            options = opened(options, say)
        return _VERBS[options.verb](options)
    except AnalyzerError as error:
        complain(error)
        return BAD_INPUT
    except BrokenPipeError:
        raise
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename or repr('')}: "
        say(f"kubeodds: {where}{error.strerror or error}{_hint(error, arguments)}")
        return BAD_INPUT
    except KeyboardInterrupt:
        say("kubeodds: interrupted")
        return INTERRUPTED


#: Verbs that read dumps and have ``--service``.
_OF_SERVICES: Final = frozenset(
    ("services", "loss", "whatif", "timeline", "client", "explore", "repair", "diff")
)


def _hint(error: OSError, arguments: Sequence[str]) -> str:
    """Return what to do if the name of a Service was given in the place of a dump."""
    name = error.filename
    if not isinstance(error, FileNotFoundError) or name not in arguments:
        return ""
    at = arguments.index(name)
    space, slash, rest = name.partition("/")
    is_name = slash and rest and not {"/", "."} & set(rest)
    is_there = os.path.exists(space)  # noqa: PTH110  # pathlib takes milliseconds to load
    if not is_name or arguments[at - 1].startswith("-") or is_there:
        return ""
    if arguments[0] == "tree":
        return "; a Service goes after the dump: kubeodds tree DUMP SERVICE"
    if arguments[0] in _OF_SERVICES:
        return f"; to select a Service: --service {name}"
    return ""


def _services(options: SimpleNamespace) -> int:
    from analyzer.questions.evaluating import freshness, lacking
    from analyzer.reports.answers import ServicesAnswer

    if options.from_objects:
        from analyzer.questions.predicting import predicted_input

        given = predicted_input(options, ApiObjects(options))
    else:
        given = read_input(options)
    services = given.view.services
    if options.service or options.namespace or options.sort is not None:
        from analyzer.kubeproxy.select import in_order, narrow

        services = in_order(narrow(given.view, options.service, options.namespace), options.sort)
    findings, diagnostics = None, (*given.view.diagnostics, *lacking(given))
    if options.check:
        findings, diagnostics = _check(options, given, diagnostics)
    answer = ServicesAnswer(
        ruleset=given.ruleset,
        cluster=given.cluster,
        view=given.view,
        services=services,
        diagnostics=diagnostics,
        every=options.all,
        findings=findings,
        specs=_specs(options, given),
        others=tuple(part.ruleset for part in given.parts[1:]),
        freshness=freshness(options, given),
    )
    return finish(options, options.verb, answer, answer.diagnostics, no=bool(findings))


def _specs(options: SimpleNamespace, given: Input) -> Mapping[ServicePortKey, ApiServicePort]:
    """Return the objects' ServicePorts, if the report uses them."""
    # Without EndpointSlices it would say of each that it has no endpoints.
    if options.format == "tsv" or not given.lists_endpoints:
        return {}
    return {spec.key: spec for spec in given.services()}


def _check(
    options: SimpleNamespace, given: Input, others: tuple[Diagnostic, ...]
) -> tuple[int, tuple[Diagnostic, ...]]:
    """Return how many invariants are violated, and all notes on the dump.

    `others` is what is said of it anyhow.
    """
    from analyzer.kubeproxy.check.invariants import check
    from analyzer.model.iptables.rules import Ruleset
    from analyzer.questions.evaluating import not_compared

    node = options.node if options.node in given.cluster.node_names else None
    findings = 0
    found: list[Diagnostic] = []
    for part in given.parts or (given,):
        if not isinstance(part.ruleset, Ruleset):
            raise UsageError(
                f"{part.ruleset.file}: --check has no checks for output of nft, only for that of "
                "iptables-save; kubeodds watch and kubeodds cluster drift compare nftables mode "
                "with objects"
            )
        checked = check(
            part.ruleset,
            part.view.mode,
            part.services() if given.lists_endpoints else (),
            node=node,
            zone=None if node is None else given.cluster.zone_of(node),
            routed=part.view.services,
        )
        findings += checked.findings
        found += checked.diagnostics
    # Of the same fault the check says more.
    codes = {each.code for each in found}
    kept = [each for each in others if each.code not in codes]
    return findings, (*kept, *not_compared(options, given), *found)


def _tree(options: SimpleNamespace) -> int:
    from analyzer.verbs.tree import tree

    return tree(options)


def _trace(options: SimpleNamespace) -> int:
    from analyzer.verbs.trace import trace

    return trace(options)


def _loss(options: SimpleNamespace) -> int:
    from analyzer.verbs.loss import loss

    return loss(options)


def _whatif(options: SimpleNamespace) -> int:
    from analyzer.verbs.failures import whatif

    return whatif(options)


def _timeline(options: SimpleNamespace) -> int:
    from analyzer.verbs.failures import timeline

    return timeline(options)


def _advise(options: SimpleNamespace) -> int:
    from analyzer.verbs.advise import advise

    return advise(options)


def _gate(options: SimpleNamespace) -> int:
    from analyzer.verbs.gate import gate

    return gate(options)


def _suspects(options: SimpleNamespace) -> int:
    from analyzer.verbs.flows import suspects

    return suspects(options)


def _pinned(options: SimpleNamespace) -> int:
    from analyzer.verbs.flows import pinned

    return pinned(options)


def _repair(options: SimpleNamespace) -> int:
    from analyzer.verbs.repair import repair

    return repair(options)


def _client(options: SimpleNamespace) -> int:
    from analyzer.verbs.client import client

    return client(options)


def _diff(options: SimpleNamespace) -> int:
    from analyzer.verbs.diff import diff

    return diff(options)


def _explore(options: SimpleNamespace) -> int:
    from analyzer.verbs.explore import explore

    return explore(options)


def _collect(options: SimpleNamespace) -> int:
    from analyzer.arguments.collect import script

    salt = b""
    if options.digest is not None:
        from analyzer.verbs.salts import salt_of

        salt = salt_of(options.digest)
    sys.stdout.write(script(twice=options.twice, timeout=options.timeout, salt=salt))
    return DONE


def _watch(options: SimpleNamespace) -> int:
    from analyzer.verbs.watch import watch

    return watch(options)


def _anonymise(options: SimpleNamespace) -> int:
    from analyzer.verbs.anonymise import anonymise

    return anonymise(options)


def _completion(options: SimpleNamespace) -> int:
    from analyzer.arguments.completion import script

    sys.stdout.write(script(options.shell))
    return DONE


_VERBS: Final[dict[str, Callable[[SimpleNamespace], int]]] = {
    "services": _services,
    "tree": _tree,
    "trace": _trace,
    "loss": _loss,
    "whatif": _whatif,
    "timeline": _timeline,
    "advise": _advise,
    "gate": _gate,
    "client": _client,
    "diff": _diff,
    "explore": _explore,
    "collect": _collect,
    "suspects": _suspects,
    "pinned": _pinned,
    "repair": _repair,
    "anonymise": _anonymise,
    "watch": _watch,
    "completion": _completion,
}


def _lab(arguments: Sequence[str]) -> int:
    from importlib import import_module

    try:
        lab = import_module("netns_lab.cli")
        gc.enable()  # it may go on for long
        status: int = lab.main(arguments)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "analyzer":
            raise
        raise InputError(
            f"the lab needs the module {missing}, which is not installed; "
            "pip install '.[lab]' in a clone of kubeodds"
        ) from None
    return status
