"""What happens after DNAT to flows that plain rows send to an endpoint.

A flow is masqueraded if it has the mark when it leaves: a Service's rule marks flows from outside
the cluster, and a KUBE-SEP chain those from the endpoint itself (hairpin). A flow that comes in and
stays on the node traverses INPUT and never POSTROUTING; one that the node makes traverses
POSTROUTING, wherever it goes. If other rules may do more (`quiet`), they are traversed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property

from analyzer.kubeproxy.rows.plain import PlainTable
from analyzer.kubeproxy.rows.plain_shares import (
    Marked,
    MasqueradeAndLoss,
    MasqueradeAndLossOf,
    Unmarked,
    network_of,
)
from analyzer.kubeproxy.view import Endpoint, Source
from analyzer.model.addresses import Address
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:  # only loaded for dumps that need it
    from typing import Final

    from analyzer.kubeproxy.routes.packets import First
    from analyzer.kubeproxy.routes.walks import NatWalks
    from analyzer.model.packet import Mark
    from analyzer.semantics.onward import Onward

#: Number of endpoints from which on all are evaluated at once.
MANY: Final = 64


class PlainMasquerade:
    """What happens after DNAT to flows of plain routes; `own` are the node's addresses, if known.

    `quiet` returns whether rules outside of nat let all plain flows pass unchanged.
    """

    def __init__(
        self,
        table: PlainTable,
        walks: Callable[[], NatWalks],
        own: tuple[Address, ...],
        quiet: Callable[[], bool],
    ) -> None:
        self._table = table
        self._walks = walks
        self._own = own
        self._quiet = quiet

    def after_dnat(
        self,
        source: Source,
        address: Address | None,
        unmarked: Unmarked,
        first: First | None = None,
    ) -> MasqueradeAndLossOf:
        """Return what happens to flows from `address` after DNAT; None: address not known.

        `unmarked` is the network whose flows the Service's rule does not mark. `first` is what is
        known of the flows before DNAT.
        """
        marked = _is_marked(address, unmarked)
        special = {*self._own, *([] if address is None else [address])}
        if not self.is_plain:
            return self._walked(source, address, marked, first)
        # Only a mark decides, unless the flow stays on the node or returns to its source.
        if address is None:
            marked |= Ternary.UNKNOWN  # it may be the endpoint itself: a hairpin
        made_here = source is Source.NODE
        if not any(map(self._table.endpoints.has_address, special)):
            return self.usual(source, address, unmarked)

        def after(_: str, endpoint: Endpoint) -> MasqueradeAndLoss:
            if endpoint.address in self._own and not made_here:
                return MasqueradeAndLoss(False)
            hairpin = Ternary.of(endpoint.address == address)
            certain = marked | hairpin
            if certain is not Ternary.FALSE and not self._own and not made_here:
                certain = Ternary.UNKNOWN
            return _known(certain)

        return after

    def usual(
        self, source: Source, address: Address | None, unmarked: Unmarked
    ) -> MasqueradeAndLoss:
        """Return what happens to flows to endpoints with neither a node's address nor `address`.

        It holds if the table `is_plain`.
        """
        marked = _is_marked(address, unmarked)
        if address is None:
            marked |= Ternary.UNKNOWN  # it may be the endpoint itself: a hairpin
        known = self._own or source is Source.NODE or marked is Ternary.FALSE
        return _known(marked if known else Ternary.UNKNOWN)

    def after_dnat_of_hairpin(self, first: First | None = None) -> MasqueradeAndLossOf:
        """Return what happens after DNAT to flows that return to their endpoint.

        The KUBE-SEP chain marks them. One from the node's own address the node has made, so it
        traverses POSTROUTING too.
        """
        if self.is_plain:
            return MasqueradeAndLoss(True)

        constant = self._of_all(Source.HAIRPIN, None, [self._walks().mark_of_masquerade], first)
        if constant is not None and constant.masquerade is True:
            return constant

        walks = self._walks()
        mark = walks.mark_of_masquerade
        hairpins = walks.hairpins
        #: By the results of the traversals, which keep them: one object for many endpoints.
        known: dict[tuple[int, Ternary | None], MasqueradeAndLoss] = {}

        @cache
        def to_itself(protocol: str) -> Callable[[Endpoint], Onward]:
            return walks.after_dnat.to_itself(protocol, mark, first)

        def after(protocol: str, endpoint: Endpoint) -> MasqueradeAndLoss:
            if endpoint.address in self._own:  # the node has made the flow
                way = Source.NODE, protocol, mark, endpoint.address
                onward = walks.after_dnat.to_each(*way, first)(endpoint)
            else:
                onward = to_itself(protocol)(endpoint)
            is_masked = onward.masquerade is Ternary.TRUE
            key = id(onward), None if is_masked else hairpins.is_pod_here(endpoint.address)
            found = known.get(key)
            if found is None:
                told = _of_onward(onward)
                lost = hairpins.lost(endpoint.address, told.masquerade, told.lost)
                found = known[key] = replace(told, lost=lost)
            return found

        return after

    @cached_property
    def is_plain(self) -> bool:
        """Whether nothing but the mark that KUBE-MARK-MASQ sets decides."""
        return self._table.masquerades_plainly() and self._quiet()

    def _walked(
        self,
        source: Source,
        address: Address | None,
        marked: Ternary,
        first: First | None,
    ) -> MasqueradeAndLossOf:
        from analyzer.semantics.onward import one_of

        walks = self._walks()
        mark = walks.mark_of_masquerade

        def marks_of(certain: Ternary) -> list[Mark | None]:
            return [
                *([mark] if certain is not Ternary.FALSE else []),
                *([None] if certain is not Ternary.TRUE else []),
            ]

        certain = marked | (Ternary.UNKNOWN if address is None else Ternary.FALSE)
        if address is None or not self._table.endpoints.has_address(address):
            constant = self._of_all(source, address, marks_of(certain), first)
            if constant is not None:
                return constant

        #: By the results of the traversals, which keep them: one object for many endpoints.
        known: dict[tuple[int, ...], MasqueradeAndLoss] = {}

        @cache
        def onward_of(protocol: str, own: bool) -> list[Callable[[Endpoint], Onward]]:
            certain = marked | (Ternary.UNKNOWN if address is None else Ternary.of(own))
            way = source, protocol
            return [walks.after_dnat.to_each(*way, m, address, first) for m in marks_of(certain)]

        def after(protocol: str, endpoint: Endpoint) -> MasqueradeAndLoss:
            onward = onward_of(protocol, endpoint.address == address)
            answers = [tell(endpoint) for tell in onward]
            key = tuple(map(id, answers))
            if key not in known:
                known[key] = _of_onward(one_of(answers))
            return known[key]

        return after

    def _of_all(
        self,
        source: Source,
        address: Address | None,
        marks: Sequence[Mark | None],
        first: First | None = None,
    ) -> MasqueradeAndLoss | None:
        """Return what happens to flows to any endpoint with one of some marks, if it is the same.

        `address` is their source; for a hairpin flow it is that of its endpoint. None if it is not
        the same for all, or if there are so few endpoints that evaluating each is faster.
        """
        from analyzer.semantics.onward import one_of

        if len(self._table.endpoints) < MANY:
            return None
        is_hairpin = source is Source.HAIRPIN
        if is_hairpin and any(map(self._table.endpoints.has_address, self._own)):
            return None
        walks = self._walks()
        found: set[Onward | None] = set()
        for protocol in {each.protocol for each in self._table.services.values()}:
            way = source, protocol
            told = [walks.after_dnat.to_all(*way, mark, address, first) for mark in marks]
            answers = [each for each in told if each is not None]
            found.add(one_of(answers) if len(answers) == len(told) else None)
        same = found.pop() if len(found) == 1 else None
        return None if same is None else _of_onward(same)


def _is_marked(address: Address | None, unmarked: Unmarked) -> Ternary:
    """Return whether the Service's own rule marks a flow from `address`."""
    if unmarked is Marked.NONE:
        return Ternary.FALSE
    if unmarked is Marked.ALL:
        return Ternary.TRUE
    network = network_of(unmarked)
    if address is None or network is None:
        return Ternary.UNKNOWN
    return Ternary.of(address not in network)


def _known(answer: Ternary) -> MasqueradeAndLoss:
    return MasqueradeAndLoss(None if answer is Ternary.UNKNOWN else answer is Ternary.TRUE)


def _of_onward(onward: Onward) -> MasqueradeAndLoss:
    return replace(_known(onward.masquerade), lost=onward.lost)
