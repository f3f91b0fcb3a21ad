"""A worker: reads the dumps of one node after the other, and returns what is new.

Theory of operation
===================

A worker is a process, here or on another machine. It keeps what costs time from one node to the
next: the API objects, which contents it has given already, and the dumps that others of the cluster
are compared with (`alike`). Whatever a dump holds, a worker answers: that it was read, or
why it could not be. What it cannot answer (the kernel killed it) its caller sees.

The program runs without a collector of cycles; a worker runs for hours, and values do hold cycles.
So it collects every so many nodes.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace

from analyzer.cluster.content import Encoder, New, block_of
from analyzer.cluster.facts import as_text, facts_of
from analyzer.cluster.node_names import NodeNames
from analyzer.cluster.reference import service_port_key
from analyzer.cluster.store import DONE, FAILED, NodeRow
from analyzer.errors import AnalyzerError, InputError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.files import Member
from analyzer.inputs.recognised import Input
from analyzer.inputs.whole import read_whole, rules_of
from analyzer.model.value import value
from analyzer.node_dumps.alike import RecentDumps
from analyzer.node_dumps.sources import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.cluster.content import TableRow
    from analyzer.cluster.reference import ServicePortKey
    from analyzer.kubeproxy.view import ServicePort
    from analyzer.model.diagnostics import Diagnostic

#: Nodes between two collections of cycles.
_COLLECTS: Final = 20
#: Diagnostics that are kept of one node; of more only how many there are.
_MOST_TOLD: Final = 200


@value(kw_only=True)
class ReadSettings:
    """How dumps are read, the same for a whole build.

    Attributes:
        objects: the file of API objects; empty: there are none.
        options: those of the command line that say how to read.
        run: of which run of a build; a worker may outlive it.
        forget: give every content again.
        shares: whether dumps are compared with those before them; the answer is the same.
    """

    objects: str
    options: Mapping[str, Any]
    run: str = ""
    forget: bool = False
    shares: bool = True


@value(kw_only=True)
class TaskResult:
    """The result of a task: a row for each of its nodes, and new contents.

    Attributes:
        diagnostics: by the name of the node.
        seconds: of CPU that it took.
        process: which worker that was; `cpu`: seconds of CPU that it has taken so far in all.
    """

    nodes: tuple[NodeRow, ...]
    new: New
    diagnostics: Mapping[str, tuple[TableRow, ...]]
    seconds: float
    process: str = ""
    cpu: float = 0.0

    @classmethod
    def failed(cls, node: NodeRow) -> TaskResult:
        """Return the row of a node that was not read."""
        return cls(nodes=(node,), new=New.nothing(), diagnostics={}, seconds=0.0)


_NOTHING: Final = "its rules have no Service; is the dump complete?"
_READERS: Final[dict[tuple[str, str, str], Reader]] = {}
_ONE: Final = threading.Lock()


def begin(memory: int) -> None:
    """Prepare a process of a pool.

    Interrupts are its parent's affair, with whom it ends. `memory` is its limit in bytes; 0: none.
    """
    import resource
    import signal
    from multiprocessing import connection, parent_process

    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    parent = parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def watch() -> None:
            connection.wait([sentinel])
            os._exit(1)  # the parent was killed and cannot say so

        threading.Thread(target=watch, daemon=True).start()


def work(settings: ReadSettings, task: Task) -> TaskResult:
    """Read the dumps of a task in this process, with what it has cached."""
    key = settings.objects, settings.run, repr(sorted(settings.options.items()))
    with _ONE:  # workers of Dask may have several threads
        reader = _READERS.get(key)
        if reader is None:
            _READERS.clear()
            reader = _READERS[key] = Reader(settings)
        # A worker of Dask collects by itself, and it would in the middle of a dump.
        collects = gc.isenabled()
        gc.disable()
        try:
            return reader.read(task, forget=settings.forget)
        finally:
            if collects:
                gc.enable()


class Reader:
    """Reads dumps of one cluster, one after the other."""

    def __init__(self, settings: ReadSettings) -> None:
        self._options = settings.options
        self._objects = ApiObjects(self._namespace((), None, settings.objects))
        self._has_objects = bool(settings.objects)
        self._known = self._objects.cluster.node_names
        self._names = NodeNames(self._known)
        self._encoder = Encoder()
        self.alike = RecentDumps(self._encoder) if settings.shares else None
        self._read = 0
        self._given: tuple[NodeRow, ...] = ()

    def _namespace(
        self, files: Sequence[str], node: str | None, objects: str = ""
    ) -> SimpleNamespace:
        given = {
            "verb": "cluster",
            "dumps": [*files],
            "others": [],
            "objects": [objects] if objects else [],
            "node": node,
            "node_ip": [],
            "ipsets": None,
            "addresses": None,
            "routes": [],
            "strict": False,
            **self._options,
        }
        return SimpleNamespace(**given)

    def read(self, task: Task, *, forget: bool = False) -> TaskResult:
        """Return the content of a task's dumps, or why it is not known."""
        if forget:
            self._encoder.forget()
            if self.alike is not None:
                self.alike.forget()
        begun = time.process_time()
        told: dict[str, tuple[TableRow, ...]] = {}
        nodes = tuple(self._nodes(task, told))
        self._read += 1
        if self._read % _COLLECTS == 0:
            gc.collect()
        return TaskResult(
            nodes=nodes,
            new=self._encoder.taken(),
            diagnostics=told,
            seconds=time.process_time() - begun,
            process=f"{os.uname().nodename}:{os.getpid()}",
            cpu=time.process_time(),
        )

    def shown(self, dump: bytes, node: str) -> tuple[ServicePort, ...]:
        """Return the ServicePorts of one dump, read as any verb reads it."""
        held = Member.of("held", node, dump, node)
        options = self._namespace((held,), node, "objects" if self._has_objects else "")
        return read_whole(options, self._objects).view.services

    def _nodes(self, task: Task, told: dict[str, tuple[TableRow, ...]]) -> Iterator[NodeRow]:
        """Yield a row for each node of a task."""
        if task.why:
            yield failed(task, task.node, task.why)
            return
        try:
            parts = list(parts_of(task, self._options["max_input"], self._names))
        except (AnalyzerError, OSError, MemoryError) as error:
            yield failed(task, task.node, why_not(error))
            return
        for node, files in parts:
            try:
                yield self._node(task, node, files, told)
            except (AnalyzerError, OSError, MemoryError, RecursionError) as error:
                yield failed(task, node, why_not(error))

    def _node(
        self,
        task: Task,
        node: str,
        files: tuple[str, ...],
        told: dict[str, tuple[TableRow, ...]],
    ) -> NodeRow:
        named = node if node in self._known or not self._has_objects else None
        options = self._namespace(files, named, "objects" if self._has_objects else "")
        read = None if self.alike is None else self.alike.read(options, self._objects)
        if read is None:
            given = read_whole(options, self._objects)
            digests: dict[ServicePortKey, str] = {}
            blocks: dict[int, set[str]] = {}
            for service in given.view.services:
                found = digests[service_port_key(service)] = self._encoder.encode(service)
                blocks.setdefault(block_of(service), set()).add(found)
            name = self._encoder.map(map(self._encoder.block, blocks.values()))
            rules = rules_of(given)
            diagnostics: Sequence[Diagnostic] = given.view.diagnostics
            if self.alike is not None:
                self.alike.learn(options, given, digests)
        else:
            given, name, rules, diagnostics = read.given, read.map, read.rules, read.diagnostics
        told[node] = tuple(_told(diagnostics))
        view = given.view
        # Any cluster has default/kubernetes: who shows none at all shows no rules of kube-proxy.
        unseen = view.unseen or ("" if view.services else _NOTHING)
        return NodeRow(
            node=node,
            source=task.source,
            state=DONE,
            fingerprint=task.fingerprint,
            files=tuple(map(str, files)),
            taken=_taken(files, given),
            synced=_synced(files),
            map="" if unseen else name,
            mode=view.mode.value,
            rules=rules,
            unseen=unseen,
            cut=view.cut,
            left_out=view.left_out,
            unled=view.unled,
            facts=as_text(facts_of(given.every_ruleset, view)),
        )


def parts_of(task: Task, most: int, names: NodeNames) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield name and files of each node of a task; `names` are those of Node objects.

    Raises:
        InputError: a bundle holds no rules, or is damaged.
        OSError: it cannot be read.
    """
    if not task.is_bundle:
        files: tuple[str, ...] = task.files
        if task.held:
            named = zip(task.files, task.held, strict=True)
            files = tuple(Member.of(*_parted(file), data, task.node) for file, data in named)
        yield task.node, files
        return
    from analyzer.inputs.bundle_files import kept_files
    from analyzer.inputs.bundle_nodes import nodes_of, parted

    path = task.files[0]
    kept = kept_files(path, most)
    assert kept is not None  # who made the task has looked
    nodes = [part for each in nodes_of(path, kept) for part in parted(each)]
    if not nodes:
        raise InputError(f"{path}: no rules in it")
    for each in nodes:
        name = task.node or each.node or each.label
        if len(nodes) > 1:
            name = each.node or each.label
        if not each.rules:
            raise InputError(f"{path}: it contains no rules; collect as root, on a node")
        name = _called(name)
        yield names.called(name) or name, tuple(each.rules)


def _parted(file: str) -> tuple[str, str]:
    bundle, _, inside = file.rpartition(":")
    return bundle, inside


def _called(name: str) -> str:
    """Return a node's name without what a path has before it."""
    return name.rpartition("/")[2] if name.startswith("/") else name


def failed(task: Task, node: str, why: str) -> NodeRow:
    """Return the row of a node that was not read."""
    return NodeRow(
        node=node or task.source.rpartition("/")[2],
        source=task.source,
        state=FAILED,
        reason=why,
        fingerprint=task.fingerprint,
        files=tuple(map(str, task.files)),
    )


def why_not(error: BaseException) -> str:
    """Return why a dump could not be read, in words for people."""
    if isinstance(error, MemoryError):
        return "reading it takes more memory than a worker may have; see --worker-memory"
    if isinstance(error, RecursionError):
        return "its chains are nested too deeply to be read"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


def _told(diagnostics: Sequence[Diagnostic]) -> Iterator[TableRow]:
    for each in diagnostics[:_MOST_TOLD]:
        yield (
            each.severity.value,
            each.code,
            each.message,
            str(each.file),
            each.line,
            each.column,
            each.partial,
        )
    if len(diagnostics) > _MOST_TOLD:
        more = len(diagnostics) - _MOST_TOLD
        yield (
            "info",
            "more",
            f"{more:,} more diagnostics",
            str(diagnostics[0].file),
            None,
            None,
            False,
        )


def _taken(files: Sequence[str], given: Input) -> str:
    """Return when the dumps were taken, in ISO 8601 form; empty if not known."""
    said = next((each.taken for each in files if isinstance(each, Member) and each.taken), "")
    if said:
        return said
    from analyzer.parsers.ages import dump_taken

    headers = [each.taken for each in given.rulesets]
    times = [time for each in headers if each and (time := dump_taken(each)) is not None]
    return min(times).isoformat() if times else ""


def _synced(files: Sequence[str]) -> float | None:
    told = (each.synced for each in files if isinstance(each, Member))
    return next((each for each in told if each is not None), None)
