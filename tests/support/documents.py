"""Tables of docs/, and the JSON documents with the schemas that they are held against."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.captures import FIXTURES, ROOT

DOCS = ROOT / "docs"
SCHEMAS = ROOT / "analyzer" / "reports" / "schemas"
#: These write documents of other names than their own.
_NAMES = {
    "lab run": "lab",
    "lab run --for": "lab-phases",
    "lab run --pcap": "lab-pcap",
    "lab judge": "lab",
    "lab verify": "lab",
    "lab clients": "clients",
    "lab repair": "lab-repair",
    "whatif --components": "components",
    "cluster build": "cluster-build",
    "cluster drift": "cluster-drift",
    "cluster sql": "cluster-sql",
    "cluster timeline": "cluster-timeline",
}
#: Documents of verbs that came later begin with version 1.
_LATER = (
    *("whatif", "loss-nodes", "loss-cluster", "components", "timeline", "client", "advise"),
    *("gate", "repair", "lab-repair", "lab-phases", "lab-pcap", "suspects", "pinned"),
    "anonymise-map",
    *("cluster-build", "cluster-drift", "cluster-sql", "cluster-timeline"),
)


def rows(section: str, page: str = "reference.md") -> dict[str, str]:
    """Return the first cell of each row below a heading, and the rest of the row."""
    text = (DOCS / page).read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\n## {section}\n")
    body = rest.partition("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", body, re.MULTILINE))


def schema_name(verb: str) -> str:
    """Return the name that a verb's JSON documents carry: ``kubeodds/NAME/VERSION``."""
    return _NAMES.get(verb, verb)


def schema_version(name: str) -> int:
    """Return the version of the documents of that name."""
    return 1 if name in _LATER else 2


def schema(name: str) -> Any:
    """Return one schema."""
    return json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))


def golden_files(suffix: str) -> list[Path]:
    """Return all golden files with this suffix."""
    return sorted(FIXTURES.glob(f"*/*/expected/*.{suffix}"))


def renamed(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give a document again and again, each time with another of its fields renamed."""
    if isinstance(value, list):
        for at, item in enumerate(value):
            for where, changed in renamed(item, path):
                yield where, [*value[:at], changed, *value[at + 1 :]]
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key), {f"{k}_" if k == key else k: v for k, v in value.items()}
            for where, changed in renamed(item, (*path, key)):
                yield where, {**value, key: changed}
