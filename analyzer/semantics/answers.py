"""Whether the answer to a flow comes back to its client.

Theory of operation
===================

The answer to a flow that DNAT has sent on traverses the node's hooks in the other direction, as a
packet of an established flow: nat's rules are not evaluated for it, but conntrack puts its
addresses back. It restores the destination, if the flow was masqueraded, where the nat of
PREROUTING or OUTPUT is called, and the source where that of INPUT or POSTROUTING is. It returns by
the device that the flow left by, and leaves by the one that the flow came by; otherwise conntrack
of this node could not put back anything.

A flow has a region of sources and one of destinations (`region`); the answer has the same two,
exchanged. So rules on the answer's destination split the flow's sources, and the other way around.

Rules that accept all answers come first on most nodes: if the first answer is not lost, one
traversal by an answer between unknown addresses shows that none is, and no other is needed.

Source: Linux, net/netfilter/nf_nat_core.c, ``nf_nat_inet_fn``, ``nf_nat_packet``;
net/netfilter/nf_conntrack_core.c, ``resolve_normal_ct``; seen on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from analyzer.model.devices import Devices
from analyzer.model.iptables.targets import Drop, Reject
from analyzer.model.packet import NO_DEVICE, NO_ZONES, UNKNOWN_MARK, Packet
from analyzer.model.region import Parted
from analyzer.model.routing import LOOPBACK, Routes
from analyzer.model.value import replace, value
from analyzer.semantics.assumed import POD_INTERFACE
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.calls import Calls
from analyzer.semantics.devices import NOT_LOOPBACK
from analyzer.semantics.effort import Effort
from analyzer.semantics.fate import ways
from analyzer.semantics.grow import Grown
from analyzer.semantics.situation import MASQUERADED, Situation
from analyzer.semantics.tree import (
    AnyRule,
    Delivered,
    Leaf,
    OtherZone,
    PolicyDrop,
    Tree,
    Unanswered,
    Unresolved,
    every_leaf,
)
from analyzer.semantics.untracking import choosing, keeping, sets_zone
from analyzer.semantics.way_back import AnswerDirection, Restored, WayBack, put_back

#: Most answers whose results are kept.
_MOST_KNOWN: Final = 10_000


_ENDS: Final = {
    (False, False): AnswerDirection.FORWARDED,
    (False, True): AnswerDirection.FROM_NODE,
    (True, False): AnswerDirection.TO_NODE,
    (True, True): AnswerDirection.LOOPED,
}


@value
class _Known:
    """What is known of an answer, and what was asked to find out.

    Attributes:
        tree: with the leaves of the answer itself.
        asked: how often rules matched on fields, by `ASKED`.
        used, wanted: names of assumptions.
    """

    tree: Tree
    asked: Mapping[str, int]
    used: frozenset[str]
    wanted: frozenset[str]


class FlowAnswers:
    """The answers to flows of one family; `situation` is that of the flows.

    Attributes:
        exceeded: the bounds on work that were reached so far, in words.
    """

    def __init__(
        self,
        rulesets: Sequence[Rules],
        family: str,
        situation: Situation,
        asked_bits: Callable[[], int],
        routes: Routes,
    ) -> None:
        self._routes = routes
        flow = situation.flow
        #: Where flows are sent to, if that is one address.
        self._original = None if flow is None else (flow.destination, flow.destination_port)
        self._note_field = situation.noted_field
        self._effort = Effort(asked_bits)
        self._situation = replace(
            situation, state="ESTABLISHED", flow=None, noted=None, noted_field=self._note
        )
        #: The same, of which no question is recorded.
        self._unasked = replace(self._situation, noted_field=None)
        self._rulesets = rulesets
        self._family = family
        self._made: Calls | None = None
        #: By its ends, the assumptions on which it rests that no answer is lost; None: some may be.
        self._never_lost: dict[AnswerDirection, frozenset[str] | None] = {}
        self._known: dict[Restored, _Known] = {}
        #: By answer whose destination conntrack has put back, what happens to it.
        self._behind: dict[Restored, _Known] = {}
        #: How often rules matched on fields since the traversal began, or a part of it.
        self._asked: dict[str, int] = {}
        #: Whether a rule matches on whether flows are masqueraded, as far as is known.
        self._asks_masquerade = False

    @property
    def exceeded(self) -> Iterable[str]:
        """The bounds on work that were reached so far, in words."""
        return self._effort.exceeded

    @exceeded.setter
    def exceeded(self, exceeded: Iterable[str]) -> None:
        self._effort.exceeded = dict.fromkeys(exceeded)

    def _note(self, field: str) -> None:
        self._asked[field] = self._asked.get(field, 0) + 1
        if self._note_field is not None:
            self._note_field(field)

    @property
    def _calls(self) -> Calls:
        if self._made is None:
            self._made = Calls(self._rulesets, self._family, self._situation, self._effort)
        return self._made

    def to(self, sent: Packet, left: Packet, *, here: bool) -> Tree:
        """Return the tree of a flow that began as `sent` and that was delivered as `left`.

        Its leaves are Delivered, Unanswered or Unresolved. `here`: the endpoint is on the node
        itself, in its network namespace.

        Raises:
            Parted: rules match on some of the flow's destinations.
        """
        ends = _ENDS[sent.in_interface == NO_DEVICE, here]
        if left.zones == NO_ZONES and left.translated:
            if ends not in self._never_lost and self._is_lost_first(sent, left, ends):
                self._never_lost[ends] = None  # since some of all answers are
            if self._is_never_lost(ends):
                return Leaf(Delivered(here), left)
        found = self._found((*self._answer(sent, left, ends), ends))
        if not _is_lost(found):
            return Leaf(Delivered(here), left)

        exempting = _exempting(found)

        def flow_of(leaf: Leaf) -> Leaf:
            match leaf.outcome:
                case Delivered():
                    return Leaf(Delivered(here), left)
                case Drop() | Reject() | PolicyDrop():
                    return Leaf(Unanswered(leaf.outcome), left)
                case Unanswered(by):
                    rules = exempting.get(id(leaf), ())
                    told = rules or any(map(sets_zone, leaf.rules))
                    if isinstance(by, OtherZone) and not told:  # the flow's own rule has done it
                        rules = choosing(self._rulesets, left.zones)
                    return Leaf(leaf.outcome, left, rules)
                case _:
                    return Leaf(Unresolved("whether the answer comes back"), left)

        return Grown(flow_of).of(found)

    def _answer(self, sent: Packet, left: Packet, ends: AnswerDirection) -> tuple[Packet, Packet]:
        """Return the answer when it comes to the first hook, and its client, as a source."""
        client = Packet(
            source=sent.source,
            sources=sent.sources,
            source_port=sent.source_port,
            from_node=_is_from_node(sent, ends),
            zones=left.zones,
        )
        here = ends in {AnswerDirection.FROM_NODE, AnswerDirection.LOOPED}
        came, went = self._devices(sent, left)
        answer = Packet(
            protocol=left.protocol,
            source=left.destination,
            sources=left.destinations,
            source_port=left.destination_port,
            from_node=here,
            flow_mark=left.flow_mark,
            translated=left.translated,
            masqueraded=left.masqueraded,
            is_masquerades=left.is_masquerades,
            original=left.original or self._original,
            tracked=True,
            is_answer=True,
        )
        if ends is AnswerDirection.LOOPED:
            answer = replace(answer, in_interface=NO_DEVICE, out_interface=LOOPBACK)
        elif here:
            answer = _by(replace(answer, in_interface=NO_DEVICE), came, leaving=True)
        else:
            answer = _by(replace(answer, out_interface=NO_DEVICE), went, leaving=False)
        if left.masqueraded is False:
            answer = put_back(answer, client)
        elif left.masqueraded is True:
            answer = replace(answer, to_node=True)
        # Whither it leaves is evaluated only if it is forwarded.
        back = client if ends is not AnswerDirection.FORWARDED else _by(client, came, leaving=True)
        return answer, back

    def _devices(
        self, sent: Packet, left: Packet
    ) -> tuple[str | Devices | None, str | Devices | None]:
        """Return the devices that a flow came by and left by; no rule matches on them yet."""
        assumed = self._situation.assumed
        wanted = set[str]() if assumed is None else assumed.wanted.copy()
        came, went = self._unasked.came_by(sent), self._unasked.leaves_by(left)
        if came is None and sent.source is not None:
            came = self._routes.device(sent.source)
        if assumed is not None:
            assumed.wanted = wanted
            if went is None and POD_INTERFACE in assumed.values:
                went = NOT_LOOPBACK  # as `Hooks.made_here`
        return came, went

    def _is_never_lost(self, ends: AnswerDirection) -> bool:
        """Return whether one traversal shows that no answer is lost.

        It may rest on assumptions that other results rest on already.
        """
        if ends not in self._never_lost:
            made_here = ends in {AnswerDirection.FROM_NODE, AnswerDirection.LOOPED}
            answer = Packet(
                flow_mark=UNKNOWN_MARK,
                in_interface=NO_DEVICE if made_here else None,
                out_interface=None if made_here else NO_DEVICE,
                from_node=made_here,
                translated=True,
                masqueraded=None,
                is_port_own=None,
                is_answer=True,
            )
            to_node = ends in {AnswerDirection.TO_NODE, AnswerDirection.LOOPED}
            known, is_whole = self._unnoted((answer, Packet(from_node=to_node), ends))
            is_told = is_whole and not _is_lost(known.tree)
            self._never_lost[ends] = known.used if is_told else None
        used, assumed = self._never_lost[ends], self._situation.assumed
        return used is not None and (assumed is None or used <= assumed.used)

    def _is_lost_first(self, sent: Packet, left: Packet, ends: AnswerDirection) -> bool:
        """Return whether some of the first answer is lost, as far as that is known at once."""
        key = *self._answer(sent, left, ends), ends
        try:
            known, is_whole = self._unnoted(key)
        except Parted:
            return False
        if is_whole and len(self._known) < _MOST_KNOWN:
            self._known[key] = known
        return is_whole and _is_lost(known.tree)

    def _unnoted(self, key: Restored) -> tuple[_Known, bool]:
        """Return what happens to an answer, and whether no bound on work was reached.

        What it rests on is recorded in the result alone.
        """
        exceeded = self._effort.exceeded.copy()
        note, self._note_field = self._note_field, None
        try:
            known = self._recorded(lambda: self._walk(*key))
        finally:
            self._note_field = note
            met, self._effort.exceeded = self._effort.exceeded, exceeded
        return known, met == exceeded

    def _found(self, key: Restored) -> Tree:
        known = self._known.get(key)
        if known is None:
            known = self._kept(self._known, key, lambda: self._walk(*key))
            self._rely(known)
        else:
            self._rely_again(known)
        return known.tree

    def _walk(self, answer: Packet, client: Packet, ends: AnswerDirection) -> Tree:
        """Traverse the hooks."""
        self._calls.forget()
        self._effort.begin()
        return WayBack(self._calls, client, ends, self._shared).of(answer)

    def _shared(self, key: Restored, walk: Callable[[Packet], Tree]) -> Tree:
        """Return what `walk` finds for an answer whose destination conntrack has put back.

        From there on, masqueraded flows and others have the same answers, and most rules match
        both or neither.
        """
        restored, client, ends = key
        if not self._asks_masquerade:
            either = replace(restored, masqueraded=None)
            known = self._behind.get((either, client, ends))
            if known is not None:
                self._rely_again(known)
                return known.tree
            known = self._kept(self._behind, (either, client, ends), lambda: walk(either))
            if MASQUERADED not in known.asked:
                self._rely(known)
                return known.tree
            self._asks_masquerade = True
        return walk(restored)

    def _kept(
        self,
        kept: dict[Restored, _Known],
        key: Restored,
        walk: Callable[[], Tree],
    ) -> _Known:
        """Return what `walk` finds, and keep it if no bound on work was reached."""
        exceeded = self._effort.exceeded.copy()
        known = self._recorded(walk)
        if self._effort.exceeded == exceeded and len(kept) < _MOST_KNOWN:
            kept[key] = known
        return known

    def _recorded(self, walk: Callable[[], Tree]) -> _Known:
        """Return what `walk` finds; what was asked for it is recorded in the result alone."""
        before = self._asked
        asked = self._asked = {}
        assumed = self._situation.assumed
        sets = (set[str](), set[str]()) if assumed is None else (assumed.used, assumed.wanted)
        used, wanted = set[str](), set[str]()
        if assumed is not None:
            assumed.used, assumed.wanted = used, wanted
        try:
            tree = walk()
        finally:
            self._asked = before
            if assumed is not None:
                assumed.used, assumed.wanted = sets
        return _Known(tree, asked, frozenset(used), frozenset(wanted))

    def _rely(self, known: _Known) -> None:
        """Record that a result rests on what was asked for another."""
        for field, times in known.asked.items():
            self._asked[field] = self._asked.get(field, 0) + times
        assumed = self._situation.assumed
        if assumed is not None:
            assumed.used |= known.used
            assumed.wanted |= known.wanted

    def _rely_again(self, known: _Known) -> None:
        """Record the same of what was not asked now, but earlier."""
        if self._note_field is not None:
            for field, times in known.asked.items():
                for _ in range(times):
                    self._note_field(field)
        self._rely(known)


def _is_lost(tree: Tree) -> bool:
    """Return whether some answers may not come back."""
    return any(not isinstance(each.outcome, Delivered) for each in every_leaf(tree))


def _exempting(tree: Tree) -> Mapping[int, tuple[AnyRule, ...]]:
    """Return the rules that keep answers from their flows, by the identity of leaves below them.

    They exempt them from conntrack, or put them into another zone.
    """
    found: dict[int, tuple[AnyRule, ...]] = {}
    for _, rules, leaf in ways(tree):
        keeps = keeping(leaf.outcome)
        if keeps is not None and not any(map(keeps, leaf.rules)):
            found[id(leaf)] = tuple([rule for rule in rules if keeps(rule)][-1:])
    return found


def _by(packet: Packet, device: str | Devices | None, *, leaving: bool) -> Packet:
    """Return a packet that comes in or leaves by a device, or by one of some."""
    if device is None:
        return packet
    if isinstance(device, str):
        name = "out_interface" if leaving else "in_interface"
        return replace(packet, **{name: device})
    return replace(packet, **{"leaves_by" if leaving else "came_by": device})


def _is_from_node(sent: Packet, ends: AnswerDirection) -> bool | None:
    return True if ends in {AnswerDirection.TO_NODE, AnswerDirection.LOOPED} else sent.from_node
