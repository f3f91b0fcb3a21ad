"""Prometheus' text format read by its grammar, written from the format's page and nothing else.

Source: Prometheus, docs/instrumenting/exposition_formats.md, "Text format details".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_NAME: Final = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL: Final = r"[a-zA-Z_][a-zA-Z0-9_]*"
#: The value of a label: any characters, of which three are escaped.
_VALUE: Final = r'"(?:[^"\\\n]|\\["\\n])*"'
_PAIR: Final = rf"{_LABEL}={_VALUE}"
_SAMPLE: Final = re.compile(rf"({_NAME})(?:\{{({_PAIR}(?:,{_PAIR})*)\}})? (\S+)")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|Inf)|NaN")
_COMMENT: Final = re.compile(rf"# (HELP|TYPE) ({_NAME}) (.*)")
_UNESCAPED: Final = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}

Labels = frozenset[tuple[str, str]]


@dataclass
class Metric:
    """One metric: its type, its help, and its samples by labels."""

    kind: str = ""
    says: str = ""
    samples: dict[Labels, float] = field(default_factory=dict)


def parse(page: str) -> dict[str, Metric]:
    """Return the metrics of a page by name; an AssertionError says where it is none."""
    assert page.endswith("\n") or not page
    found: dict[str, Metric] = {}
    last = ""
    for line in page.split("\n")[:-1]:
        comment = _COMMENT.fullmatch(line)
        if comment is not None:
            what, name, rest = comment.groups()
            metric = found.setdefault(name, Metric())
            # All of a metric stands together, what it is before what it has.
            assert not metric.samples, line
            assert last in {name, ""} or name not in found or not (metric.kind or metric.says), line
            if what == "TYPE":
                assert not metric.kind, line
                assert rest in {"counter", "gauge", "histogram", "summary", "untyped"}, line
                metric.kind = rest
            else:
                assert not metric.says, line
                metric.says = rest
            last = name
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample is not None, line
        name, inside, number = sample.groups()
        assert name == last, f"{line}: of another metric than the one that was begun"
        assert _NUMBER.fullmatch(number), line
        pairs = re.findall(rf"({_LABEL})=({_VALUE})", inside or "")
        labels = {key: _text(text) for key, text in pairs}
        assert len(labels) == len(pairs), line
        key = frozenset(labels.items())
        assert key not in found[name].samples, f"{line}: twice"
        found[name].samples[key] = float(number)
    return found


def _text(quoted: str) -> str:
    return re.sub(r'\\["\\n]', lambda found: _UNESCAPED[found[0]], quoted[1:-1])
