"""The end of one new flow: answered, refused, unreachable by ICMP, or silence.

Theory of operation
===================

A `Lot` holds bounds on the chance of each response to one draw. If the dump decides them, the
bounds are points. If not, any chances within them that sum to 1 are possible, and different ones at
each draw: so what is computed from a lot holds in every case.

The bounds of a lot with thousands of digits are rounded outwards, by up to 2**-256.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from analyzer.failure.models import Dead
from analyzer.failure.route_loss import RouteLoss
from analyzer.kubeproxy.view import Endpoint, FrontendKind, Route
from analyzer.model.endings import EndKind, total
from analyzer.model.probability import ALWAYS
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Denominators of more bits are rounded outwards to `_ROUNDED_TO`.
_MOST_BITS: Final = 1_024
_ROUNDED_TO: Final = 256


@enum.unique
class FlowResponse(enum.Enum):
    """How the first packet of a flow ends.

    ANSWERED: a living endpoint. SILENT: nothing comes back. REFUSED: an RST, or ICMP port
    unreachable. UNREACHABLE: ICMP host unreachable, or no neighbour.
    """

    ANSWERED = "answered"
    SILENT = "silent"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


RESPONSES: Final = tuple(FlowResponse)
#: How a dead endpoint may behave; silence is the default.
RESPONSES_OF_THE_DEAD: Final = (FlowResponse.SILENT, FlowResponse.REFUSED, FlowResponse.UNREACHABLE)
_ANY: Final = frozenset(FlowResponse)
_NO_ANSWER: Final = frozenset(RESPONSES_OF_THE_DEAD)

#: What kube-proxy's rules do with flows for which there is no endpoint.
_REFUSALS: Final[Mapping[str | None, frozenset[FlowResponse]]] = {
    "reject": frozenset((FlowResponse.REFUSED,)),
    "drop": frozenset((FlowResponse.SILENT,)),
}
_STOPPED: Final = frozenset((EndKind.REFUSED, EndKind.DROPPED, EndKind.REJECTED))
#: Whether such flows are answered is not known, whatever kind of address they go to.
_OPEN: Final = frozenset((EndKind.NOT_TRANSLATED, EndKind.UNKNOWN))

#: A share of flows, at least and at most, and the fates that it may have.
ResponseShare = tuple[Fraction, Fraction, frozenset[FlowResponse]]


@value
class Lot:
    """Bounds on the chance of each fate, in the order of `RESPONSES`."""

    bounds: tuple[tuple[Fraction, Fraction], ...]

    def __post_init__(self) -> None:
        assert len(self.bounds) == len(RESPONSES)
        assert sum(lower for lower, _ in self.bounds) <= 1 <= sum(upper for _, upper in self.bounds)

    @property
    def is_exact(self) -> bool:
        """Whether the chances are known."""
        return all(lower == upper for lower, upper in self.bounds)

    @property
    def fails(self) -> tuple[Fraction, Fraction]:
        """Bounds on the chance that a flow is not answered."""
        lower, upper = self.bounds[0]
        return 1 - upper, 1 - lower

    def possible(self) -> tuple[FlowResponse, ...]:
        """Return the possible fates."""
        return tuple(f for f, (_, upper) in zip(RESPONSES, self.bounds, strict=True) if upper)

    def least(self, values: Sequence[Fraction]) -> Fraction:
        """Return the least mean of `values`, one for each fate, over all possible chances."""
        every = [(each, *pair) for each, pair in zip(values, self.bounds, strict=True) if pair[1]]
        every.sort()
        if every[0][0] == every[-1][0]:
            return every[0][0]
        found, rest = Fraction(0), 1 - sum(lower for _, lower, _ in every)
        # The rest goes where it costs least.
        for each, lower, upper in every:
            part = min(rest, upper - lower) if rest else rest
            rest -= part
            if each:
                found += each * (lower + part)
        return found


def of_responses(fates: Iterable[FlowResponse]) -> Lot:
    """Return the lot if only the set of possible fates is known."""
    some = frozenset(fates)
    return lot([(Fraction(0), Fraction(1), some)])


def lot(pieces: Iterable[ResponseShare]) -> Lot:
    """Return the lot of flows that consist of pieces: shares with the same possible fates."""
    every = [*pieces]
    least = {f: sum((lo for lo, _, may in every if may == {f}), Fraction(0)) for f in RESPONSES}
    most = {f: sum((up for _, up, may in every if f in may), Fraction(0)) for f in RESPONSES}
    # No fate has what certainly is that of others: of the pieces that cannot be its.
    others = {f: sum((lo for lo, _, may in every if f not in may), Fraction(0)) for f in RESPONSES}
    # And each has at least what the others leave.
    cannot = {f: sum((up for _, up, may in every if may != {f}), Fraction(0)) for f in RESPONSES}
    return Lot(
        tuple(
            _rounded(max(least[f], 1 - cannot[f]), min(most[f], 1 - others[f])) for f in RESPONSES
        )
    )


def _rounded(lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
    scale = 1 << _ROUNDED_TO
    if lower.denominator.bit_length() > _MOST_BITS:
        lower = Fraction(lower * scale // 1, scale)
    if upper.denominator.bit_length() > _MOST_BITS:
        upper = Fraction(-(-upper * scale // 1), scale)
    return lower, upper


def mixed(lots: Iterable[tuple[Fraction, Lot]]) -> Lot:
    """Return the mixture of lots, each with its probability; these sum to 1."""
    every = [*lots]
    return Lot(
        tuple(
            (
                sum((chance * each.bounds[at][0] for chance, each in every), Fraction(0)),
                sum((chance * each.bounds[at][1] for chance, each in every), Fraction(0)),
            )
            for at in range(len(RESPONSES))
        )
    )


#: The fate of a dead endpoint.
FateOf = Callable[[Endpoint], FlowResponse]


def lot_of(lost: RouteLoss, dead: Dead, fate_of: FateOf, refusal: str | None) -> Lot:
    """Return the lot of a new flow on a route.

    `refusal` is what the frontend answers with where it has no endpoint: reject or drop; None: it
    is not known what happens to flows that reach none.
    """
    route = lost.route
    pieces: list[ResponseShare] = []
    endpoints, shares = route.draws()
    gone = route.losses() or [()] * len(shares)
    # Where every draw is lost, no packet that is sent again does better.
    anew = _NO_ANSWER if lost.loss.lower == ALWAYS else _ANY
    for endpoint, share, endings in zip(endpoints, shares, gone, strict=True):
        away = total(endings)
        may = {FlowResponse.ANSWERED}
        if endpoint in dead.endpoints:
            may = {fate_of(endpoint)}
        elif endpoint in dead.uncertain:
            may = {FlowResponse.ANSWERED, fate_of(endpoint)}
        lower, upper = share.lower.as_fraction(), share.upper.as_fraction()
        least, most = away.lower.as_fraction(), away.upper.as_fraction()
        pieces.append((lower * (1 - most), upper * (1 - least), frozenset(may)))
        # What the node's own rules drop or reject conntrack never keeps: each packet is drawn
        # again. Flows whose answers are dropped it does keep.
        kept = may == {FlowResponse.ANSWERED} and all(
            ending.kind is EndKind.UNANSWERED for ending, _ in endings
        )
        lost_to = frozenset({FlowResponse.SILENT}) if kept else anew
        pieces.append((lower * least, upper * most, lost_to))
    nowhere = lost.nowhere
    sure = nowhere.lower.as_fraction()
    pieces.append((sure, sure, anew & _fates_of_none(route, refusal, is_all=sure == 1)))
    # Whether the rest reaches an endpoint, and which, is not known.
    rest = max(route.unresolved.as_fraction(), nowhere.upper.as_fraction() - sure)
    pieces.append((Fraction(0), rest, anew))
    return lot(_grouped(pieces))


def _fates_of_none(route: Route, refusal: str | None, *, is_all: bool) -> frozenset[FlowResponse]:
    """Return what may become of flows that are sent to no endpoint; `is_all`: no flow is."""
    if refusal in _REFUSALS:
        return _REFUSALS[refusal]
    if not is_all:  # a packet that is sent again may be sent to one
        return _ANY
    # Where nothing translates it, a ClusterIP may be the address of a DNS cache of the node.
    if any(ending.kind in _OPEN for ending, _ in route.astray):
        return _ANY
    stopped = all(ending.kind in _STOPPED for ending, _ in route.astray) and bool(route.astray)
    # No host has a ClusterIP; which host may have another address is not in the dump.
    is_cluster_ip = route.frontend.kind is FrontendKind.CLUSTER_IP
    return _NO_ANSWER if stopped or is_cluster_ip else _ANY


def _grouped(pieces: Iterable[ResponseShare]) -> list[ResponseShare]:
    """Return the pieces, those with the same fates as one: of thousands there are few."""
    found: dict[frozenset[FlowResponse], list[Fraction]] = {}
    for lower, upper, may in pieces:
        both = found.setdefault(may, [Fraction(0), Fraction(0)])
        both[0] += lower
        both[1] += upper
    return [(lower, upper, may) for may, (lower, upper) in found.items()]


@value
class Ended:
    """How a node's rules end flows to an endpoint, and whether they certainly do."""

    how: FlowResponse
    is_sure: bool


def counted(
    endpoints: Iterable[Endpoint],
    dead: Dead,
    fate_of: FateOf,
    ended: Callable[[Endpoint], Ended | None] = lambda _: None,
) -> tuple[Mapping[FlowResponse, int], Mapping[FlowResponse, int]]:
    """Return for each fate how many endpoints certainly have it, and how many may have it.

    `ended` returns how rules end flows to an endpoint; None: they do not.
    """
    sure: dict[FlowResponse, int] = {}
    perhaps: dict[FlowResponse, int] = {}
    for each in endpoints:
        if each in dead.endpoints:
            sure[fate_of(each)] = sure.get(fate_of(each), 0) + 1
            continue
        by_rules = ended(each)
        if by_rules is not None and by_rules.is_sure:
            sure[by_rules.how] = sure.get(by_rules.how, 0) + 1
        elif each in dead.uncertain:
            perhaps[fate_of(each)] = perhaps.get(fate_of(each), 0) + 1
        elif by_rules is not None:
            perhaps[by_rules.how] = perhaps.get(by_rules.how, 0) + 1
        else:
            sure[FlowResponse.ANSWERED] = sure.get(FlowResponse.ANSWERED, 0) + 1
    return sure, perhaps
