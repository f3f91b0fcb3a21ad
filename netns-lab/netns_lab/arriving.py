"""Predicted outcome of a route's flows: how many reach each endpoint, how many the rules end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from functools import reduce
from typing import Final

from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, Share
from analyzer.model.endings import PASSES, Ending, EndKind, total
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic, capped_sum
from analyzer.model.value import replace
from netns_lab.backend import SocketAddress

#: Ends caused by a rule. At the others, the packet continues unchanged.
_ENDED: Final = frozenset({EndKind.REFUSED, EndKind.DROPPED, EndKind.REJECTED})
#: Of these, `Ending.how` says whether they are dropped or rejected.
_BY_KUBE_PROXY: Final = frozenset({EndKind.REFUSED, EndKind.LEFT_OVER})
NOTHING: Final = Bounds(NEVER, NEVER)


@dataclass(frozen=True, slots=True)
class LostBeyond:
    """Of the flows sent to an endpoint, what the rules of another node do.

    Attributes:
        ended: those that they end.
        unanswered: those that they let pass, and whose answers they end.
    """

    ended: Bounds = NOTHING
    unanswered: Bounds = NOTHING


NOTHING_BEYOND: Final = LostBeyond()
#: Gives what rules on other nodes do to the flows sent to an endpoint.
Beyond = Callable[[Share], LostBeyond]


@dataclass(frozen=True, slots=True)
class Arriving:
    """Shares of all flows of a route.

    Attributes:
        shares: of each endpoint, the flows that reach it.
        lost: of each endpoint, the flows sent to it that rules after the DNAT end.
        ended: the flows that any rule ends, wherever it is.
        unanswered: of each endpoint, of the flows that reach it, those whose answers rules end;
            only of endpoints of which there may be any.
        by_rules: whether only rules end flows; else the dump does not show what may, for
            example a port of the node to which a rule redirects them.
    """

    shares: Mapping[SocketAddress, Bounds]
    lost: Mapping[SocketAddress, Bounds]
    ended: Bounds
    unanswered: Mapping[SocketAddress, Bounds] = field(default_factory=dict)
    by_rules: bool = True

    @property
    def silent(self) -> list[SocketAddress]:
        """Endpoints of which no flow is answered, or of which it is not known whether any is."""
        return [end for end, each in self.unanswered.items() if _says_of_none(each)]

    @property
    def answers_some(self) -> bool:
        """Whether an endpoint may answer some of its flows, and others not."""
        return any(each.upper and not _says_of_none(each) for each in self.unanswered.values())


def _says_of_none(unanswered: Bounds) -> bool:
    return unanswered.lower == ALWAYS or unanswered == Bounds(NEVER, ALWAYS)


def arriving(route: Route, beyond: Beyond = lambda _: NOTHING_BEYOND) -> Arriving:
    """Return the prediction for a route's flows, given what ends them beyond this node."""
    shares: dict[SocketAddress, Bounds] = {}
    lost: dict[SocketAddress, Bounds] = {}
    unanswered: dict[SocketAddress, Bounds] = {}
    arrive, behind = [], []
    for each in route.shares:
        answers = tuple([e for e in each.lost if e[0].kind is EndKind.UNANSWERED])
        here, past = total(e for e in each.lost if e not in answers), beyond(each)
        there = past.ended
        share, gone = each.share, NOTHING
        if (here, there) != (NOTHING, NOTHING):  # as few have: of many endpoints this takes long
            passes = Bounds(~here.upper * ~there.upper, ~here.lower * ~there.lower)
            share = _product(each.share, passes)
            gone = _product(each.share, Bounds(~passes.upper, ~passes.lower))
            behind.append(gone)  # what is ended here does not come there
        arrive.append(share)
        if each.endpoint.port is not None:
            sockaddr = sockaddr_of_endpoint(each.endpoint)
            shares[sockaddr], lost[sockaddr] = share, gone
            if answers:
                unanswered[sockaddr] = _of_the_rest(total(answers), here)
            if past.unanswered != NOTHING:
                more, known = _of_the_rest(past.unanswered, there), unanswered.get(sockaddr)
                unanswered[sockaddr] = more if known is None else _any_of(more, known)
            if any(end.kind is EndKind.UNKNOWN for end, _ in each.lost):  # or their answers are
                unanswered[sockaddr] = Bounds(unanswered.get(sockaddr, NOTHING).lower, ALWAYS)
    ends = route.astray
    ended = [bounds for end, bounds in ends if _is_ended(end)] + behind
    found = Bounds(capped_sum(b.lower for b in ended), capped_sum(b.upper for b in ended))
    by_rules = all(end.kind is not EndKind.UNKNOWN for end, _ in ends)
    if not by_rules:
        found = Bounds(found.lower, ~capped_sum(each.lower for each in arrive))
    return Arriving(shares, lost, found, unanswered, by_rules)


def ways_to_end(route: Route) -> frozenset[str]:
    """Return what rules of the node may do to flows that they end: ``rejected``, ``dropped``."""
    every = (*route.astray, *(end for share in route.shares for end in share.lost))
    ends = [end for end, bounds in every if _is_ended(end) and bounds.upper]
    return frozenset(
        "rejected"
        if each.kind is EndKind.REJECTED or (each.kind in _BY_KUBE_PROXY and each.how == "reject")
        else "dropped"
        for each in ends
    )


def _is_ended(end: Ending) -> bool:
    """Return whether a rule or a policy of the node drops or rejects flows that end so."""
    if end.kind is EndKind.LEFT_OVER:
        return bool(end.how)  # kube-proxy's rules after nat refuse what no draw takes
    return end.kind in _ENDED and end.how != PASSES


def either(one: Arriving, other: Arriving) -> Arriving:
    """Return bounds that hold whichever of two predictions is true."""
    return Arriving(
        {
            sockaddr: hull(one.shares.get(sockaddr, NOTHING), other.shares.get(sockaddr, NOTHING))
            for sockaddr in dict.fromkeys((*one.shares, *other.shares))
        },
        {
            sockaddr: hull(one.lost.get(sockaddr, NOTHING), other.lost.get(sockaddr, NOTHING))
            for sockaddr in dict.fromkeys((*one.lost, *other.lost))
        },
        hull(one.ended, other.ended),
        {
            sockaddr: hull(
                one.unanswered.get(sockaddr, NOTHING), other.unanswered.get(sockaddr, NOTHING)
            )
            for sockaddr in dict.fromkeys((*one.unanswered, *other.unanswered))
        },
        one.by_rules and other.by_rules,
    )


def seen_from(service: ServicePort, route: Route, own: Share) -> Route:
    """Return a hairpin route as it is for one endpoint, with only the bounds on others' shares."""
    rest = Bounds(NEVER, ~own.share.lower)
    others = [e for e in service.endpoints if e != own.endpoint]
    shares = (own, *(Share(each, rest, None) for each in others))
    return replace(route, shares=shares)


def of_sender(
    own: Arriving, itself: Share, others: Sequence[Arriving], *, is_here: bool
) -> Arriving:
    """Return the prediction for flows that an endpoint sends to its own Service.

    `own` says what happens to those that come back to it, the share `itself`. Those to other
    endpoints are flows of a pod like any other: `others` are the predictions for these, and one of
    them holds. `is_here`: it is a pod of the node. Whether others answer what comes from their own
    address is not predicted.
    """
    sockaddr = sockaddr_of_endpoint(itself.endpoint)
    if not is_here and itself.masquerade is not True:
        own = with_fields(own, unanswered={**own.unanswered, sockaddr: Bounds(NEVER, ALWAYS)})
    if not others:
        return own
    rest = reduce(either, others)
    shares, lost = {}, {}
    for each in dict.fromkeys((*own.shares, *rest.shares)):
        theirs = rest.shares.get(each, NOTHING)
        most = own.shares.get(each, NOTHING).upper
        shares[each] = Bounds(min(theirs.lower, most), min(theirs.upper, most))
        lost[each] = rest.lost.get(each, NOTHING)
    shares[sockaddr], lost[sockaddr] = own.shares[sockaddr], own.lost[sockaddr]
    theirs, back = rest.lost.get(sockaddr, NOTHING), lost[sockaddr]
    ended = Bounds(
        capped_sum((_less(rest.ended.lower, theirs.upper), back.lower)),
        capped_sum((_less(rest.ended.upper, theirs.lower), back.upper)),
    )
    unanswered = {each: of for each, of in rest.unanswered.items() if each != sockaddr}
    if sockaddr in own.unanswered:
        unanswered[sockaddr] = own.unanswered[sockaddr]
    return Arriving(shares, lost, ended, unanswered, own.by_rules and rest.by_rules)


def sockaddr_of_endpoint(endpoint: Endpoint) -> SocketAddress:
    """Return an endpoint's address, as an integer, and its port."""
    assert endpoint.port is not None
    return int(endpoint.address), endpoint.port


def _of_the_rest(part: Bounds, others: Bounds) -> Bounds:
    """Return a part of some flows as a part of those that are left without others."""
    if others == NOTHING:
        return part
    # All that is left may be that part, or none of it; a dyadic fraction of it need not exist.
    lower = ALWAYS if part.lower and ~part.lower == others.lower else NEVER
    return Bounds(lower, ALWAYS if part.upper else NEVER)


def _any_of(one: Bounds, other: Bounds) -> Bounds:
    """Return the bounds on what at least one of two things applies to."""
    return Bounds(max(one.lower, other.lower), capped_sum((one.upper, other.upper)))


def _less(one: Dyadic, other: Dyadic) -> Dyadic:
    """Return the difference of two probabilities, 0 if it is negative."""
    return ~(~one + other) if other < one else NEVER


def _product(one: Bounds, other: Bounds) -> Bounds:
    return Bounds(one.lower * other.lower, one.upper * other.upper)


def hull(one: Bounds, other: Bounds) -> Bounds:
    """Return the smallest bounds that contain both."""
    return Bounds(min(one.lower, other.lower), max(one.upper, other.upper))
