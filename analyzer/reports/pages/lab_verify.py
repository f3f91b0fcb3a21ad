"""``lab verify`` as a page: every route, predicted and measured."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reports.lab_answers import LabAnswer
from analyzer.reports.lab_verify_text import render as as_text
from analyzer.reports.pages.lab import page_of


def render(answer: LabAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    yield from page_of(answer, as_text(answer))
