"""``cluster timeline``: nodes' rules over time, and what they cost."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from types import SimpleNamespace

from analyzer.cluster.content import Contents
from analyzer.cluster.course import Moment, coinciding, lost_over, moments, stood, time_of
from analyzer.cluster.node_names import NodeNames
from analyzer.cluster.reference import service_port_key
from analyzer.errors import AnalyzerError, InputError, UsageError, suggestion
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.whole import read_whole
from analyzer.kubeproxy.diff.difference import difference
from analyzer.kubeproxy.diff.dumps import Dump, versions_of_both
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.select import names_in
from analyzer.kubeproxy.view import View
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.value import value
from analyzer.node_dumps.looks import Dumped, dumped, time_of_objects
from analyzer.node_dumps.sources import checked_pattern
from analyzer.node_dumps.worker import why_not
from analyzer.output import finish
from analyzer.parsers.clock_times import seconds_of
from analyzer.reports.cluster_timeline_answer import (
    ChangedService,
    Look,
    LostAt,
    NodeCourse,
    TimelineOfDumpsAnswer,
    Wrong,
)
from analyzer.reports.json_values import family
from analyzer.reports.phrases import name_of
from analyzer.reports.progress import progress
from analyzer.verbs.cluster_dead_windows import Losses, Objects, in_words, windows_of
from analyzer.verbs.cluster_timeline_changes import as_changed
from analyzer.verbs.cluster_timeline_notes import assumed, notes
from analyzer.watching.drifting import Drift, Drifting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.cluster.drift_kinds import DriftFinding
    from analyzer.cluster.reference import ServicePortKey
    from analyzer.inputs.recognised import Input
    from analyzer.model.probability import Bounds

#: Dumps between two collections of cycles: the program runs without a collector.
_COLLECTS: Final = 8
_NOTHING: Final = "its rules have no Service; is the dump complete?"


def timeline(options: SimpleNamespace) -> int:
    """Show how the rules changed, and return the exit status."""
    if options.dead_by_objects and not options.objects:
        raise UsageError("--dead-by-objects: needs --objects")
    if options.max_lost is not None and not (options.dead_by_objects or [*in_words(options)]):
        raise UsageError(
            "--max-lost: nothing is marked dead; add --dead, --dead-node or --dead-zone"
        )
    for name in ("name_from", "time_from"):
        if getattr(options, name) is not None:
            setattr(options, name, checked_pattern(getattr(options, name), name.replace("_", "-")))
    states = _objects(options)
    answer = _Courses(options, states).answer()
    return finish(options, "cluster timeline", answer, answer.diagnostics, no=answer.is_broken)


def _objects(options: SimpleNamespace) -> tuple[Objects, ...]:
    """Return each file of objects as a state of its own, in time; else one that says nothing."""
    found = []
    for name in options.objects:
        known = ApiObjects(SimpleNamespace(**{**vars(options), "objects": [name]}))
        taken = known.taken()
        at, clock = time_of_objects(name, options, None if taken is None else seconds_of(taken))
        found.append(
            Objects(known=known, look=Look(at=at, clock=clock, source=name), predictions={})
        )
    if not found:
        return (Objects(known=ApiObjects(options), look=None, predictions={}),)
    return tuple(sorted(found, key=lambda each: each.look.at if each.look else 0))


@value(kw_only=True)
class _State:
    """What one dump said.

    Attributes:
        digests: of its ServicePorts.
        drift: of each state of the objects; text is why it is not known.
        lacking: ServicePorts of the objects that it has no rule for, each with its IP version.
    """

    at: Fraction
    digests: Mapping[ServicePortKey, str]
    drift: tuple[Drift | str, ...]
    not_judged: tuple[str, ...]
    lacking: frozenset[tuple[str, int | None]]


class _Courses:
    """Reads dumps node by node, in time, and keeps of each what it says."""

    def __init__(self, options: SimpleNamespace, objects: tuple[Objects, ...]) -> None:
        self._options = options
        self._objects = objects
        self._times = [each.look.at for each in objects if each.look is not None]
        nodes = {n for each in objects for n in each.known.cluster.node_names}
        # Objects without nodes name those that have endpoints, and need not name all.
        listed = any(each.known.cluster.nodes for each in objects)
        if options.node is not None and listed and options.node not in nodes:
            raise UsageError(
                f"--node {options.node}: the objects have no such node"
                + suggestion(options.node, nodes)
            )
        self._names = NodeNames(nodes)
        self._contents = Contents()
        self._read = 0
        self._asked: Collection[str] | None = None

    def answer(self) -> TimelineOfDumpsAnswer:
        """Return the whole answer."""
        by_node: dict[str, list[Dumped]] = {}
        for each in dumped(self._options, self._names):
            by_node.setdefault(each.node, []).append(each)
        courses, states = [], {}
        changes: list[ChangedService] = []
        with progress("dumps") as advance:
            for node, dumps in sorted(by_node.items()):
                looks: list[Look] = []
                states[node] = self._course(node, dumps, looks, changes)
                courses.append(NodeCourse(node=node, looks=tuple(looks)))
                if advance is not None:
                    advance(len(dumps), sum(map(len, by_node.values())))
        if not any(states.values()):
            why = next((f"{e.source}: {e.why}" for c in courses for e in c.looks if e.why), "")
            raise InputError(why or "no dump could be used")
        every = View(
            services=tuple(self._contents.services.values()), mode=ProxyMode.NONE, node=None
        )
        self._asked = names_in([every], self._options.service, self._options.namespace)
        wrong, why = self._wrong(states)
        never = dict(self._never(states))
        diagnostics = [*notes(self._options.dumps[0], courses)]
        return TimelineOfDumpsAnswer(
            nodes=tuple(courses),
            objects=tuple(each.look for each in self._objects if each.look is not None),
            changes=tuple(each for each in changes if self._is_asked(each.service)),
            wrong=wrong,
            why_not_compared=why,
            lost=self._lost(states, diagnostics),
            dead=tuple(in_words(self._options)),
            not_judged={
                node: tuple(dict.fromkeys([*(n for s in of for n in s.not_judged), *never[node]]))
                for node, of in states.items()
            },
            assumed=tuple(assumed(courses, len(self._times))),
            diagnostics=tuple(diagnostics),
            most=self._options.max_lost,
            every=self._options.all,
        )

    def _is_asked(self, service: str) -> bool:
        return self._asked is None or service in self._asked

    def _never(self, states: Mapping[str, Sequence[_State]]) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield each node with the ServicePorts that no dump of it has, though it should."""
        shown: dict[str, set[tuple[str, int | None]]] = {}
        every: set[tuple[str, int | None]] = set()
        for node, of in states.items():
            of_node = {key: digest for each in of for key, digest in each.digests.items()}
            shown[node] = {(name, version) for name, _, version in of_node}
            every |= {
                (key[0], key[2])
                for key, digest in of_node.items()
                if not self._contents.services[digest].is_host_port  # each node has its own
            }
        for node, of in states.items():
            lacking = frozenset.intersection(*[each.lacking for each in of]) if of else frozenset()
            missing = sorted((every | lacking) - shown[node], key=lambda each: (each[0], str(each)))
            yield node, [name_of(*each) for each in missing if self._is_asked(each[0])]

    # --- reading ------------------------------------------------------------------

    def _course(
        self, node: str, dumps: Sequence[Dumped], looks: list[Look], changes: list[ChangedService]
    ) -> list[_State]:
        """Return what the dumps of one node say, and add what changed from one to the next."""
        found: list[_State] = []
        before: Input | None = None
        drifting = self._drifting(node)
        for each in dumps:
            why = each.why
            try:
                given = None if why else self._input(each, node)
                if given is not None:
                    nothing = "" if given.view.services else _NOTHING
                    why = given.view.unseen or nothing
                if given is not None and not why:
                    state = self._state(each, given, drifting)
                    if before is not None and state.digests != found[-1].digests:
                        pair = [*found, state]
                        changes += self._changed(node, pair, before, given)
                    found.append(state)
                    before = given
            except (AnalyzerError, OSError, MemoryError, RecursionError) as error:
                why = " ".join(why_not(error).split())
            looks.append(Look(at=each.at, clock=each.clock, source=each.source, why=why))
            self._read += 1
            if self._read % _COLLECTS == 0:
                gc.collect()
        return found

    def _input(self, each: Dumped, node: str) -> Input:
        known = node if node in self._names or not self._options.objects else None
        given = {"dumps": [*each.files], "node": known, "verb": "cluster"}
        options = SimpleNamespace(**{**vars(self._options), **given})
        return read_whole(options, self._objects[-1].known)

    def _drifting(self, node: str) -> list[Drifting]:
        options = SimpleNamespace(
            **{**vars(self._options), "node": node if node in self._names else None}
        )
        return [Drifting(options, each.known, each.predictions) for each in self._objects]

    def _state(self, each: Dumped, given: Input, drifting: Sequence[Drifting]) -> _State:
        services = given.view.services
        digests = dict(
            zip(map(service_port_key, services), self._contents.keep(services), strict=True)
        )
        by_name: dict[tuple[str, str], dict[int | None, str]] = {}
        for (name, protocol, version), digest in digests.items():
            by_name.setdefault((name, protocol), {})[version] = digest
        view = given.view
        cut = ["what the dump lacks"] * (
            bool(view.cut) or not all(each.rules for each in view.untold)
        )
        frames = [each.name for each in view.untold if each.rules]
        absent = given.absent()
        return _State(
            at=each.at,
            digests=digests,
            drift=tuple(one.of(given, by_name) for one in drifting),
            not_judged=(*view.left_out, *view.unled, *cut, *frames),
            lacking=frozenset((e.name.text, e.version) for e in (*absent.lacking, *absent.beyond)),
        )

    def _changed(
        self, node: str, states: Sequence[_State], a: Input, b: Input
    ) -> Iterator[ChangedService]:
        """Yield the ServicePorts that are not the same in the last two states of a node."""
        times = [each.at for each in states]
        one, other = states[-2].digests, states[-1].digests
        differing = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        dumps = [Dump(str(each.ruleset.file), each.view, each.versions) for each in (a, b)]
        versions = versions_of_both(*dumps)
        sides = {version: (a.side(version), b.side(version)) for version in versions}
        told = difference(sides, {key[0] for key in differing})
        of_key = {(each.name.text, each.protocol, each.version): each for each in told.changes}
        for key in differing:
            change = of_key.get(key)
            is_alike = change is None and key in one and key in other
            if is_alike and not told.is_open:
                continue  # what flows notice nothing of
            yield as_changed(
                node,
                key,
                change,
                (times[-2], times[-1]),
                is_open=is_alike,
                whole="" if key in one and key in other else "gone" if key in one else "added",
                before=stood(times, [each.digests.get(key) for each in states], len(states) - 1),
            )

    # --- wrong --------------------------------------------------------------------

    def _wrong(
        self, states: Mapping[str, Sequence[_State]]
    ) -> tuple[tuple[Wrong, ...] | None, str]:
        """Return what differed from the objects and for how long, or why that is not known."""
        if not self._times:
            return None, "there are no --objects"
        found: list[Wrong] = []
        why = ""
        compared = False
        for node, of in states.items():
            unknown = [each for state in of for each in state.drift if isinstance(each, str)]
            if unknown:
                why = f"{node}: {unknown[0]}"
                continue
            compared = True
            dumped = [each.at for each in of]
            cut, pairs = moments(dumped, self._times), coinciding(dumped, self._times)
            facts = [
                [frozenset(d.findings()) if isinstance(d, Drift) else frozenset() for d in s.drift]
                for s in of
            ]
            every = {each for row in facts for one in row for each in one}
            for each in sorted(
                every, key=lambda e: (e.service, e.drift.value, e.what, e.version or 0)
            ):
                holds = _holds(facts, each)
                asked = not each.service or self._is_asked(each.service)
                if asked and any(holds(*pair) for pair in pairs):
                    lasted = time_of(cut, holds)
                    found.append(
                        Wrong(
                            node=node,
                            service=each.service,
                            protocol=each.protocol,
                            drift=each.drift,
                            what=each.what,
                            version=each.version,
                            lasted=lasted,
                        )
                    )
        return (tuple(found), why) if compared else (None, why)

    # --- lost ---------------------------------------------------------------------

    def _lost(
        self, states: Mapping[str, Sequence[_State]], diagnostics: list[Diagnostic]
    ) -> tuple[LostAt, ...] | None:
        windows = windows_of(self._options)
        if not windows and not self._options.dead_by_objects:
            return None
        edges = {each for _, _, *times in windows for each in times if each is not None}
        losses = Losses(self._options, self._objects, self._contents, windows)
        found = []
        for node, of in states.items():
            cut = moments([each.at for each in of], self._times, edges)
            keys = dict.fromkeys(key for each in of for key in each.digests)
            for key in keys:
                if not self._is_asked(key[0]):
                    continue
                digests = [each.digests.get(key) for each in of]

                def loss(
                    moment: Moment, rule: int, objects: int, digests: list[str | None] = digests
                ) -> Bounds | None:
                    return losses.of(digests[rule], moment, objects)

                lost = lost_over(cut, loss)
                absent = time_of(cut, _lacks(digests))
                if lost.total or lost.most.upper or absent:
                    name, protocol, version = key
                    found.append(
                        LostAt(
                            node=node,
                            service=name,
                            protocol=protocol,
                            family=family(version) or "",
                            lost=lost,
                            absent=absent,
                        )
                    )
        diagnostics += losses.told(self._options.dumps[0])
        found.sort(key=lambda e: (-e.lost.total.upper, -e.lost.total.lower, e.service, e.node))
        return tuple(found)


def _holds(
    facts: Sequence[Sequence[frozenset[DriftFinding]]], each: DriftFinding
) -> Callable[[int, int], bool]:
    return lambda rule, of_objects: each in facts[rule][of_objects]


def _lacks(digests: Sequence[str | None]) -> Callable[[int, int], bool]:
    return lambda rule, _: digests[rule] is None
