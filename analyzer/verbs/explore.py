"""``explore``: marks nodes as dead or alive on a terminal, and shows the losses."""

from __future__ import annotations

import gc
import os
import sys

from analyzer.errors import UsageError
from analyzer.inputs.recognised import read_input
from analyzer.output import DONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Any


def explore(options: SimpleNamespace) -> int:
    """Run until the user quits."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "explore needs a terminal; kubeodds loss prints the same once, and kubeodds whatif "
            "--format html writes a page with check-boxes"
        )
    if os.environ.get("TERM") == "dumb":
        raise UsageError("explore needs a terminal that moves its cursor: TERM is dumb")
    gc.enable()  # it runs for long, and the program begins without
    app(options).run()
    return DONE


def app(options: SimpleNamespace) -> Any:
    """Return the application, with all of its input read.

    Raises:
        UsageError: textual is not installed; or a name that does not occur.
        InputError: nothing can be judged.
    """
    try:
        __import__("textual")
    except ModuleNotFoundError:
        raise UsageError(
            "explore needs textual, which is not installed; pip install '.[terminal]' in a clone "
            "of kubeodds"
        ) from None
    from analyzer.explorer import Explorer, ExplorerInput
    from analyzer.failure.route_loss import Count
    from analyzer.model.diagnostics import Severity
    from analyzer.questions.evaluating import dead_of, evaluated_services, warnings_of_dead

    given = read_input(options)
    absent, services = evaluated_services(options, given)
    died = dead_of(options, given)
    from analyzer.reports.not_judged import not_judged

    told = (*given.view.diagnostics, *warnings_of_dead(options, given, died))
    asked = ExplorerInput(
        view=given.view,
        services=services,
        cluster=given.cluster,
        dead=died,
        count=Count(options.count),
        is_whole=not (not_judged(given.view, absent) or given.view.lacks_some),
        warnings=tuple(each.message for each in told if each.severity is not Severity.INFO),
        tree=given.recogniser.tree,
    )
    return Explorer(asked)
