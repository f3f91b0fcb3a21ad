"""A folder that keeps a cluster's dumps as recognised: written piece by piece, and queried.

Theory of operation
===================

A build writes parts: for each table a Parquet file with the new rows, under a temporary name, then
moved to its place. The part of the table of nodes is the last: only what it names counts as done.
If a build is killed in between, contents are left that no node refers to yet; the next run finds
them and need not write them again. So there is no state beside the tables that could be wrong.

One build at a time holds the folder's lock, which the kernel releases when its holder dies.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from analyzer.cluster.asking import answer
from analyzer.cluster.content import (
    Lists,
    New,
    bounds_from_row,
    endpoint_from_row,
    service_from_rows,
)
from analyzer.cluster.folder import (
    ABOUT,
    LOCK,
    OBJECTS,
    SCHEMA,
    about_of,
    check_asked,
    checked,
    engine,
    locked,
    prepare,
    settle,
    writable,
)
from analyzer.cluster.tables import TABLES, create_views
from analyzer.errors import UsageError
from analyzer.kubeproxy.predict.every_node import At, EveryNode
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.cluster.content import TableRow
    from analyzer.kubeproxy.view import ServicePort
    from analyzer.model.cluster import Cluster


#: Contents, each a field of `New` and a table; none is written before what it names.
_CONTENTS: Final = ("endpoints", "distributions", "routes", "service_ports", "blocks", "maps")


@value(kw_only=True)
class NodeRow:
    """What is stored for one node's dumps: a row of the table of nodes.

    Attributes:
        source: the input, by the identifier that the build uses; a bundle's nodes share one.
        state: done, failed, or replaced: no view shows replaced rows.
        reason: why it failed; empty if it did not.
        fingerprint: of the input, so that it is read again when it changes.
        taken: when, in ISO 8601 form; empty if not known.
        synced: when kube-proxy last wrote its rules, in seconds since 1970.
        map: the digest of its map; empty if nothing was read.
        facts: what drift compares besides ServicePorts, as JSON.
    """

    node: str
    source: str
    state: str
    reason: str = ""
    fingerprint: str = ""
    files: tuple[str, ...] = ()
    taken: str = ""
    synced: float | None = None
    map: str = ""
    mode: str = ""
    rules: int = 0
    unseen: str = ""
    cut: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()
    unled: tuple[str, ...] = ()
    facts: str = "{}"

    @property
    def is_done(self) -> bool:
        """Whether its rules were read."""
        return self.state == DONE


DONE: Final = "done"
FAILED: Final = "failed"
#: Its dump has been replaced by another one of the same node.
REPLACED: Final = "replaced"


@value
class ServicePortAt:
    """A ServicePort by its digest, with the nodes that have it in this form."""

    digest: str
    service: ServicePort
    nodes: frozenset[str]


class Store:
    """A folder of tables; `create` makes one, and `open` opens one."""

    def __init__(self, folder: str, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self.about = about
        self._db = engine().connect(":memory:")
        self._db.execute("SET threads = 1; SET preserve_insertion_order = false")
        # What is too large for memory is written next to the tables, for their owner only.
        self._db.execute(f"SET temp_directory = '{folder}/.spill'")
        self._db.execute(create_views(f"{folder}/"))
        self._lock: int | None = None
        self._written: set[tuple[str, str]] = set()
        self._known: set[str] = set()

    # --- a folder -----------------------------------------------------------------

    @classmethod
    def create(cls, folder: str, asked: Mapping[str, Any], objects: Sequence[Any]) -> Store:
        """Make the folder, or continue what an earlier run left; locked until it is closed.

        Raises:
            UsageError: it is something else, another build's, or another run is at work on it.
            OSError: it cannot be written.
        """
        engine()
        path = checked(folder)
        os.makedirs(path, mode=0o700, exist_ok=True)  # noqa: PTH103  # paths are text here
        names = os.listdir(path)  # noqa: PTH208  # as above
        if ABOUT not in names and any(each != LOCK for each in names):
            raise UsageError(f"--into {folder}: it contains other files; use a separate folder")
        lock = locked(path, folder)
        try:
            if ABOUT in names:
                about = about_of(path, folder)
                check_asked(about["asked"], asked, folder)
            else:
                about = {"schema": SCHEMA, "asked": asked}
                prepare(path, about, objects)
            found = cls(path, about)
        except BaseException:
            os.close(lock)
            raise
        found._lock = lock
        found._find_written()
        return found

    @classmethod
    def open(cls, folder: str) -> Store:
        """Return a store that was built.

        Raises:
            InputError: it is none.
        """
        engine()
        path = checked(folder)
        return cls(path, about_of(path, folder))

    def close(self) -> None:
        """Release the lock, and close the database."""
        self._db.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def objects(self) -> str:
        """The file with the API objects that it was built with; empty if there were none."""
        path = f"{self.folder}/{OBJECTS}"
        return path if os.path.exists(path) else ""  # noqa: PTH110  # as above

    # --- writing ------------------------------------------------------------------

    def lacks(self, node: NodeRow, new: New) -> bool:
        """Return whether a node refers to a content that is neither known nor new."""
        if not node.map or node.map in self._known:
            return False
        blocks = new.maps.get(node.map)
        if blocks is None:
            return True
        for block in blocks:
            if block in self._known:
                continue
            held = new.blocks.get(block)
            if held is None or any(
                each not in self._known and each not in new.service_ports for each in held
            ):
                return True
        return False

    def commit(
        self,
        nodes: Sequence[NodeRow],
        new: New,
        diagnostics: Sequence[TableRow],
        cluster: Cluster,
    ) -> None:
        """Store what was read of some nodes: all of it, or, if killed, none of it.

        `diagnostics` begin with the node and its source.
        """
        written = 1 + self._last_written()
        for table in _CONTENTS:
            rows: list[TableRow] = []
            for digest, content in getattr(new, table).items():
                if (table, digest) not in self._written:
                    self._written.add((table, digest))
                    rows += _rows_of(table, digest, content, cluster)
            self._write(table, written, rows)
        self._write("diagnostics", written, [(*row, written) for row in diagnostics])
        self._write("nodes", written, [(*_node_row(each), written) for each in nodes])
        self._known.update(new.service_ports, new.blocks, new.maps)

    def _last_written(self) -> int:
        names = os.listdir(f"{self.folder}/nodes")  # noqa: PTH208  # as above
        numbers = [name.removeprefix("part-").removesuffix(".parquet") for name in names]
        return max((int(each) for each in numbers if each.isdecimal()), default=0)

    def _write(self, table: str, number: int, rows: Sequence[TableRow]) -> None:
        if not rows:
            return
        columns = TABLES[table]
        made = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        self._db.execute(f"CREATE OR REPLACE TEMP TABLE part ({made})")
        values = ", ".join(f"unnest(${name}::{kind}[])" for name, kind in columns.items())
        given = {name: [writable(row[at]) for row in rows] for at, name in enumerate(columns)}
        self._db.execute(f"INSERT INTO part SELECT {values}", given)  # our columns
        path = f"{self.folder}/{table}/part-{number:06}.parquet"
        # A name that no view reads, until all of it is there.
        self._db.execute(f"COPY part TO '{path}.new' (FORMAT parquet, COMPRESSION zstd)")
        settle(f"{path}.new", path)

    def _find_written(self) -> None:
        """Find what earlier runs wrote; everything that it refers to is there too."""
        for table in _CONTENTS:
            column = next(iter(TABLES[table]))
            rows = self._db.execute(f"SELECT DISTINCT {column} FROM {table}")  # noqa: S608  # names of ours
            self._written.update((table, digest) for (digest,) in rows.fetchall())
        named = ("service_ports", "blocks", "maps")
        self._known = {digest for table, digest in self._written if table in named}

    # --- asking -------------------------------------------------------------------

    def nodes(self) -> tuple[NodeRow, ...]:
        """Return the stored row of each node, by name and source."""
        columns = [name for name in TABLES["nodes"] if name != "written"]
        told = ", ".join(columns)
        rows = self._db.execute(f"SELECT {told} FROM nodes ORDER BY node, source")  # noqa: S608  # names of ours
        return tuple(_node_of(dict(zip(columns, row, strict=True))) for row in rows.fetchall())

    def counts(self) -> dict[str, int]:
        """Return how many contents there are of each kind."""
        found = {}
        for table in _CONTENTS:
            column = next(iter(TABLES[table]))
            row = self._db.execute(f"SELECT count(DISTINCT {column}) FROM {table}").fetchone()  # noqa: S608  # names of ours
            found[table] = row[0]
        return found

    def size(self) -> int:
        """Return how many bytes the tables take."""
        found = 0
        for table in TABLES:
            with os.scandir(f"{self.folder}/{table}") as listed:
                found += sum(each.stat().st_size for each in listed)
        return found

    def query(self, sql: str) -> tuple[list[str], list[TableRow]]:
        """Return the columns and rows of a user's query.

        It may read these tables, and no other file.

        Raises:
            UsageError: the question is none.
        """
        return answer(self._db, self.folder, sql)

    def by_digest(self) -> Iterator[ServicePortAt]:
        """Yield each content of a ServicePort that any node has, with those nodes."""
        nodes = self._nodes_of_contents()
        lists = self._lists()
        routes: dict[str, list[TableRow]] = {}
        columns = list(TABLES["routes"])[5:]
        told = ", ".join(f"r.{each}" for each in columns)
        rows = self._db.execute(
            f"SELECT service_port, {told} FROM routes r ORDER BY service_port, position"  # noqa: S608  # names of ours
        )
        for digest, *row in rows.fetchall():
            routes.setdefault(digest, []).append(tuple(row))
        services = self._db.execute(
            "SELECT * FROM service_ports ORDER BY name, protocol, version, service_port"
        )
        for row in services.fetchall():
            if row[0] in nodes:
                service = service_from_rows(row, routes.get(row[0], ()), lists)
                yield ServicePortAt(row[0], service, nodes[row[0]])

    def every_node(self) -> tuple[EveryNode, ...]:
        """Return each ServicePort with the nodes whose dumps have it."""
        grouped: dict[object, list[At]] = {}
        for each in self.by_digest():
            of = each.service
            key = of.name.text, of.protocol, of.version
            grouped.setdefault(key, []).append(At(of, each.nodes))
        return tuple(EveryNode(at=tuple(at)) for at in grouped.values())

    def _nodes_of_contents(self) -> dict[str, frozenset[str]]:
        of_map: dict[str, set[str]] = {}
        for each in self.nodes():
            if each.is_done and each.map:
                of_map.setdefault(each.map, set()).add(each.node)
        of_block: dict[str, list[set[str]]] = {}
        for digest, blocks in self._db.execute("SELECT * FROM maps").fetchall():
            for block in blocks if digest in of_map else ():
                of_block.setdefault(block, []).append(of_map[digest])
        every = frozenset(name for names in of_map.values() for name in names)
        found: dict[str, frozenset[str]] = {}
        for block, held in self._db.execute("SELECT * FROM blocks").fetchall():
            if block not in of_block:
                continue
            names = frozenset().union(*of_block[block])
            names = every if len(names) == len(every) else names  # which is hashed once
            for digest in held:
                found[digest] = found[digest] | names if digest in found else names
        return found

    def _lists(self) -> Lists:
        endpoints: dict[str, list[Any]] = {_NO_ENDPOINTS: []}
        rows = self._db.execute(
            "SELECT endpoints, address, port FROM endpoints ORDER BY endpoints, position"
        )
        made: dict[tuple[str, int | None], Any] = {}
        for digest, address, port in rows.fetchall():
            way = address, port
            if way not in made:
                made[way] = endpoint_from_row(address, port)
            endpoints.setdefault(digest, []).append(made[way])
        shares: dict[str, list[Any]] = {_NO_SHARES: []}
        rows = self._db.execute(
            "SELECT distribution, lower_numerator, lower_exponent, upper_numerator, "
            "upper_exponent FROM distributions ORDER BY distribution, position"
        )
        for digest, *row in rows.fetchall():
            shares.setdefault(digest, []).append(bounds_from_row(*row))
        return Lists(
            {digest: tuple(each) for digest, each in endpoints.items()},
            {digest: tuple(each) for digest, each in shares.items()},
        )


def _empty_lists() -> tuple[str, str]:
    from analyzer.cluster.content import digest_of

    return digest_of(["endpoints", []]), digest_of(["distribution", []])


#: Lists of nothing have names and no rows.
_NO_ENDPOINTS, _NO_SHARES = _empty_lists()


# --- rows ---------------------------------------------------------------------------


def _rows_of(table: str, digest: str, content: Any, cluster: Cluster) -> Iterator[TableRow]:
    match table:
        case "service_ports":
            yield content
        case "blocks" | "maps":
            yield digest, [*content]
        case "endpoints":
            for name, at, address, port in content:
                end = endpoint_from_row(address, port)
                where = cluster.placement(end.address)
                pod = cluster.pods.of(end.address, port)
                yield name, at, address, port, where.node, where.zone, pod
        case _:
            yield from content


def _node_row(node: NodeRow) -> TableRow:
    every = (getattr(node, name) for name in TABLES["nodes"] if name != "written")
    return tuple([list(each) if isinstance(each, tuple) else each for each in every])


def _node_of(row: Mapping[str, Any]) -> NodeRow:
    told: dict[str, Any] = {
        key: tuple(each) if isinstance(each, list) else each for key, each in row.items()
    }
    return NodeRow(**told)
