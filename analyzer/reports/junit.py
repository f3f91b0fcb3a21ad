"""JUnit XML, as CI systems read it.

Source: https://github.com/testmoapp/junitxml, what CI systems read of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.model.text import printable
from analyzer.model.value import value


@value
class JunitCase:
    """A test case; its outcome is failure, skipped, or nothing if it passes."""

    name: str
    outcome: str
    says: str


def suite(name: str, cases: list[JunitCase]) -> Iterator[str]:
    """Yield a test suite, if it has cases."""
    if not cases:
        return
    name = _escaped(name)
    outcomes = [each.outcome for each in cases]
    failed, skipped = outcomes.count("failure"), outcomes.count("skipped")
    yield (
        f'<testsuite name="{name}" tests="{len(cases)}" failures="{failed}" skipped="{skipped}">\n'
    )
    for each in cases:
        head = f'<testcase classname="kubeodds.{name}" name="{_escaped(each.name)}"'
        says = _escaped(each.says)
        if each.outcome:
            yield f'{head}><{each.outcome} message="{says}"/></testcase>\n'
        else:
            yield f"{head}><system-out>{says}</system-out></testcase>\n"
    yield "</testsuite>\n"


def _escaped(text: str) -> str:
    """Return text escaped for XML, which cannot represent control characters."""
    shown = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace('"', "&quot;")
