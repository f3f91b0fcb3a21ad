"""A check as a node-problem-detector plugin reports it: one line and an exit status.

Source: kubernetes/node-problem-detector, docs/custom_plugin_monitor.md, and
pkg/custompluginmonitor/types/types.go, ``OK``, ``NonOK``, ``Unknown`` (any other status);
config's ``max_output_length`` is 80 by default.
"""

from __future__ import annotations

from analyzer.model.text import printable
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import count
from analyzer.reports.watch_answer import CheckResult, Watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

OK: Final = 0
NOT_OK: Final = 1
UNKNOWN: Final = 2
#: Characters that the detector keeps of a line.
MOST: Final = 80


def verdict(found: Watched, *, allow_drift: bool) -> tuple[int, str]:
    """Return exit status and line; what is not evaluated is never OK."""
    result = found.result
    if result is None:
        return UNKNOWN, fitted(f"unknown: {_first_line(found.why)}")
    said = _faults(result, allow_drift=allow_drift)
    if said:
        return NOT_OK, fitted("; ".join(said))
    if not found.is_ok:
        return UNKNOWN, fitted(f"unknown: {_why_unknown(result)}")
    drift = "" if result.drift is None or allow_drift else "; rules match the objects"
    judged = count(len(result.services), "ServicePort")
    may = "none loses more than allowed" if result.worst else "none loses new flows"
    return OK, fitted(f"{judged}: {may}{drift}")


def _faults(found: CheckResult, *, allow_drift: bool) -> list[str]:
    said = []
    sure = [each for each in found.beyond if each.surely]
    if sure:
        more = f" (and {len(sure) - 1:,} more)" if len(sure) > 1 else ""
        said.append(f"{sure[0].name} loses {bounds_percent(sure[0].loss)}{more}")
    if found.differences and not allow_drift:
        said.append(f"{count(found.differences, 'difference')} from the objects")
    return said


def _why_unknown(found: CheckResult) -> str:
    if found.not_judged:
        return f"not judged: {count(len(found.not_judged), 'ServicePort')}, {found.not_judged[0]}"
    if not found.is_whole:
        return "the dump is truncated, or a table is not in it"
    if found.beyond:  # none of them surely
        return f"{found.beyond[0].name} may lose {bounds_percent(found.beyond[0].loss)}"
    if found.drift is None:
        return f"drift: {found.why_no_drift}"
    return f"drift of {count(len(found.drift_unknown), 'ServicePort')}, {found.drift_unknown[0]}"


def _first_line(why: str) -> str:
    """Return a message without the faulty line and its caret, which have lines of their own."""
    return why.partition("\n")[0]


def fitted(text: str) -> str:
    """Return a line shortened to the limit, all ASCII: the detector counts bytes."""
    line = printable(" ".join(text.split())).encode("ascii", "replace").decode()
    return line if len(line) <= MOST else f"{line[: MOST - 3]}..."
