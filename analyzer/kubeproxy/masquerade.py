"""Whether flows that plain rows send to an endpoint get a source address of the node.

A flow is masqueraded where its mark says so when it leaves: a Service's rule marks flows from
outside the cluster, and a KUBE-SEP's those from the endpoint itself (hairpin). A flow that comes
in and stays on the node meets INPUT and never POSTROUTING; one that the node makes meets
POSTROUTING, wherever it goes.
"""

from __future__ import annotations

from collections.abc import Callable

from analyzer.kubeproxy.plain import PlainTable
from analyzer.kubeproxy.plain_shares import Judge
from analyzer.kubeproxy.view import Endpoint, Source
from analyzer.model.addresses import Address, network_from_text
from analyzer.model.ternary import Ternary

TYPE_CHECKING = False
if TYPE_CHECKING:  # what a plain dump does not need is not loaded
    from analyzer.kubeproxy.between import Between
    from analyzer.kubeproxy.walks import NatWalks


class Masquerade:
    """The judges of plain routes; `own` are the node's addresses, if known.

    `between` is what rules between DNAT and POSTROUTING may change.
    """

    def __init__(
        self,
        table: PlainTable,
        walks: Callable[[], NatWalks],
        own: tuple[Address, ...],
        between: Callable[[], Between],
    ) -> None:
        self._table = table
        self._walks = walks
        self._own = own
        self._between = between

    def judge(self, source: Source, address: Address | None, unmarked: str | None) -> Judge:
        """Return what says whether flows from `address` are masqueraded; None: not known.

        `unmarked` is the network whose flows the Service's rule does not mark: None where no
        rule marks, an empty text where all are marked.
        """
        marked = _is_marked(address, unmarked)
        special = {*self._own, *([] if address is None else [address])}
        if not self._is_plain():
            return self._walked(source, address, marked)
        # Only a mark decides, unless the flow stays on the node or returns to its source.
        if address is None:
            marked |= Ternary.UNKNOWN  # it may be the endpoint itself: a hairpin
        made_here = source is Source.NODE
        known = self._own or made_here or marked is Ternary.FALSE
        usual = marked if known else Ternary.UNKNOWN
        if not any(map(self._table.endpoints.has_address, special)):
            return _known(usual)

        def judge(_: str, endpoint: Endpoint) -> bool | None:
            if endpoint.address in self._own and not made_here:
                return False
            hairpin = Ternary.of(endpoint.address == address)
            certain = marked | hairpin
            if certain is not Ternary.FALSE and not self._own and not made_here:
                certain = Ternary.UNKNOWN
            return _known(certain)

        return judge

    def judge_hairpin(self) -> Judge:
        """Return what says whether flows that come back to their endpoint are masqueraded.

        The KUBE-SEP chain marks them. One from the node's own address the node has made, so it
        meets POSTROUTING too.
        """
        if self._is_plain():
            return True

        def judge(protocol: str, endpoint: Endpoint) -> bool | None:
            walks = self._walks()
            mark = walks.mark_of_masquerade()
            # From its own address the node has made the flow.
            source = Source.NODE if endpoint.address in self._own else Source.HAIRPIN
            way = source, protocol, endpoint, mark, endpoint.address
            return _known(walks.masquerades(*way))

        return judge

    def _is_plain(self) -> bool:
        """Tell whether all that decides is the mark that KUBE-MARK-MASQ sets."""
        mark = self._table.mark
        return (
            mark is not None
            and self._table.masquerades_plainly()
            and not int(mark, 16) & self._between().mark
        )

    def _walked(self, source: Source, address: Address | None, marked: Ternary) -> Judge:
        walks = self._walks()
        mark = walks.mark_of_masquerade()

        def judge(protocol: str, endpoint: Endpoint) -> bool | None:
            own = endpoint.address == address
            certain = marked | (Ternary.UNKNOWN if address is None else Ternary.of(own))
            marks = {
                *([mark] if certain is not Ternary.FALSE else []),
                *([None] if certain is not Ternary.TRUE else []),
            }
            answers = {walks.masquerades(source, protocol, endpoint, m, address) for m in marks}
            return _known(answers.pop()) if len(answers) == 1 else None

        return judge


def _is_marked(address: Address | None, unmarked: str | None) -> Ternary:
    """Tell whether the Service's own rule marks a flow from `address`."""
    if unmarked is None:
        return Ternary.FALSE
    network = network_from_text(unmarked) if unmarked else None
    if not unmarked:
        return Ternary.TRUE
    if address is None or network is None:
        return Ternary.UNKNOWN
    return Ternary.of(address not in network)


def _known(answer: Ternary) -> bool | None:
    return None if answer is Ternary.UNKNOWN else answer is Ternary.TRUE
