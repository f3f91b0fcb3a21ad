"""API objects from pasted tables: ``kubectl get pods -o wide``, ``kubectl get endpoints``.

A table has less information than the objects, and nothing is guessed here:

- A pod whose STATUS is not that of a running one may have lost its address to another pod: it is
  listed without one. So are pods of two nodes with the same address.
- No column says whether a pod uses its node's network. Two running pods of a node with the same
  address do: it is the node's, and pods there with other addresses have their own. If no two share
  one, every pod is taken to share its node's, so that none is said to own the address.
- Endpoints are listed without nodes and names of ports, those that are not ready are left out,
  and at most three are shown: such a table is checked, and gives no object.

Source: kubernetes, pkg/printers/internalversion/printers.go, ``printPod``, ``formatEndpoints``;
cli-runtime, pkg/printers/tabwriter.go: at least three blanks between columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from analyzer.errors import ParseError
from analyzer.model.addresses import address_and_port_from_text, address_from_text
from analyzer.model.diagnostics import Location
from analyzer.model.value import value
from analyzer.parsers.objects.text import WANTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_HEADER: Final = re.compile(r"^[ \t]*(?:NAMESPACE(?: {2,}|\t+))?NAME(?: {2,}|\t)", re.MULTILINE)
_BEGINS: Final = re.compile(rf"\s*{_HEADER.pattern}", re.MULTILINE)
_CELL: Final = re.compile(r"[^ \t]+(?: [^ \t]+)*")
#: Columns of pods -o wide, up to which rows may be truncated without loss.
_OF_PODS: Final = ("NAME", "STATUS", "IP", "NODE", "NOMINATED NODE")
_OF_ENDPOINTS: Final = ("NAME", "ENDPOINTS", "AGE")
_SHORT_PODS: Final = ("READY", "STATUS", "RESTARTS")
_NONE: Final = "<none>"
_MORE: Final = re.compile(r" \+ \d+ more\.\.\.$")
#: Status of a pod that keeps its address. Others may have ended: what they show is the reason of a
#: container, of which there are many.
_RUNNING: Final = "Running"
_KEEPS: Final = frozenset(
    (
        _RUNNING,
        "NotReady",
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "Terminating",
        "Unknown",
    )
)
_NODE: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@value(kw_only=True)
class _Row:
    """A pod of the table."""

    namespace: str | None
    name: str
    status: str
    address: str | None
    node: str | None


def sniff(text: str) -> bool:
    """Return whether the text begins with the header of a table."""
    return _BEGINS.match(text) is not None


def parse(text: str, file: str) -> Iterator[object]:
    """Yield the pods of all tables.

    Raises:
        ParseError: a line is no row of its table, or the table lacks columns that are needed.
    """
    rows = list(_rows(text, file))
    hosts = _host_addresses(rows)
    nodes: dict[str, set[str | None]] = {}
    for row in rows:
        if row.address is not None and row.status in _KEEPS:
            nodes.setdefault(row.address, set()).add(row.node)
    for row in rows:
        yield _pod(row, hosts, nodes)


def _pod(
    row: _Row, hosts: Mapping[str | None, str | None], nodes: Mapping[str, set[str | None]]
) -> dict[str, object]:
    sure = row.status in _KEEPS and len(nodes.get(row.address or "", ())) == 1
    host = hosts.get(row.node)
    return {
        "kind": "Pod",
        "metadata": {"namespace": row.namespace, "name": row.name},
        "spec": {"nodeName": row.node, "hostNetwork": host is None or host == row.address},
        "status": {"podIP": row.address if sure else None},
    }


def _host_addresses(rows: Sequence[_Row]) -> dict[str | None, str | None]:
    """Return each node's address, as far as running pods share it; None if two are shared."""
    shared = Counter(
        (row.node, row.address)
        for row in rows
        if row.status == _RUNNING and row.node is not None and row.address is not None
    )
    found: dict[str | None, str | None] = {}
    for (node, address), number in shared.items():
        if number > 1:
            found[node] = None if node in found else address
    return found


def _rows(text: str, file: str) -> Iterator[_Row]:
    header: list[str] | None = None
    seen: set[tuple[str, str]] = set()
    for number, written in enumerate(text.split("\n"), 1):
        line = written.rstrip("\r")
        where = _Line(line, Location(file, number))
        if not line.strip():
            header = None
        elif header is None or _HEADER.match(line):
            header, seen = where.header(), set()
        else:
            cells = where.cells(header)
            named = cells.get("NAMESPACE", ""), cells["NAME"]
            if named in seen:  # which of the two is older is not known
                where.fail("the same object a second time; was it taken with --watch?", 0)
            seen.add(named)
            if "ENDPOINTS" in header:
                where.check_endpoints(cells["ENDPOINTS"], header.index("ENDPOINTS"))
            else:
                yield where.pod(cells, header)


@value
class _Line:
    """One line, and its location."""

    text: str
    location: Location

    def header(self) -> list[str]:
        """Return the names of the columns."""
        names = [found[0] for found in _CELL.finditer(self.text)]
        if _HEADER.match(self.text) is None:
            self.fail("expected the header of a table", 0)
        if set(_OF_PODS) <= set(names) or set(_OF_ENDPOINTS) <= set(names):
            return names
        if {"IP", "NODE"} <= set(names):
            self.fail(
                "this table is cut off on the right: no column NOMINATED NODE", len(names) - 1
            )
        if set(_SHORT_PODS) <= set(names):
            self.fail("this table has no nodes; expected `kubectl get pods -A -o wide`", 0)
        self.fail(f"not a table of pods or of endpoints; {WANTED}", 0)

    def cells(self, header: Sequence[str]) -> dict[str, str]:
        """Return the cells by their columns; those of labels at the end may be empty."""
        cells = [found[0] for found in _CELL.finditer(self.text)]
        least = header.index(_OF_PODS[-1] if _OF_PODS[-1] in header else _OF_ENDPOINTS[-1]) + 1
        if not least <= len(cells) <= len(header):
            self.fail(f"expected {len(header)} columns as in the header, not {len(cells)}", 0)
        return dict(zip(header, cells, strict=False))

    def pod(self, cells: Mapping[str, str], header: Sequence[str]) -> _Row:
        """Return the pod of a row."""
        address, node = cells["IP"], cells["NODE"]
        if address != _NONE and address_from_text(address) is None:
            self.fail("expected an address or <none>", header.index("IP"))
        if node != _NONE and _NODE.fullmatch(node) is None:
            self.fail("expected the name of a node or <none>", header.index("NODE"))
        return _Row(
            namespace=cells.get("NAMESPACE"),
            name=cells["NAME"].removeprefix("pod/"),
            status=cells["STATUS"],
            address=None if address == _NONE else address,
            node=None if node == _NONE else node,
        )

    def check_endpoints(self, cell: str, column: int) -> None:
        """Refuse a cell that lists something other than endpoints."""
        for each in [] if cell == _NONE else _MORE.sub("", cell).split(","):
            if address_and_port_from_text(each) is None:
                self.fail("expected endpoints, or <none>", column)

    def fail(self, message: str, column: int) -> NoReturn:
        """Raise a ParseError about a column of this line, from 0."""
        cells = list(_CELL.finditer(self.text))
        span = cells[min(column, len(cells) - 1)].span() if cells else (0, 1)
        raise ParseError(message, location=self.location, line=self.text, span=span)
