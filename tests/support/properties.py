"""The table of properties in docs/correctness.md: ``python -m tests.support.properties`` writes it.

A property is a test that hypothesis gives examples. The sources are read and nothing is run.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final

from tests.support.effort import QUICK, SOAK, in_quick

ROOT: Final = Path(__file__).parents[2]
DOCUMENT: Final = ROOT / "docs" / "correctness.md"
_HEAD: Final = "| property | quick | soak |\n|---|---|---|\n"


def properties() -> Iterator[tuple[str, str, int, int]]:
    """Give the folder, name and number of examples (quick, soak) of each property."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            calls = {
                call.func.id: call.args
                for call in node.decorator_list
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
            }
            if "given" not in calls:
                continue
            given = [int(ast.literal_eval(a)) for a in calls.get("examples", ())]
            quick, soak = (in_quick(given[0]), given[1]) if given else (QUICK, SOAK)
            place = str(path.relative_to(ROOT / "tests").with_suffix("")).replace("test_", "")
            name = node.name.removeprefix("test_").replace("_", " ")
            yield place, name, quick, soak


def table() -> str:
    """Return the table as it stands in the document."""
    rows = [f"| {place}: {name} | {q:,} | {s:,} |\n" for place, name, q, s in properties()]
    return _HEAD + "".join(rows)


def written() -> str:
    """Return the table that stands in the document."""
    _, head, rest = DOCUMENT.read_text(encoding="utf-8").partition(_HEAD)
    rows = takewhile(lambda line: line.startswith("|"), rest.splitlines(keepends=True))
    return head + "".join(rows)


def main() -> int:
    """Write the table anew."""
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(text.replace(written(), table()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
