"""Which routes of a ServicePort a report has to give beside the one to its ClusterIP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from analyzer.kubeproxy.view import Frontend, Route, Source

T = TypeVar("T")


def other_routes(
    answers: Iterable[T], route: Callable[[T], Route], is_as_main: Callable[[T], bool]
) -> Iterator[T]:
    """Give the answers for each frontend and source of which one is not as the main one.

    Where networks part the sources all are given, since none of them speaks for all. `route` is
    what an answer is about; `is_as_main` tells whether it is as that of the ClusterIP.
    """
    together: dict[tuple[Frontend, Source], list[T]] = {}
    for answer in answers:
        about = route(answer)
        together.setdefault((about.frontend, about.source), []).append(answer)
    for each in together.values():
        if not all(map(is_as_main, each)):
            yield from each
