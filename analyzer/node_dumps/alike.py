"""Nodes whose dumps are almost the same as one read before (see `cluster.reference`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from analyzer.cluster.content import Encoder, block_of
from analyzer.cluster.reference import Left, Reference, service_port_key
from analyzer.errors import AnalyzerError
from analyzer.inputs.files import read_file
from analyzer.inputs.node_files import node_addresses
from analyzer.inputs.recognised import Input, input_of
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.rows.endpoints import EndpointRows
from analyzer.kubeproxy.rows.plain_shares import PlainRoutes
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import replace, value
from analyzer.parsers.formats import read_ruleset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.cluster.reference import ServicePortKey
    from analyzer.inputs.api_objects import ApiObjects
    from analyzer.model.diagnostics import Diagnostic
    from analyzer.semantics.base_chains import Rules


@value(kw_only=True)
class PartlyRead:
    """The content of a node's dumps, only part of which was parsed.

    Attributes:
        given: what was read.
        map: the digest of the map of all.
        rules: of all dumps.
        diagnostics: of the whole, in the lines of the dumps.
    """

    given: Input
    map: str
    rules: int
    diagnostics: tuple[Diagnostic, ...]


class RecentDumps:
    """The last few dumps of each IP version, with which others are compared."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._references: dict[str, list[_Held]] = {}
        self._blocks: dict[frozenset[str], str] = {}
        self._missed = 0
        #: Dumps that were read by comparison, and in whole.
        self.compared = self.whole = 0

    def forget(self) -> None:
        """Return all contents again: those returned before have been lost."""
        self._references.clear()
        self._blocks.clear()

    def read(self, options: SimpleNamespace, objects: ApiObjects) -> PartlyRead | None:
        """Return the content of a node's dumps; None if they have to be parsed in full."""
        try:
            found = self._read(options, objects) if self._references else None
        except AnalyzerError:
            found = None  # who reads all of it says what is wrong, and where
        if found is None:
            self.whole += 1
            self._missed += 1
        else:
            self.compared += 1
            self._missed = 0
        return found

    def _read(self, options: SimpleNamespace, objects: ApiObjects) -> PartlyRead | None:
        own = node_addresses(options, objects.cluster)
        dumps = []
        for name in options.dumps:
            data = read_file(name, options.max_input)
            held = left = None
            for held in self._references.get(_program(data), ()):
                special = (*own, *held.reference.grounds.own, *held.reference.grounds.stand_ins)
                left = held.reference.left_of(data, special)
                if left is not None:
                    break
            text = data if left is None else left.text
            skim = EndpointRows.skim
            ruleset = read_ruleset(text, name, None, None, None, skim, most=options.max_input)
            dumps.append(_Dump(data, ruleset, None if left is None else held, left))
        if all(each.left is None for each in dumps):
            return None
        given = input_of(options, [each.ruleset for each in dumps], [], objects, None)
        parts = given.parts or (given,)
        for each in dumps:
            part = next((p for p in parts if p.rulesets[0] is each.ruleset), None)
            if each.left is not None and not (part and _holds(part, each)):
                return None
        diagnostics = [_placed(each, dumps) for each in given.view.diagnostics]
        if None in diagnostics:
            return None
        return self._combined(given, dumps, [each for each in diagnostics if each is not None])

    def _combined(
        self, given: Input, dumps: Sequence[_Dump], diagnostics: Sequence[Diagnostic]
    ) -> PartlyRead | None:
        """Return the map of what was read and of what was skipped."""
        used = [(each.held, each.left) for each in dumps if each.held and each.left]
        keys = {service_port_key(service) for service in given.view.services}
        blocks: dict[int, set[str]] = {}
        rules = sum(each.ruleset.rules for each in dumps)
        for held, left in used:
            plain = held.reference.plain
            if any(plain[at].key in keys for at in left.passed):
                return None  # a row of another table is about it
            gone = {*range(len(plain))}.difference(left.passed)
            rules += held.reference.rules - sum(plain[at].rules for at in gone)
            for number, digests in held.blocks.items():
                blocks.setdefault(number, set()).update(digests)
            for at in gone:
                blocks[plain[at].block].discard(plain[at].digest)
        for service in given.view.services:
            blocks.setdefault(block_of(service), set()).add(self._encoder.encode(service))
        names = []
        for content in filter(None, map(frozenset, blocks.values())):
            if content not in self._blocks:
                self._blocks[content] = self._encoder.block(content)
            names.append(self._blocks[content])
        return PartlyRead(
            given=given,
            map=self._encoder.map(names),
            rules=rules,
            diagnostics=tuple(diagnostics),
        )

    def learn(
        self,
        options: SimpleNamespace,
        given: Input,
        digests: Mapping[ServicePortKey, str],
    ) -> None:
        """Keep dumps that were parsed in full, to compare others with them.

        If that was of no use for some dumps, only now and then.
        """
        if self._missed > _IN_VAIN and self._missed % _IN_VAIN:
            return
        for part in given.parts or (given,):
            ruleset, recogniser = part.rulesets[0], part.recogniser
            if not isinstance(ruleset, Ruleset) or len(part.rulesets) > 1:
                continue
            file = next((each for each in options.dumps if each == ruleset.file), None)
            if file is None or not isinstance(recogniser, Recogniser):
                continue
            grounds = recogniser.plain_grounds()
            data = read_file(file, options.max_input)
            if grounds is None or not _program(data):
                continue
            reference = Reference(data, part.view, grounds, digests)
            if not reference.is_useful:
                continue
            blocks: dict[int, frozenset[str]] = {}
            by_block: dict[int, set[str]] = {}
            for each in reference.plain:
                by_block.setdefault(each.block, set()).add(each.digest)
            blocks = {number: frozenset(each) for number, each in by_block.items()}
            known = self._references.setdefault(_program(data), [])
            known.insert(0, _Held(reference, blocks))
            del known[_REFERENCES:]
        if len(self._blocks) > _MOST_BLOCKS:
            self._blocks.clear()


#: Dumps of each program that others are compared with, and dumps that may differ from all.
_REFERENCES: Final = 2
_IN_VAIN: Final = 8
#: Names of blocks that are kept.
_MOST_BLOCKS: Final = 50_000
_HEAD: Final = re.compile(rb"# Generated by (ip6?tables)[a-z-]*-save ")


@value
class _Held:
    """A dump to compare with, and the digests of its plain Services by block."""

    reference: Reference
    blocks: Mapping[int, frozenset[str]]


@value
class _Dump:
    """One file of a node: its content, its rules as far as they were read, and what was left."""

    data: bytes
    ruleset: Rules
    held: _Held | None
    left: Left | None


def _program(data: bytes) -> str:
    """Return which program printed a dump; empty where that is none that is compared."""
    found = _HEAD.match(data)
    return "" if found is None or b"\n[" in data[: 1 << 12] else found[1].decode()


def _holds(part: Input, dump: _Dump) -> bool:
    """Return whether what was read shows that what was passed over is as it was elsewhere."""
    if dump.held is None or len(part.rulesets) > 1 or not isinstance(part.recogniser, Recogniser):
        return False
    known = dump.held.reference.grounds
    grounds = part.recogniser.plain_grounds()
    if grounds is None or not grounds.is_as(known) or not grounds.lets_pass(known):
        return False
    is_odd = any(not isinstance(each.routes, PlainRoutes) for each in part.view.services)
    if is_odd and not part.own:
        return False  # flows to the node itself go to an unknown address
    left = dump.left
    assert left is not None
    hidden = set(left.passed)
    # An address that represents sources must not be one of a skipped endpoint or Service.
    of_sources = dump.held.reference.with_endpoints_at(grounds.stand_ins)
    hosts = (str(each).encode() for each in grounds.stand_ins)
    of_hosts = (at for host in hosts for at in dump.held.reference.at_host(host))
    return hidden.isdisjoint(of_sources) and hidden.isdisjoint(of_hosts)


def _placed(told: Diagnostic, dumps: Sequence[_Dump]) -> Diagnostic | None:
    """Return a diagnostic with the line in the whole dump; None if that is not known."""
    dump = next((each for each in dumps if each.ruleset.file == told.file), None)
    if dump is None or dump.left is None:
        return told
    if _LINE.search(told.message):
        return None
    if told.line is None:
        return told
    places = dump.left.places
    place = places[told.line - 1] if told.line <= len(places) else -1
    if place < 0:
        return None
    return replace(told, line=dump.data.count(b"\n", 0, place) + 1)


#: A line that a message names.
_LINE: Final = re.compile(r"\blines? \d")
