"""Dumps that are almost the same as one read before: only the difference is parsed.

Theory of operation
===================

Nodes of a cluster have nearly the same rules. The first dump is read as usual, and kept with its
digests. In a second one the rules of plain Services (a ClusterIP, its draws, its endpoints) that
are identical byte for byte are skipped, many chains in one comparison. What is left is a dump of
its own: everything that is not a plain Service's, Services with a changed rule, and one Service as
a witness. That is read as usual. Its result, and the digests of what was skipped, are the node's.

Why that is the result of the whole dump: a rule that leads to a plain Service matches flows to one
address and port, and rules for other addresses match none of them; so leaving out the rules of one
has no effect on others. And the routes of a plain Service follow from its own rules and from
grounds that all of them share (`kubeproxy.fastpath.grounds`), which are compared, as the witness
shows. If there is any obstacle (the grounds differ, a rule matches on an endpoint's address, a
Service is skipped and named elsewhere) the dump is read whole, and is the next to compare with.
Property tests compare this with reading each dump alone.

iptables-legacy sorts the chains in its dumps; iptables-nft lists them in the order of their
creation, and if that order differs, a dump is read whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from analyzer.cluster.content import block_of
from analyzer.cluster.pieces import TextPiece, find, lines_but, pieces_of
from analyzer.kubeproxy import names
from analyzer.kubeproxy.fastpath.grounds import PlainGrounds
from analyzer.kubeproxy.rows.plain_shares import Marked, PlainRoutes
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    from analyzer.kubeproxy.view import ServicePort, View
    from analyzer.model.addresses import Address

    #: Name, protocol and IP version of a ServicePort.
    ServicePortKey: TypeAlias = tuple[str, str, int | None]

#: Of the plain Services, as many as may differ; with more it is quicker to read all.
_MOST_DIFFERING: Final = 4
#: A dump with fewer plain Services is read as quickly as it is compared.
_FEWEST: Final = 8
_NAT: Final = b"*nat\n"
_COMMIT: Final = b"\nCOMMIT\n"
_DISPATCH: Final = b"-A " + names.SERVICES.encode() + b" "
_GROUP: Final = re.compile(rb"-A (\S+) .*\n(?:-A \1 .*\n)*+")
_TARGET: Final = re.compile(rb" -[jg] (\S+)")
_TO_HOST: Final = re.compile(rb"(?<!! )-d ([^ /]+)/(?:32|128) ")


def service_port_key(service: ServicePort) -> ServicePortKey:
    """Return what distinguishes a ServicePort from the others of its node."""
    return service.name.text, service.protocol, service.version


@value(kw_only=True)
class _Plain:
    """A ServicePort that may be passed over.

    Attributes:
        chains: of its own, which nothing else leads to.
        row: of KUBE-SERVICES.
        rules: how many rows it has in all.
    """

    key: ServicePortKey
    block: int
    digest: str
    chains: tuple[bytes, ...]
    row: bytes
    rules: int


@value(kw_only=True)
class Left:
    """What is left of a dump to parse, and what was skipped.

    Attributes:
        text: the rules to parse.
        places: for each line of it, its offset in the dump, from 0; -1 for lines that were added.
        passed: numbers of the ServicePorts that were skipped.
    """

    text: bytes
    places: list[int]
    passed: list[int]


class Reference:
    """One iptables-save dump that was parsed in full, prepared for comparison."""

    def __init__(
        self,
        data: bytes,
        view: View,
        grounds: PlainGrounds,
        digests: Mapping[ServicePortKey, str],
    ) -> None:
        self.grounds = grounds
        self.version = next((s.version for s in view.services if s.version is not None), None)
        start = data.find(_NAT)
        self._end = data.find(_COMMIT, start)
        self._groups = {m[1]: m.span() for m in _GROUP.finditer(data, start, self._end + 1)}
        self.plain = tuple(self._plain(data, view, digests))
        self.user = {chain: at for at, each in enumerate(self.plain) for chain in each.chains}
        self.row_user = {each.row: at for at, each in enumerate(self.plain)}
        self.rules = sum(each.rules for each in self.plain)
        self.witness = min(
            range(len(self.plain)), key=lambda at: self.plain[at].rules, default=None
        )
        self._pieces = tuple(self._cut(data, start))
        #: Of each chain, where its rows are.
        self._rows = {
            name: (number, first, last)
            for number, piece in enumerate(self._pieces)
            if not piece.is_declaration
            for name, first, last in piece.chains
        }
        self._ends: dict[str, list[int]] | None = None
        self._places: dict[bytes, list[int]] | None = None
        first, last = self._groups.get(names.SERVICES.encode(), (0, 0))
        rows = data[first:last].splitlines(keepends=True)
        self._known_rows = {row for row in rows if row not in self.row_user}
        del self._groups
        self.number_of = {each.key: at for at, each in enumerate(self.plain)}

    @property
    def is_useful(self) -> bool:
        """Whether enough can be skipped."""
        return len(self.plain) >= _FEWEST and bool(self._pieces)

    def _plain(
        self, data: bytes, view: View, digests: Mapping[ServicePortKey, str]
    ) -> Iterator[_Plain]:
        of_chain = {each.chain: (at, each) for at, each in self.grounds.services}
        frontends = {}
        for service in view.services:
            if (
                isinstance(service.routes, PlainRoutes)
                and len(service.frontends) == 1
                and not service.refusals
                and not service.unfilled
                and service.affinity is None
            ):
                frontends[service.frontends[0], service.protocol] = service
        start, end = self._groups.get(names.SERVICES.encode(), (0, 0))
        rows = data[start:end].splitlines(keepends=True)
        led: dict[bytes, int] = {}
        for target in _TARGET.findall(data):
            led[target] = led.get(target, 0) + 1
        by_place = {
            (each.address, each.port, each.protocol): (at, each) for at, each in of_chain.values()
        }
        for (frontend, protocol), service in frontends.items():
            found = by_place.get((str(frontend.address), frontend.port or 0, protocol))
            if found is None:
                continue
            at, plain = found
            chain = plain.chain.encode()
            if chain not in self._groups or at >= len(rows):
                continue
            first, last = self._groups[chain]
            text = data[first:last]
            if plain.unmarked is not Marked.NONE and plain.drawn.marks_for is None:
                continue  # a row of its own in KUBE-SERVICES marks its flows
            ends = [
                each
                for each in _TARGET.findall(text)
                if each.startswith(names.ENDPOINT_PREFIX.encode())
            ]
            chains = (chain, *ends)
            if (
                not rows[at].endswith(b" -j " + chain + b"\n")
                or len(set(chains)) < len(chains)
                or any(led.get(each) != 1 or each not in self._groups for each in chains)
            ):
                continue
            key = service_port_key(service)
            spans = [self._groups[each] for each in chains]
            yield _Plain(
                key=key,
                block=block_of(service),
                digest=digests[key],
                chains=chains,
                row=rows[at],
                rules=1 + sum(data.count(b"\n", *span) for span in spans),
            )

    def _cut(self, data: bytes, start: int) -> Iterator[TextPiece]:
        """Yield the declarations and rows of the chains, those together that stand together."""
        behind = start
        for is_declaration, chains in ((True, self._declared(data, start)), (False, self._rows_at)):
            run: list[tuple[bytes, int, int]] = []
            for name, first, last in chains:
                if run and run[-1][2] != first:
                    yield from pieces_of(data, run, behind, is_declaration=is_declaration)
                    behind, run = run[-1][2], []
                run.append((name, first, last))
            if run:
                yield from pieces_of(data, run, behind, is_declaration=is_declaration)
                behind = run[-1][2]

    def _declared(self, data: bytes, start: int) -> Iterator[tuple[bytes, int, int]]:
        at = start + len(_NAT)
        for line in data[at : self._end + 1].splitlines(keepends=True):
            if not line.startswith(b":"):
                break
            name = line[1:].partition(b" ")[0]
            if name in self.user and line == b":" + name + b" - [0:0]\n":
                yield name, at, at + len(line)
            at += len(line)

    @property
    def _rows_at(self) -> Iterator[tuple[bytes, int, int]]:
        return ((name, *span) for name, span in self._groups.items() if name in self.user)

    def with_endpoints_at(self, addresses: Iterable[Address]) -> Iterator[int]:
        """Yield the ServicePorts that have an endpoint at one of these addresses."""
        if self._ends is None:
            self._ends = {}
            for _, service in self.grounds.services:
                at = self.user.get(service.chain.encode())
                if at is None:
                    continue
                for end in service.drawn.endpoints:
                    self._ends.setdefault(str(end.address), []).append(at)
        for address in addresses:
            yield from self._ends.get(str(address), ())

    def at_host(self, host: bytes) -> Sequence[int]:
        """Return the ServicePorts with this address, as rules write it."""
        if self._places is None:
            self._places = {}
            for at, each in enumerate(self.plain):
                found = _TO_HOST.search(each.row)
                if found is not None:
                    self._places.setdefault(found[1], []).append(at)
        return self._places.get(host, ())

    def left_of(self, data: bytes, special: Sequence[Address]) -> Left | None:
        """Return what has to be parsed of a dump; None if all of it."""
        start = data.find(_NAT)
        if start < 0 or (start and data[start - 1 : start] != b"\n"):
            return None
        end = data.find(_COMMIT, start)
        if end < 0 or data.find(b"\n" + _NAT, end) >= 0:
            return None
        differing: set[int] = set(self.with_endpoints_at(special))
        if self.witness is not None:
            differing.add(self.witness)
        most = len(self.plain) // _MOST_DIFFERING
        passed: list[tuple[int, int]] = []
        missing: set[tuple[bytes, bool]] = set()
        pos = start
        for piece in self._pieces:
            found = find(data, piece.text, piece.first, pos, (end, piece.window))
            if found is not None:
                passed.append((found, found + len(piece.text)))
                pos = passed[-1][1]
                continue
            for name, first, last in piece.chains:
                one = piece.text[first:last]
                found = find(data, one, one[: one.index(b"\n") + 1], pos, (end, piece.window))
                if found is None:
                    differing.add(self.user[name])
                    missing.add((name, piece.is_declaration))
                    if len(differing) > most:
                        return None
                    continue
                passed.append((found, found + len(one)))
                pos = passed[-1][1]
        lines = [*lines_but(data, passed)]
        if not self._tell_others(lines, (start, end), differing):
            return None
        return (
            None
            if len(differing) > most
            else self._assembled(lines, (start, end), differing, missing)
        )

    def _tell_others(
        self, lines: Sequence[tuple[int, bytes]], nat: tuple[int, int], differing: set[int]
    ) -> bool:
        """Add the ServicePorts that other rules concern; return whether all are understood."""
        seen: set[int] = set()
        named: list[bytes]
        for at, line in lines:
            is_nat = nat[0] <= at <= nat[1]
            if not (is_nat and line.startswith(_DISPATCH)):
                # Any other row that names a chain that was skipped, or an address: that chain is
                # read.
                named = []
                if line.startswith(b":"):
                    named = [line[1:].partition(b" ")[0]]
                elif line.startswith(b"-A "):
                    named = [line[3:].partition(b" ")[0], *_TARGET.findall(line)]
                    host = _TO_HOST.search(line)
                    differing.update(() if host is None else self.at_host(host[1]))
                elif not line.startswith((b"#", b"*", b"COMMIT")):
                    return False
                differing.update(self.user[each] for each in named if each in self.user)
                continue
            user = self.row_user.get(line)
            if user is not None:
                if user in seen:
                    differing.add(user)
                seen.add(user)
            elif line not in self._known_rows:
                host = _TO_HOST.search(line)
                if host is None:
                    return False  # it may take flows to any address
                differing.update(self.at_host(host[1]))
                named = _TARGET.findall(line)  # the chain that they are sent to instead
                differing.update(self.user[each] for each in named if each in self.user)
        differing.update(at for at in range(len(self.plain)) if at not in seen)
        return True

    def _assembled(
        self,
        lines: Sequence[tuple[int, bytes]],
        nat: tuple[int, int],
        differing: set[int],
        missing: set[tuple[bytes, bool]],
    ) -> Left:
        """Return the lines that are left, with those of ServicePorts that differ put back.

        `missing` are chains whose declarations, or rows, the dump does not have as they are here.
        """
        kept = [
            (at, line)
            for at, line in lines
            if not nat[0] <= at <= nat[1]
            or not line.startswith(_DISPATCH)
            or (user := self.row_user.get(line)) is None
            or user in differing
        ]
        chains = [chain for at in sorted(differing) for chain in self.plain[at].chains]
        declarations = [b":" + c + b" - [0:0]\n" for c in chains if (c, True) not in missing]
        rows = [self._text_of(c) for c in chains if (c, False) not in missing]
        made: list[bytes] = []
        places: list[int] = []
        stage = 0  # before the declarations of nat, in them, in its rows, after it
        for at, line in kept:
            if stage == 0 and at == nat[0]:
                stage = 1
            elif stage == 1 and not line.startswith(b":"):
                made += declarations
                places += [-1] * len(declarations)
                stage = 2
            if stage == 2 and line.startswith(b"COMMIT"):  # noqa: PLR2004  # a stage
                for text in rows:
                    made.append(text)
                    places += [-1] * text.count(b"\n")
                stage = 3
            made.append(line)
            places.append(at)
        passed = [at for at in range(len(self.plain)) if at not in differing]
        return Left(text=b"".join(made), places=places, passed=passed)

    def _text_of(self, chain: bytes) -> bytes:
        number, first, last = self._rows[chain]
        return self._pieces[number].text[first:last]
