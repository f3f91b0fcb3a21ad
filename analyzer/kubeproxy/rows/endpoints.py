"""The KUBE-SEP chains of a dump, read as text, many at a time.

Most of a large dump are such chains, of two rows each. If a long piece of text has nothing else,
the reader need not split it into chains, and none has to be read one by one: one search returns
the words of all. Odd chains are left to `plain` and the reader.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from analyzer.kubeproxy import names
from analyzer.kubeproxy.rows.shapes import Shapes, are_hosts, is_port
from analyzer.parsers.rows import Skimmed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

#: Chain, address, protocol, address and port, port.
_Words: TypeAlias = tuple[str, str, str, str, str]

PROTOCOLS: Final = ("tcp", "udp", "sctp")
ROWS_OF_ENDPOINT: Final = 2
#: Look-ups of an address that are done by searching the text.
_FEW: Final = 10
#: Characters of rows that are searched together: their words fit into a processor's cache.
_PIECE: Final = 1 << 17
_FIRST: Final = f"-A {names.ENDPOINT_PREFIX}"


class EndpointRows(Skimmed):
    """Plain KUBE-SEP chains: where each sends flows, as written.

    Attributes:
        chains: by the name of a chain: address and port of its endpoint, followed by a slash and
            the protocol unless that is tcp.
        escapes: whether there is a backslash in the rows, or after them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.chains: dict[str, str] = {}
        self.escapes = True
        #: The same for chains that were read one by one.
        self._alone: dict[str, str] = {}
        #: The addresses of all, each between two slashes.
        self._addresses: list[str] = []
        self._apart: frozenset[str] | None = None
        self._asked = 0

    def __len__(self) -> int:
        return len(self.chains) + len(self._alone)

    def __contains__(self, chain: object) -> bool:
        return chain in self.chains or chain in self._alone

    def add(self, chain: str, address: str, protocol: str, destination: str) -> None:
        """Add one chain that was read by itself."""
        of = "" if protocol == PROTOCOLS[0] else f"/{protocol}"
        self._alone[chain] = destination + of
        self._addresses.append(f"/{address}/")
        self._apart = None

    def has_address(self, address: object) -> bool:
        """Return whether an endpoint is known to have `address`."""
        self._asked += 1
        if self._asked < _FEW:  # splitting the addresses takes longer than searching them once
            text = f"/{address}/"
            return any(text in each for each in self._addresses)
        return str(address) in self.addresses()

    def addresses(self) -> frozenset[str]:
        """Return the addresses of all, as written."""
        if self._apart is None:
            self._apart = frozenset(filter(None, "".join(self._addresses).split("/")))
        return self._apart

    def destinations(self, chains: Sequence[str], protocol: str) -> tuple[str, ...] | None:
        """Return where the chains send flows of `protocol`; None: one of them is not known."""
        try:
            if self._alone:
                found = tuple([self._alone.get(each) or self.chains[each] for each in chains])
            else:
                found = tuple(map(self.chains.__getitem__, chains))
        except KeyError:
            return None
        # All at once: most Services have many. The parts of one split text are side by side in
        # memory; those of the rows are scattered, and each would be a cache miss when it is
        # written.
        together = "\n".join(found)
        if protocol == PROTOCOLS[0]:
            return None if "/" in together else tuple(together.split("\n"))
        mark = f"/{protocol}"
        bare = together.replace(mark, "")
        as_many = len(together) - len(bare) == len(mark) * len(found)
        return tuple(bare.split("\n")) if as_many else None

    @classmethod
    def skim(cls, text: str, start: int, family: str, table: str) -> EndpointRows:
        """Find pieces of text that have such chains only."""
        found = cls()
        found._read(text, start, family, table)
        return found

    def _read(self, text: str, start: int, family: str, table: str) -> None:
        at = text.find(_FIRST, start) if table == "nat" else -1
        if at < 0:
            return
        self.escapes = text.find("\\", start) >= 0
        counted = text.startswith("[", start)
        endpoint = Shapes(family, counted=counted, escapes=self.escapes).endpoint
        start = text.rfind("\n", 0, at) + 1
        while start < len(text):
            end = _end_of_piece(text, start)
            found, whole = _chains_in(endpoint, text, start, end)
            # If chains are in the order of their names, rows of other chains follow the last one.
            last = end if whole else text.find("\n", text.rfind(_FIRST, start, end)) + 1
            if last < end:
                found, whole = _chains_in(endpoint, text, start, last)
            if whole and self._take(found, family):
                self.spans.append((start, last))
            if last < end:
                return
            start = end

    def _take(self, found: list[_Words], family: str) -> bool:
        """Add the chains unless one of them is odd; return whether they were added."""
        chains, addresses, protocols, to, ports = zip(*found, strict=True)
        kinds = set(protocols)
        if not (
            kinds.issubset(PROTOCOLS)
            and all(map(is_port, set(ports)))
            and are_hosts(addresses, family)
            and len(f"{''.join(chains)}.".split(None, 1)) == 1  # no blank, not even at the end
        ):
            return False
        before = len(self.chains)
        if kinds != {PROTOCOLS[0]}:
            of = zip(to, protocols, strict=True)
            # Inlined: there are many, and each call would take twice as long.
            to = tuple([t if p == PROTOCOLS[0] else f"{t}/{p}" for t, p in of])
        self.chains.update(zip(chains, to, strict=True))
        if len(self.chains) < before + len(chains):
            self._forget()  # the same chain twice: reading row by row reports what is wrong
            return False
        self._addresses.append(f"/{'/'.join(addresses)}/")
        self._apart = None
        return True

    def _forget(self) -> None:
        self.spans.clear()
        self.chains.clear()
        self._alone.clear()
        self._addresses.clear()
        self._apart = None


def _chains_in(
    endpoint: re.Pattern[str], text: str, start: int, end: int
) -> tuple[list[_Words], bool]:
    """Return the words of the plain chains in a piece, and whether it has nothing else."""
    found: list[_Words] = endpoint.findall(text, start - 1, end)
    rows = text.count("\n", start, end)
    return found, bool(found) and rows == ROWS_OF_ENDPOINT * len(found)


def _end_of_piece(text: str, start: int) -> int:
    """Return where a piece that begins at a row ends, so that no KUBE-SEP chain is cut in two."""
    # The second row of an endpoint never marks flows.
    mark = text.find(f" -j {names.MARK_MASQUERADE}\n", start + _PIECE)
    end = text.rfind("\n", start, mark) + 1 if mark >= 0 else 0
    return end or len(text)
