"""iptables matches and targets with the names and addresses in them replaced.

Every text of a value is handled by what its field holds (`_FIELDS`): one that is not in the table,
and one that is not what its field should hold, makes the whole match or target one that is not
understood. A test counts the fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from analyzer.anonymise.addresses import blocks
from analyzer.anonymise.words import is_protocol, is_word
from analyzer.errors import ParseError
from analyzer.model.addresses import address_from_text, network_from_text
from analyzer.model.diagnostics import Location
from analyzer.model.iptables import matches as m
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.matches import Match
from analyzer.model.iptables.options import (
    AddressRange,
    ChunkTypes,
    Option,
    PolicyElement,
    TcpFlags,
)
from analyzer.model.iptables.targets import Target
from analyzer.model.value import fields_of, replace
from analyzer.parsers.xt.known import XTABLES_TARGETS
from analyzer.parsers.xt.rule import OLD_BINARY, UNREAD, parse_rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.anonymise.naming import Naming

#: Rules that one with a range of addresses may become.
_MOST_RULES: Final = 64
_DIRECTIONS: Final = re.compile(r"(?:src|dst)(?:,(?:src|dst)){0,5}")
#: Numbers and masks as iptables-save prints them: 0x10/0x3f, 0001:0010, 4,7,8.
_NUMBERS: Final = re.compile(r"(?:0x)?[0-9a-f]+(?:[/:,](?:0x)?[0-9a-f]+)*")
#: What kube-proxy calls its counters. Source: pkg/proxy/metrics/metrics.go.
_COUNTERS: Final = frozenset(("ct_state_invalid_dropped_pkts", "localhost_nps_accepted_pkts"))
_TARGET: Final = re.compile(r"-[jg] (\S+)")


class NotSaid(Exception):  # noqa: N818  # no error: what has it is not understood afterwards
    """A value holds a text that cannot be renamed."""


def _checked(is_good: Callable[[str], bool]) -> Callable[[Naming, str], str]:
    def keep(_: Naming, text: str) -> str:
        if not is_good(text):
            raise NotSaid(text)
        return text

    return keep


def _device(naming: Naming, text: str) -> str:
    return naming.device(text)


def _of_kind(kind: str) -> Callable[[Naming, str], str]:
    return lambda naming, text: naming.names.name(kind, text)


def _or_word(kind: str) -> Callable[[Naming, str], str]:
    return lambda naming, text: text if is_word(text) else naming.names.name(kind, text)


def _hardware(naming: Naming, text: str) -> str:
    found = naming.names.hardware(text)
    if found is None:
        raise NotSaid(text)
    return found


def _address(naming: Naming, text: str) -> str:
    found = naming.names.address_text(text)
    if found is None:
        raise NotSaid(text)
    return found


def _mask(_: Naming, text: str) -> str:
    """Keep a mask that is a prefix: one with holes may be an address."""
    address = address_from_text(text)
    if address is None or network_from_text(f"{_ANY[address.version]}/{text}") is None:
        bits = "" if address is None else f"{int(address):0{address.max_prefixlen}b}"
        if not bits or "01" in bits:
            raise NotSaid(text)
    return text


_ANY: Final = {4: "0.0.0.0", 6: "::"}  # noqa: S104  # no address that a program binds to

_word = _checked(is_word)
_protocol = _checked(is_protocol)
_text = _of_kind("text")

#: What each text of a value is, by class and field.
FIELDS: Final[Mapping[tuple[type, str], Callable[[Naming, str], str]]] = {
    (m.MatchProtocol, "protocol"): _protocol,
    (m.MatchInInterface, "name"): _device,
    (m.MatchOutInterface, "name"): _device,
    (m.MatchComment, "text"): lambda naming, text: naming.comments.renamed(text),
    (m.MatchPhysdev, "in_device"): _device,
    (m.MatchPhysdev, "out_device"): _device,
    (m.MatchNfacct, "name"): lambda naming, text: (
        text if text in _COUNTERS else naming.names.name("object", text)
    ),
    (m.MatchAddrtype, "source_type"): _word,
    (m.MatchAddrtype, "destination_type"): _word,
    (m.MatchConntrack, "state"): _word,
    (m.MatchConntrack, "protocol"): _protocol,
    (m.MatchConntrack, "status"): _word,
    (m.MatchConntrack, "direction"): _word,
    (m.MatchRecent, "action"): _word,
    (m.MatchRecent, "name"): lambda naming, text: naming.list_name(text),
    (m.MatchRecent, "mask"): _mask,
    (m.MatchRecent, "side"): _word,
    (m.MatchState, "states"): _word,
    (m.MatchHashlimit, "up_to"): _word,
    (m.MatchHashlimit, "above"): _word,
    (m.MatchHashlimit, "burst"): _word,
    (m.MatchHashlimit, "mode"): _word,
    (m.MatchHashlimit, "name"): _of_kind("list"),
    (m.MatchMac, "source"): _hardware,
    (m.MatchPkttype, "packet_type"): _word,
    (m.MatchString, "text"): _text,
    (m.MatchString, "algorithm"): _word,
    (m.MatchPolicy, "direction"): _word,
    (m.MatchPolicy, "policy"): _word,
    (m.MatchIpvs, "protocol"): _protocol,
    (m.MatchIpvs, "direction"): _word,
    (m.MatchIpvs, "method"): _word,
    (PolicyElement, "protocol"): _protocol,
    (PolicyElement, "mode"): _word,
    (PolicyElement, "tunnel_source"): _address,
    (PolicyElement, "tunnel_destination"): _address,
    (ChunkTypes, "scope"): _word,
    (ChunkTypes, "types"): _word,
    (TcpFlags, "mask"): _word,
    (TcpFlags, "flags"): _word,
    (t.Jump, "chain"): lambda naming, text: naming.chains.renamed(text),
    (t.Goto, "chain"): lambda naming, text: naming.chains.renamed(text),
    (t.Reject, "reject_with"): _word,
    (t.CopyConnmark, "direction"): _word,
    (t.ConnectionTracking, "helper"): _or_word("helper"),
    (t.ConnectionTracking, "timeout"): _of_kind("object"),
    (t.ConnectionTracking, "events"): _word,
    (t.ConnectionTracking, "expected_events"): _word,
    (t.ConnectionTracking, "zone"): _word,
    (t.ConnectionTracking, "zone_original"): _word,
    (t.ConnectionTracking, "zone_reply"): _word,
    (t.Log, "prefix"): _text,
    (t.NfLog, "prefix"): _text,
    (t.SetTos, "tos"): _checked(lambda text: _NUMBERS.fullmatch(text) is not None),
    (t.StripOptions, "options"): _checked(lambda text: _NUMBERS.fullmatch(text) is not None),
    (t.Classify, "to"): _checked(lambda text: _NUMBERS.fullmatch(text) is not None),
    (t.Audit, "verdict"): _word,
    (t.Tee, "device"): _device,
    (t.ChangeSet, "action"): _word,
    (t.ChangeSet, "name"): _of_kind("set"),
    (t.ChangeSet, "directions"): _checked(lambda text: _DIRECTIONS.fullmatch(text) is not None),
}


def renamed_matches(naming: Naming, given: tuple[Match, ...]) -> list[tuple[Match, ...]]:
    """Return the renamed matches of a rule, which may become several rules.

    A range of addresses keeps no order: it becomes the networks that it consists of.
    """
    found: list[tuple[Match, ...]] = [()]
    for match in given:
        choices = _choices(naming, match)
        if len(found) * len(choices) > _MOST_RULES:
            choices = [(_unknown(naming, repr(match)),)]
        found = [(*before, *choice) for before in found for choice in choices]
    return found


def _choices(naming: Naming, match: Match) -> list[tuple[Match, ...]]:
    """Return what can replace a match: one rule for each of these, with all of its matches."""
    if not isinstance(match, m.MatchIprange):
        return [(_match(naming, match),)]
    found: list[tuple[Match, ...]] = [()]
    for field in ("source", "destination"):
        option: Option[AddressRange] | None = getattr(match, field)
        if option is None:
            continue
        parts = [
            Option(_block(naming, each), option.negated)
            for each in blocks(option.value.first, option.value.last)
        ]
        made: list[Match] = [m.MatchIprange(**{field: part}) for part in parts]
        if option.negated and made:
            found = [(*before, *made) for before in found]
        elif not made or len(found) * len(made) > _MOST_RULES:
            return [(_unknown(naming, repr(match)),)]
        else:
            found = [(*before, each) for before in found for each in made]
    return found


def _block(naming: Naming, network: IPv4Network | IPv6Network) -> AddressRange:
    new = naming.names.network(network)
    return AddressRange(new.network_address, new.broadcast_address)


def _match(naming: Naming, match: Match) -> Match:
    match match:
        case m.MatchUnknown(text):
            return _unknown(naming, text)
        case m.MatchNot(m.MatchUnknown(text)):
            return _unknown(naming, f"! {text}")
        case m.MatchNot(inner):
            found = _match(naming, inner)
            return _unknown(naming, repr(match)) if _is_unknown(found) else m.MatchNot(found)
        case m.MatchSet():
            name, directions = match.match_set.value
            if _DIRECTIONS.fullmatch(directions) is None:
                return _unknown(naming, repr(match))
            told = Option((naming.names.name("set", name), directions), match.match_set.negated)
            return replace(match, match_set=told)
        case m.MatchString(hexadecimal=Option() as option):
            # A text reads back as it is; a pattern of bytes would have to be one again.
            told_text = Option(naming.names.name("text", option.value), option.negated)
            return replace(match, hexadecimal=None, text=told_text)
        case _:
            pass
    try:
        made: Match = _value(naming, match)
    except NotSaid:
        return _unknown(naming, repr(match))
    return made


def _is_unknown(match: Match) -> bool:
    return isinstance(match, m.MatchUnknown)


def _unknown(naming: Naming, text: str) -> m.MatchUnknown:
    """Return a match that is not understood, another one for each text."""
    naming.remove("match", text)
    return m.MatchUnknown(f"-m {naming.removed} --{naming.removed} {naming.mark(text)}")


def renamed_target(naming: Naming, target: Target | None) -> Target | None:
    """Return the renamed target of a rule."""
    if target is None:
        return None
    if isinstance(target, t.TargetUnknown):
        return _unknown_target(naming, target.text)
    try:
        if isinstance(target, (t.Dnat, t.Snat)):
            return replace(target, to=_nat_range(naming, target.to))
        made: Target = _value(naming, target)
    except NotSaid as said:
        return _unknown_target(naming, f"-j {type(target).__name__.upper()} {said}")
    return made


def _unknown_target(naming: Naming, text: str) -> t.TargetUnknown:
    """Return a target that is not understood: of the same name, if that is one of xtables'."""
    naming.remove("target", text)
    found = _TARGET.match(text)
    name = found[1] if found is not None and found[1] in XTABLES_TARGETS else ""
    if name and (old := re.search(OLD_BINARY, text)) is not None:
        return t.TargetUnknown(f"-j {name} {old[0]}")
    # A target without a known name is read as an unknown one, whatever its options.
    told = f"-j {name or naming.removed.upper()} --{naming.removed} {naming.mark(text)}"
    try:
        if parse_rule(f"-A X {told}", Location("", 1), ()).target == t.TargetUnknown(told):
            return t.TargetUnknown(told)
    except ParseError:  # it lacks options that such a target must have
        pass
    return t.TargetUnknown(f"-j {name} {UNREAD}")


def _nat_range(naming: Naming, given: t.NatRange) -> t.NatRange:
    first, last = given.first_address, given.last_address
    if first is None:
        return given
    if last is None or last == first:
        new = naming.names.address(first)
        return replace(given, first_address=new, last_address=None if last is None else new)
    networks = blocks(first, last)
    if len(networks) != 1:
        raise NotSaid(repr(given))
    network = naming.names.network(networks[0])
    ends = network.network_address, network.broadcast_address
    return replace(given, first_address=ends[0], last_address=ends[1])


def _value(naming: Naming, given: Any, field: tuple[type, str] | None = None) -> Any:
    """Return a value with its texts and addresses renamed.

    Raises:
        NotSaid: it contains a text that cannot be expressed in other words.
    """
    match given:
        case None | bool() | int():
            return given
        case str():
            handle = FIELDS.get(field) if field is not None else None
            if handle is None:
                raise NotSaid(given)
            return handle(naming, given)
        case IPv4Address() | IPv6Address():
            return naming.names.address(given)
        case IPv4Network() | IPv6Network():
            return naming.names.network(given)
        case Option(value, negated):
            return Option(_value(naming, value, field), negated)
        case tuple():
            return tuple(_value(naming, each, field) for each in given)
        case frozenset():
            return frozenset(_value(naming, each, field) for each in given)
        case AddressRange():
            raise NotSaid(repr(given))
        case _:
            pass
    made = type(given)
    changes = {name: _value(naming, getattr(given, name), (made, name)) for name in fields_of(made)}
    return made(**changes)
