"""``cluster build``: every dump read once, even if workers fail on the way.

Theory of operation
===================

Tasks are submitted to an executor, a few more than it has workers, and results are stored at
intervals (`cluster.store`). When a worker dies, its pool breaks, and all tasks of its workers are
lost. It is not known which of these tasks killed it: they are retried one by one, and one that
breaks a pool alone, twice, is reported as a failed node, with that as the reason. An interrupt
keeps what was read so far. The next run begins with everything that is not done or has changed
since.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait

from analyzer.cluster.content import New
from analyzer.cluster.engines import Engine, check_engine, workers_here
from analyzer.cluster.store import FAILED, REPLACED, NodeRow, Store
from analyzer.errors import InputError, UsageError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.model.value import replace
from analyzer.node_dumps.sources import DumpSources, Task, checked_pattern, is_there
from analyzer.node_dumps.worker import ReadSettings, TaskResult, begin, failed, why_not, work
from analyzer.output import BAD_INPUT, INTERRUPTED, finish, say
from analyzer.reports.cluster_build_answer import BuildAnswer
from analyzer.reports.progress import progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.cluster.content import TableRow
    from analyzer.reports.progress import Advance

#: Nodes, or seconds, after which what was read is kept.
_KEEP_EVERY: Final = 64
_KEEP_AFTER: Final = 5.0
#: Tasks that wait besides those in progress.
_AHEAD: Final = 2
#: Times that a task may break a pool of its own.
_MOST_DEATHS: Final = 2
_GONE: Final = (
    "its dump has disappeared since it was read; pass it again, or build into another folder "
    "without it"
)
_DIED: Final = (
    "the worker that read it was killed twice, with nothing else to read; the kernel's log says "
    "whether it ran out of memory"
)


def build(options: SimpleNamespace) -> int:
    """Read what has not been read yet, and report the state of the store."""
    check_engine(options.engine)
    pattern = None if options.name_from is None else checked_pattern(options.name_from)
    if options.workers is not None and options.engine.startswith(("tcp:", "tls:", "ucx:")):
        raise UsageError("--workers: not with a scheduler, which has its own workers")
    objects = ApiObjects(options)
    kept = {
        "node_of": [f"{network}={node}" for network, node in options.node_of],
        "assumed": dict(options.assumed),
        "name_from": pattern,
        "objects": _told(objects),
    }
    sources = DumpSources(options.dumps, objects.cluster.node_names, pattern, options.max_input)
    sources.listed()  # before anything is made
    store = Store.create(options.into, kept, objects.items)
    engine = Engine(options.engine, options.workers or workers_here(), begin, options.worker_memory)
    run = _Build(options, store, objects, engine)
    try:
        with progress("nodes", rate=True) as advance:
            run.read(sources, advance)
    except KeyboardInterrupt:
        run.keep()
        say(
            f"kubeodds: interrupted; {run.read_now:,} nodes were read and are kept: run the same "
            "command again to continue"
        )
        return INTERRUPTED
    finally:
        engine.close()
        answer = BuildAnswer(
            folder=options.into,
            nodes=store.nodes(),
            read=run.read_now,
            contents=store.counts(),
            bytes=store.size(),
            every=options.all,
        )
        store.close()
    status = finish(options, "cluster build", answer, answer.diagnostics, no=False)
    return status if any(each.is_done for each in answer.nodes) else BAD_INPUT


def _told(objects: ApiObjects) -> str:
    """Return a digest of the objects: another build has others."""
    from analyzer.cluster.content import digest_of

    return digest_of(objects.items)


class _Build:
    """One run."""

    def __init__(
        self, options: SimpleNamespace, store: Store, objects: ApiObjects, engine: Engine
    ) -> None:
        self._store = store
        self._cluster = objects.cluster
        self._engine = engine
        given = ("node_of", "assumed", "max_input", "input_format", "table")
        self._settings = ReadSettings(
            objects=store.objects,
            options={name: getattr(options, name) for name in given},
            run=f"{time.time_ns()}",
            shares=not options.alone,
        )
        self._nodes: list[NodeRow] = []
        self._new = New.nothing()
        self._diagnostics: list[TableRow] = []
        self._kept_at = time.monotonic()
        done = [each for each in store.nodes() if each.is_done]
        self._source_of = {each.node: each.source for each in done if is_there(each.source)}
        failed_too = {each.source for each in store.nodes() if not each.is_done}
        self._done = {
            (each.source, each.fingerprint) for each in done if each.source not in failed_too
        }
        #: Sources of tasks whose contents were lost with the worker that had given them.
        self._lost: set[str] = set()
        #: Of those that may have killed a worker.
        self._suspected: frozenset[str] = frozenset()
        #: Nodes that this run has read.
        self.read_now = 0

    # --- tasks --------------------------------------------------------------------

    def read(self, sources: DumpSources, advance: Advance | None) -> None:
        """Read what remains."""
        tasks = self._tasks(sources)
        again: deque[Task] = deque()
        deaths: dict[str, int] = {}
        is_over = False
        while not is_over or again:
            with self._engine.executor() as executor:
                waiting: dict[Future[TaskResult], Task] = {}
                try:
                    while True:
                        is_over = self._hand_out(executor, tasks, again, waiting) or is_over
                        if not waiting:
                            break
                        for future in wait(waiting, None, FIRST_COMPLETED).done:
                            task = waiting[future]
                            self._take(task, _result(task, future), again)
                            del waiting[future]
                            if advance is not None:
                                advance(1, sources.number or None)
                except BrokenExecutor:
                    again.extend(self._suspects(waiting, deaths))
        self.keep()
        self._settle(sources)

    def _settle(self, sources: DumpSources) -> None:
        """Discard the state of dumps that no longer exist."""
        rows = self._store.nodes()
        gone = {id(each) for each in rows if sources.lacks(each.source)}
        there = {each.node for each in rows if id(each) not in gone}
        for each in rows:
            if id(each) in gone and each.node in there:
                self._nodes.append(replace(each, state=REPLACED))
            elif id(each) in gone and each.is_done:
                self._nodes.append(replace(each, state=FAILED, reason=_GONE, map=""))
        self.keep()

    def _tasks(self, sources: DumpSources) -> Iterator[Task]:
        """Yield what is to be read, each node once."""
        seen: dict[str, str] = {}
        for task in sources.tasks(self._done):
            other = seen.setdefault(task.node, task.source) if task.node else task.source
            if other != task.source and not task.why:
                why = f"{task.node} is already read from {other}; see --name-from"
                yield replace(task, why=why)
            else:
                yield task

    def _hand_out(
        self,
        executor: Executor,
        tasks: Iterator[Task],
        again: deque[Task],
        waiting: dict[Future[TaskResult], Task],
    ) -> bool:
        """Submit as many tasks as there is room for; return whether there are no more.

        A task that may have killed a worker is submitted alone.
        """
        if again and not waiting:
            task = again[0]
            anew = replace(self._settings, forget=task.source in self._lost)
            waiting[executor.submit(work, anew, task)] = task
            again.popleft()
        if again or any(each.source in self._suspected for each in waiting.values()):
            return False
        while len(waiting) < self._engine.workers + _AHEAD:
            following = next(tasks, None)
            if following is None:
                return True
            try:
                waiting[executor.submit(work, self._settings, following)] = following
            except BrokenExecutor:
                again.append(following)
                raise
        return False

    def _suspects(
        self, waiting: dict[Future[TaskResult], Task], deaths: dict[str, int]
    ) -> Iterator[Task]:
        """Yield the tasks that a broken pool was at and that are to be tried alone."""
        alone = len(waiting) == 1
        for task in waiting.values():
            deaths[task.source] = deaths.get(task.source, 0) + alone
            if deaths[task.source] >= _MOST_DEATHS:
                self._add(TaskResult.failed(failed(task, task.node, _DIED)))
            else:
                self._suspected |= {task.source}
                yield task

    def _take(self, task: Task, result: TaskResult, again: deque[Task]) -> None:
        """Take what a task gave; again, if what it names was lost with another worker."""
        self._new.add(result.new)
        if any(self._store.lacks(each, self._new) for each in result.nodes):
            self._lost.add(task.source)
            again.append(task)
            return
        self._suspected -= {task.source}
        self._add(result)

    def _add(self, result: TaskResult) -> None:
        for each in result.nodes:
            node = each
            other = self._source_of.setdefault(node.node, node.source) if node.is_done else ""
            if node.is_done and other != node.source:
                why = f"{node.node} is already read from {other}; see --name-from"
                node = NodeRow(
                    node=node.node,
                    source=node.source,
                    state="failed",
                    reason=why,
                    fingerprint=node.fingerprint,
                    files=node.files,
                )
            self._nodes.append(node)
            told = result.diagnostics.get(node.node, ())
            self._diagnostics += [(node.node, node.source, *row) for row in told]
        self.read_now += len(result.nodes)
        is_time = time.monotonic() - self._kept_at > _KEEP_AFTER
        if len(self._nodes) >= _KEEP_EVERY or is_time:
            self.keep()

    def keep(self) -> None:
        """Write what was read."""
        if self._nodes:
            self._store.commit(self._nodes, self._new, self._diagnostics, self._cluster)
        self._nodes, self._new, self._diagnostics = [], New.nothing(), []
        self._kept_at = time.monotonic()


def _result(task: Task, future: Future[TaskResult]) -> TaskResult:
    """Return what a task gave; whatever went wrong with it alone is why its node failed.

    Raises:
        BrokenExecutor: the pool is broken, by whatever task.
        InputError: the scheduler is gone.
    """
    if future.cancelled():
        raise InputError("the scheduler is gone; run the same command again to continue")
    error = future.exception()
    if isinstance(error, BrokenExecutor):
        raise error
    if error is not None:
        why = f"a bug in kubeodds, {type(error).__name__}: {error}"
        why = why_not(error) if isinstance(error, MemoryError) else why
        return TaskResult.failed(failed(task, task.node, why))
    return future.result()
