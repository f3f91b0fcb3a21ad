"""Frontends whose rules differ only in the number of endpoints.

Theory of operation
===================

A block of rows draws the endpoints of a Service: one with ``--mode random`` for each endpoint but
the last, which takes the remaining flows; with session affinity, a row for each endpoint before
these matches clients that are recorded there. A flow that reaches a block is drawn by its rows,
whatever comes before. So if all flows of a route reach one block, and what happens to them is the
same for all endpoints of one kind, whose chains are alike and which no other rules distinguish,
the same holds for any frontend that has blocks of any length in the places of these, with
endpoints of the same kinds. It is derived from the routes of one of them.

In all other cases (some flows go astray on the way to the block, or something is not known, or an
endpoint is in more than one place), frontends are compared by all of their rows (`alike`).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.fastpath.alike import (
    CHAIN,
    COMMENT,
    COUNTS,
    TO,
    TOKENS,
    IptablesClosures,
    endpoint_of,
)
from analyzer.kubeproxy.fastpath.around import Around, as_host
from analyzer.kubeproxy.rows.plain import shares_of
from analyzer.kubeproxy.rows.plain_shares import (
    Drawn,
    Marked,
    MasqueradeAndLoss,
    MasqueradeAndLossOf,
    PlainShares,
)
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, RouteShares, Source
from analyzer.model.addresses import Address
from analyzer.model.probability import NEVER, Bounds
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from analyzer.kubeproxy.routes.source_routes import Way

    #: Where all flows of a route go: to a block, by its position, or to one of several, not known
    #: which. None: to rows that draw no endpoint.
    Leads: TypeAlias = tuple[int | None, ...]

_END: Final = rf"{names.ENDPOINT_PREFIX}\S+"
#: The rows of a chain that draw endpoints; comments and counters are left out.
_BLOCK: Final = re.compile(
    rf"(?m:^)((?:-A -m statistic --mode random --probability \S+ -j {_END}\n)*)-A -j ({_END})\n"
)
_DRAW: Final = re.compile(r" --probability (\S+) -j (\S+)\n")
#: The rows before them that match known clients.
_KNOWN: Final = re.compile(
    r"(?m:^)(?:-A -m recent --rcheck (--seconds \d+ --reap) --name (\S+)( --mask \S+)? --rsource "
    r"-j \2\n)+"
)
_KNOWN_BY: Final = re.compile(r" -j (\S+)\n")
_BARE: Final = re.compile(rf"{COMMENT}|{COUNTS}")
#: Most endpoints of a frontend from which the results of others are derived.
_MOST: Final = 100
#: Most blocks of one frontend: all ways to reach some of them are tried for each.
_MOST_BLOCKS: Final = 3
_NEVER: Final = Bounds(NEVER, NEVER)


class FrontendFamily:
    """What flows to a frontend may hit, apart from its blocks.

    Attributes:
        key: equal for frontends that are alike except for the length of their blocks.
        around: as in `Closure`.
        sorts: by endpoint as it is written: its kind, and in which of the blocks it is.
    """

    def __init__(
        self, key: Hashable, around: frozenset[str], sorts: Mapping[str, Hashable], *blocks: Drawn
    ) -> None:
        self.around = around
        self.sorts = sorts
        self._blocks = blocks
        self._drawn: dict[Leads, Drawn] = {}
        #: Whether endpoints are in the same order for any order of the blocks.
        self.is_ordered = len({_texts(each) for each in permutations(blocks)}) == 1
        self.key = key, self.is_ordered

    @property
    def leads(self) -> Iterator[Leads]:
        """All places where flows of a route may go."""
        every = range(len(self._blocks))
        some = combinations if self.is_ordered else permutations
        for number in range(1, len(every) + 1):
            for leads in some(every, number):
                yield leads
                yield *leads, None

    def drawn(self, leads: Leads) -> Drawn:
        """Return how endpoints are drawn if flows reach one of several blocks."""
        if leads not in self._drawn:
            self._drawn[leads] = self._any_of(leads)
        return self._drawn[leads]

    def _any_of(self, leads: Leads) -> Drawn:
        blocks = [self._blocks[at] for at in leads if at is not None]
        if len(leads) == 1:
            return blocks[0]
        every = [dict(zip(each.texts, each.draws, strict=True)) for each in blocks]
        every += [{}] * (len(leads) - len(blocks))
        texts = _texts(blocks)
        drawn = [[each.get(text, _NEVER) for each in every] for text in texts]
        draws = [Bounds(min(b.lower for b in of), max(b.upper for b in of)) for of in drawn]
        return Drawn(None, Marked.NONE, texts, tuple(draws))


def _texts(blocks: Iterable[Drawn]) -> tuple[str, ...]:
    """Return the endpoints of blocks, each once."""
    return tuple(dict.fromkeys(text for each in blocks for text in each.texts))


class Families:
    """Finds out which frontends are alike except for the number of their endpoints."""

    def __init__(self, closures: IptablesClosures) -> None:
        self._closures = closures
        self._ends: dict[str, _End | None] = {}
        self._literals: dict[str, Around] = {}
        self._draws: dict[tuple[str, ...], tuple[Bounds, ...] | None] = {}

    def of(self, frontend: Frontend, protocol: str) -> FrontendFamily | None:
        """Return the frontend's own rows that its flows may hit; None: it is in no family."""
        met, around = self._closures.met(frontend), self._closures.around
        if met is None or around is None:
            return None
        rows, chains = met
        ends = self._ends_of(chains)
        if ends is None:
            return None
        drawn: list[_Rows] = []
        own = [_without_blocks(text, drawn) for name, text in chains.items() if name not in ends]
        text = _BARE.sub("", "\n".join((*rows, *own)))
        if '"' in text or not drawn or names.ENDPOINT_PREFIX in text or TO.search(text):
            return None
        numbers = {name: at for at, name in enumerate(n for n in chains if n not in ends)}
        asked = None if frontend.address is None else as_host(frontend.address)
        others: dict[str, str] = {}
        port = str(frontend.port)

        def replaced(token: re.Match[str]) -> str:
            match token.lastgroup:
                case "chain":
                    return f"#{numbers.get(token[0], token[0])}"
                case "host" if token[0] == asked:
                    return "@"
                case "host":
                    return others.setdefault(token[0], f"%{len(others)}")
                case "port":
                    return "@" if token[0] == port else token[0]
                case _:
                    return token[0]

        text = TOKENS.sub(replaced, text)
        whole = "".join((text, *sorted({end.alike for end in ends.values()})))
        if whole not in self._literals:
            self._literals[whole] = around.and_of(whole)
        literals = self._literals[whole]
        kinds = self._kinds(ends, literals, {*others, asked or ""})
        if kinds is None or set(kinds) != {name for each in drawn for name in each.chains}:
            return None
        blocks = [self._block(each, kinds) for each in dict.fromkeys(drawn)]
        known = [each for each in blocks if each is not None]
        if len(known) < len(blocks) or len(known) > _MOST_BLOCKS:
            return None
        sets = [frozenset(each.texts) for each in known]
        sorts = {to: (kind, tuple([to in each for each in sets])) for to, kind in kinds.values()}
        address = frontend.address
        key = (
            *(frontend.kind, protocol, text, literals.of_port(frontend.port)),
            None if address is None else self._closures.relation(address, literals),
            tuple([self._closures.is_own(each) for each in others]),
            # Two equal blocks count as one.
            tuple([drawn.index(each) for each in drawn]),
            frozenset(sorts.values()),
        )
        return FrontendFamily(key, literals.told, sorts, *known)

    def _kinds(
        self, ends: Mapping[str, _End], around: Around, named: Iterable[str]
    ) -> dict[str, tuple[str, Hashable]] | None:
        """Return the DNAT destination of each endpoint's chain, and of which kind it is.

        None: an address is that of more than one, or `named` by other rows.
        """
        found: dict[str, tuple[str, Hashable]] = {}
        hosts: set[str] = set(named)
        listed = self._closures.listed
        for name, end in ends.items():
            if end.host in hosts or end.host in listed.by_host:
                return None
            hosts.add(end.host)
            port = end.endpoint.port
            relation = self._closures.relation(end.endpoint.address, around)
            of_port = around.of_port(port), tuple(listed.by_port.get(port or 0, ()))
            found[name] = end.to, (end.alike, relation, of_port)
        return found

    def _ends_of(self, chains: Mapping[str, str]) -> dict[str, _End] | None:
        """Return the chains of endpoints; None: one has more than an endpoint's rows."""
        found: dict[str, _End] = {}
        for name, text in chains.items():
            if not name.startswith(names.ENDPOINT_PREFIX):
                continue
            if name not in self._ends:
                self._ends[name] = _end(name, text)
            end = self._ends[name]
            if end is None:
                return None
            found[name] = end
        return found

    def _block(self, rows: _Rows, kinds: Mapping[str, tuple[str, Hashable]]) -> Drawn | None:
        """Return how a block draws; None: an endpoint twice, or one of its rows never does."""
        if len(set(rows.chains)) < len(rows.chains):
            return None
        texts = rows.probabilities
        if texts not in self._draws:  # most blocks have those of few numbers of endpoints
            self._draws[texts] = shares_of(texts)
        draws = self._draws[texts]
        if draws is None:
            return None
        return Drawn(None, Marked.NONE, tuple([kinds[name][0] for name in rows.chains]), draws)


@value
class _End:
    """The chain of one endpoint.

    Attributes:
        to: the endpoint as written in its DNAT row.
        host: its address as rows match on it.
        alike: the text of its rows, without these and without the chain's name.
    """

    to: str
    endpoint: Endpoint
    host: str
    alike: str


def _end(name: str, text: str) -> _End | None:
    """Return the chain of an endpoint; None: it has several endpoints, or leads elsewhere."""
    (to, *more) = TO.findall(text) or ("",)
    endpoint = endpoint_of(to)
    if endpoint is None or endpoint.port is None or more:
        return None
    host = as_host(endpoint.address)
    bare = _BARE.sub("", text).replace(name, "#")
    alike = bare.replace(f" -s {host} ", " -s @ ").replace(f" {to}\n", " @\n")
    return None if '"' in alike or re.search(CHAIN, alike) else _End(to, endpoint, host, alike)


@value
class _Rows:
    """The rows of a block: the endpoints' chains, and the probability of each but the last."""

    chains: tuple[str, ...]
    probabilities: tuple[str, ...]


def _without_blocks(text: str, drawn: list[_Rows]) -> str:
    """Return the text of a chain without its blocks, which are added to `drawn`."""
    own: list[_Rows] = []

    def block(found: re.Match[str]) -> str:
        draws = _DRAW.findall(found[1])
        chains = (*[chain for _, chain in draws], found[2])
        own.append(_Rows(chains, tuple([probability for probability, _ in draws])))
        return f"block {len(drawn) + len(own)}\n"

    def known(found: re.Match[str]) -> str:
        asked = set(re.findall(r" --seconds .*? --name | --mask \S+", found[0]))
        is_of_block = tuple(_KNOWN_BY.findall(found[0])) in {each.chains for each in own}
        # Otherwise it still names chains of endpoints, and the frontend is in no family.
        return f"known {sorted(asked)}\n" if is_of_block else found[0]

    bare = _BLOCK.sub(block, _BARE.sub("", f"{text}\n"))
    left = _KNOWN.sub(known, bare)
    drawn += own
    return left


@value
class FamilyRoute:
    """A route as it is for all frontends of its family.

    Attributes:
        leads: where its flows go.
        after: what happens to them after DNAT, by the sort of the endpoint.
        address: the one that represents its sources.
    """

    route: Route
    address: Address | None
    leads: Leads
    after: Mapping[Hashable, MasqueradeAndLoss]

    def of(self, frontend: Frontend, protocol: str, family: FrontendFamily) -> Way:
        """Return the same route to another frontend of the family."""
        route = self.route
        shares: RouteShares = ()
        if self.leads != (None,):
            drawn = family.drawn(self.leads)
            shares = PlainShares(drawn, protocol, self._after(drawn, family))
        told = route.unresolved, route.network, route.astray, route.also
        return Route(frontend, route.source, shares, *told), self.address

    def _after(self, drawn: Drawn, family: FrontendFamily) -> MasqueradeAndLossOf:
        every = list(self.after.values())
        if all(each == every[0] for each in every):
            return every[0]
        sorts = [family.sorts[text] for text in drawn.texts]
        of = {e: self.after[sort] for e, sort in zip(drawn.endpoints, sorts, strict=True)}
        return lambda _, endpoint: of[endpoint]


def read_off(ways: Sequence[Way], family: FrontendFamily) -> tuple[FamilyRoute, ...] | None:
    """Return the routes of a frontend for all in its family; None: they hold for it alone."""
    if len(family.sorts) > _MOST:
        return None
    found: list[FamilyRoute] = []
    for route, address in ways:
        told = _told(route, address, family)
        if told is None:
            return None
        if route.source is Source.HAIRPIN and told.leads != (None,):
            # Its endpoints are those of all routes: they must be those of one block, in its order.
            first = next((each.leads for each in found if each.leads != (None,)), (None,))
            (block, *more), texts = told.leads, family.drawn(told.leads).texts
            if more or block is None or block != first[0] or len(texts) < len(family.sorts):
                return None
        found.append(told)
    return tuple(found)


def _told(route: Route, address: Address | None, family: FrontendFamily) -> FamilyRoute | None:
    """Return a route without its endpoints; None: it is not drawn from some of the blocks alone."""
    if route.unresolved != NEVER:
        return None
    if not route.shares:
        return FamilyRoute(route, address, (None,), {})
    drawn = [(share.endpoint, share.share) for share in route.shares]
    fitting = [leads for leads in family.leads if _pairs(family.drawn(leads)) == drawn]
    if len(fitting) != 1:
        return None
    after: dict[Hashable, MasqueradeAndLoss] = {}
    for share, text in zip(route.shares, family.drawn(fitting[0]).texts, strict=True):
        one, sort = MasqueradeAndLoss(share.masquerade, share.lost), family.sorts[text]
        if after.setdefault(sort, one) != one:
            return None
    return FamilyRoute(route, address, fitting[0], after)


def _pairs(drawn: Drawn) -> list[tuple[Endpoint, Bounds]]:
    return list(zip(drawn.endpoints, drawn.draws, strict=True))
