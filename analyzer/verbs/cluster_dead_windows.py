"""Which nodes were dead when, and what ServicePorts lost by that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

from analyzer.failure.loss import service_loss
from analyzer.failure.models import Dead
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import View
from analyzer.model.diagnostics import Diagnostic, Severity, partial_warning
from analyzer.model.value import replace, value
from analyzer.questions.evaluating import dead_of
from analyzer.questions.predicting import Shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import TypeAlias

    from analyzer.cluster.content import Contents
    from analyzer.cluster.course import Moment
    from analyzer.inputs.api_objects import ApiObjects
    from analyzer.kubeproxy.view import ServicePort
    from analyzer.model.probability import Bounds
    from analyzer.reports.cluster_timeline_answer import Look
    from analyzer.watching.drifting import Predictions

    #: Option, what it names, and from when to when that is so.
    Window: TypeAlias = tuple[str, str, Fraction | None, Fraction | None]


@value(kw_only=True)
class Objects:
    """The objects at one time, and what they contain.

    Attributes:
        look: None if there are none.
    """

    known: ApiObjects
    look: Look | None
    predictions: Predictions


def windows_of(options: SimpleNamespace) -> tuple[Window, ...]:
    """Return which nodes were dead when, according to the options."""
    return tuple(
        (option, *each)
        for option in ("dead", "dead_node", "dead_zone")
        for each in getattr(options, option)
    )


def in_words(options: SimpleNamespace) -> Iterator[str]:
    """Yield the same as reports word it."""
    kinds = {"dead": "", "dead_node": "node ", "dead_zone": "zone "}
    for option, name, _, _ in windows_of(options):
        yield f"{kinds[option]}{name}"
    if options.dead_by_objects:
        yield "what the objects of the time do not list as ready"


class Losses:
    """Losses of ServicePorts, by their rules, the dead nodes, and the objects at the time."""

    def __init__(
        self,
        options: SimpleNamespace,
        objects: Sequence[Objects],
        contents: Contents,
        windows: Sequence[Window],
    ) -> None:
        self._options = options
        self._objects = objects
        self._contents = contents
        self._windows = windows
        self._dead: dict[tuple[tuple[Window, ...], int], Dead] = {}
        self._found: dict[tuple[str, tuple[Window, ...], int], Bounds] = {}
        #: Endpoints that were called dead, and whether any dump has them.
        self._seen: dict[str, bool] = {}
        self._asked: set[Window] = set()

    def of(self, digest: str | None, moment: Moment, at: int) -> Bounds | None:
        """Return the loss of a ServicePort at a moment, by the objects with index `at`."""
        if digest is None:
            return None
        active = tuple(
            each
            for each in self._windows
            if (each[2] is None or each[2] <= moment.start)
            and (each[3] is None or moment.end <= each[3])
        )
        key = digest, active, at
        if key not in self._found:
            service = self._contents.services[digest]
            died = self._died(active, at)
            if self._options.dead_by_objects:
                died = self._unready(service, died, at)
            self._found[key] = service_loss(service, died).worst
        return self._found[key]

    def _died(self, active: tuple[Window, ...], at: int) -> Dead:
        if (active, at) not in self._dead:
            named: dict[str, list[str]] = {"dead": [], "dead_node": [], "dead_zone": []}
            for option, name, _, _ in active:
                named[option].append(name)
            known = self._objects[at].known
            view = View(
                services=tuple(self._contents.services.values()), mode=ProxyMode.NONE, node=None
            )
            shown = Shown(view, known.cluster, known.pods)
            options = SimpleNamespace(**{**vars(self._options), **named})
            died = (
                dead_of(options, shown, may_be_gone=True) if active else Dead(endpoints=frozenset())
            )
            self._dead[active, at] = died
            self._asked.update(active)
            for name in named["dead"]:
                self._seen[name] = self._seen.get(name, False) or name not in died.unseen
        return self._dead[active, at]

    def told(self, file: str) -> Iterator[Diagnostic]:
        """Yield notes on dead marks that no dump has, and on times without dumps."""
        for name, is_seen in self._seen.items():
            if not is_seen:
                says = f"{name} is in none of the dumps, so it loses nothing there"
                yield Diagnostic(
                    severity=Severity.WARNING, code="dead-unseen", message=says, file=file
                )
        for each in self._windows:
            if each not in self._asked:
                says = (
                    f"{each[1]} was not dead at any time between the dumps: what it cost is not "
                    "known"
                )
                yield partial_warning("dead-elsewhen", says, file)

    def _unready(self, service: ServicePort, died: Dead, at: int) -> Dead:
        """Add the endpoints that objects do not list as ready; perhaps, where they list none."""
        ready = self._objects[at].known.ready_endpoints(service)
        if ready is None:
            return replace(died, uncertain=died.uncertain | frozenset(service.endpoints))
        lost = frozenset(
            end for end in service.endpoints if end.port is not None and end not in ready
        )
        return replace(
            died, endpoints=died.endpoints | lost, named=(*died.named, *sorted(map(str, lost)))
        )
