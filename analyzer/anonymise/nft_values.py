"""nft expressions and statements with the names and addresses in them replaced.

The meaning of a string follows from what it is compared with: a device, an Ethernet address, a
user. Any other string is kept if it is one of nft's words; otherwise its expression is not
understood afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address

from analyzer.anonymise import nft_names
from analyzer.anonymise.addresses import blocks
from analyzer.anonymise.naming import Naming
from analyzer.anonymise.nft_keywords import EXTENSIONS, KEYWORDS
from analyzer.anonymise.values import NotSaid
from analyzer.anonymise.words import is_nft_word, listed
from analyzer.model.addresses import IPV4, WIDTHS, Address, network_of
from analyzer.model.nft import expressions as e
from analyzer.model.nft import statements as s
from analyzer.model.value import fields_of, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TypeAlias

#: What a text names: ``device``, ``hardware``, ``user``, ...; of a concatenation for each part.
Role: TypeAlias = "str | tuple[Role, ...] | None"

_DEVICES: Final = frozenset(listed("iif iifname oif oifname ibrname obrname sdif sdifname"))
_USERS: Final = frozenset(("skuid", "skgid"))
_TIMES: Final = frozenset(("time", "day", "hour"))
_OF_TYPES: Final[Mapping[str, str]] = {
    "ifname": "device",
    "iface_index": "device",
    "ether_addr": "hardware",
    "uid": "user",
    "gid": "user",
    "time": "time",
    "hour": "time",
    "day": "time",
}
_TIME: Final = re.compile(r"[\d:. -]{1,30}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day")
#: Where the header of IP has its addresses: offset in bits, and the version.
_RAW: Final = {(96, 32): 4, (128, 32): 4, (64, 128): 6, (192, 128): 6}
_MOST_ELEMENTS: Final = 4096


@value
class TableOf:
    """Where a rule is: the family and the old name of its table."""

    family: str
    table: str


def role_of(left: object) -> Role:
    """Return what kind of name the right-hand side of a comparison holds."""
    match left:
        case e.Meta(key):
            return (
                "device"
                if key in _DEVICES
                else "user"
                if key in _USERS
                else "time"
                if key in _TIMES
                else None
            )
        case e.Fib("oif" | "oifname"):
            return "device"
        case e.Payload("ether", "saddr" | "daddr"):
            return "hardware"
        case e.Payload("arp", "saddr ether" | "daddr ether"):
            return "hardware"
        case e.Ct("helper"):
            return "helper"
        case e.Osf():
            return "text"
        case e.Concat(parts):
            return tuple(role_of(part) for part in parts)
        case e.Binary(_, inner, _):
            return role_of(inner)
        case _:
            return None


def role_of_types(types: tuple[str, ...] | None) -> Role:
    """Return what kind of name the elements of a set of these types hold."""
    if types is None:
        return None
    roles = tuple(_OF_TYPES.get(each) for each in types)
    return roles[0] if len(roles) == 1 else roles


def renamed_statement(naming: Naming, place: TableOf, given: s.Statement) -> s.Statement:
    """Return the renamed statement; an unsupported one becomes unknown."""
    try:
        made: s.Statement = _Values(naming, place).statement(given)
    except NotSaid:
        naming.remove("statement", "")
        return UNKNOWN
    return made


def renamed_elements(
    naming: Naming, place: TableOf, given: tuple[e.Element, ...], key: Role, data: Role
) -> tuple[e.Element, ...]:
    """Return the renamed elements of a set or map."""
    return tuple(_Values(naming, place).elements(given, key, data))


def renamed_expression(naming: Naming, place: TableOf, given: e.Expression) -> e.Expression:
    """Return the renamed expression.

    Raises:
        NotSaid: it cannot be expressed in other words.
    """
    found: e.Expression = _Values(naming, place).any(given, None)
    return found


#: What reads back as not understood, as an element and as a statement.
UNKNOWN: Final = e.Unknown("-removed")


class _Values:
    def __init__(self, naming: Naming, place: TableOf) -> None:
        self._naming = naming
        self._names = naming.names
        self._place = place

    def statement(self, given: s.Statement) -> Any:
        match given:
            case e.Unknown():
                raise NotSaid(given.text)
            case s.Match():
                return self._match(given)
            case s.Vmap(key, data):
                return s.Vmap(self.any(key, None), self._map(data, role_of(key), None))
            case s.ObjectRef(kind, str() as name):
                return s.ObjectRef(self._keyword(kind), self._names.name("object", name))
            case s.ObjectRef(kind, name):
                return s.ObjectRef(self._keyword(kind), self.any(name, "object"))
            case s.Log(prefix=prefix):
                shown = None if prefix is None else self._names.name("text", prefix)
                return replace(self._fields(replace(given, prefix=None)), prefix=shown)
            case s.Reject(_, code):
                if isinstance(code, str) and not is_nft_word(code):
                    raise NotSaid(code)
                return replace(self._fields(replace(given, code=None)), code=code)
            case s.Dnat() | s.Snat():
                return replace(
                    self._fields(replace(given, address=None)),
                    address=None if given.address is None else self._range(given.address),
                )
            case s.MetaSet(key, new):
                return s.MetaSet(self._keyword(key), self.any(new, role_of(e.Meta(key))))
            case s.CtSet(key, new, direction):
                shown = None if direction is None else self._keyword(direction)
                return s.CtSet(self._keyword(key), self.any(new, role_of(e.Ct(key))), shown)
            case s.Mangle(key, new):
                return s.Mangle(self.any(key, None), self.any(new, role_of(key)))
            case s.SetUpdate():
                element = given.element
                of_value = None if element.value is None else self.any(element.value, None)
                return s.SetUpdate(
                    operation=self._keyword(given.operation),
                    set=nft_names.set_name(self._naming, self._place.table, given.set),
                    element=replace(
                        element,
                        key=self.any(element.key, None),
                        value=of_value,
                        comment=self._comment(element.comment),
                    ),
                )
            case s.Dup(address, device):
                end = None if device is None else self.any(device, "device")
                return s.Dup(self.any(address, None), end)
            case s.Fwd(device, family, address):
                shown = None if family is None else self._keyword(family)
                where = None if address is None else self.any(address, None)
                return s.Fwd(device=self.any(device, "device"), family=shown, address=where)
            case s.FlowAdd(name):
                return s.FlowAdd(self._names.name("set", name))
            case s.Xt(kind, name):
                if name in EXTENSIONS or not name:
                    return s.Xt(self._keyword(kind), name)
                raise NotSaid(name)
            case _:
                return self.any(given, None)

    def _match(self, given: s.Match) -> s.Match:
        left, right = given.left, given.right
        if isinstance(left, e.RawPayload) and left.base != "th":
            return self._raw(given, left)
        operator = self._keyword(given.operator) if given.operator != "in" else "in"
        if (
            isinstance(left, e.Binary)
            and isinstance(left.right, Address)
            and isinstance(right, Address)
        ):
            return self._masked(operator, left, left.right, right)
        if isinstance(right, (Address, e.Prefix)) and operator in {"<", ">", "<=", ">="}:
            raise NotSaid(operator)  # there is no order in new addresses
        role = role_of(left)
        if isinstance(right, e.Range) and isinstance(right.first, Address):
            parts = [*self._expanded(right, None)]
            one = (
                parts[0]
                if len(parts) == 1
                else e.AnonymousSet(tuple(e.Element(key=each) for each in parts))
            )
            return s.Match(operator, self.any(left, None), one)
        return s.Match(operator, self.any(left, None), self.any(right, role))

    def _masked(self, operator: str, left: e.Binary, mask: Address, right: Address) -> s.Match:
        """Return ``field & mask == address``, where the mask is that of a network."""
        width = WIDTHS[mask.version]
        bits = f"{int(mask):0{width}b}"
        outside = int(right) & ~int(mask)
        if left.operator != "&" or "01" in bits or mask.version != right.version or outside:
            raise NotSaid(bits)
        network = network_of(right.version, int(right), bits.count("1"))
        new = self._names.network(network).network_address
        return s.Match(operator, e.Binary("&", self.any(left.left, None), mask), new)

    def _raw(self, given: s.Match, left: e.RawPayload) -> s.Match:
        """Return a match on bits of the IP header, of which only whole addresses are renamed."""
        version = _RAW.get((left.offset, left.length)) if left.base == "nh" else None
        if version is None or given.operator not in {"==", "!="} or type(given.right) is not int:
            raise NotSaid(left.base)
        if not 0 <= given.right < 1 << WIDTHS[version]:
            raise NotSaid(left.base)
        old = IPv4Address(given.right) if version == IPV4 else IPv6Address(given.right)
        return replace(given, right=int(self._names.address(old)))

    def any(self, given: Any, role: Role) -> Any:
        """Return an expression, or any value, with its strings and addresses renamed."""
        match given:
            case None | bool() | int():
                return given
            case str():
                return self._text(given, role)
            case IPv4Address() | IPv6Address():
                return self._names.address(given)
            case e.Prefix(base, length):
                new = self._names.network(network_of(base.version, int(base), length))
                return e.Prefix(new.network_address, new.prefixlen)
            case e.Range():
                if isinstance(given.first, (str, Address)):
                    return self._range(given)
                return given
            case e.Concat(parts):
                roles = role if isinstance(role, tuple) else (None,) * len(parts)
                if len(roles) != len(parts):
                    raise NotSaid("concatenation")
                return e.Concat(tuple(map(self.any, parts, roles)))
            case e.Binary():
                if isinstance(given.right, Address) or isinstance(given.left, Address):
                    raise NotSaid(given.operator)
                return e.Binary(
                    self._keyword(given.operator),
                    self.any(given.left, role),
                    self.any(given.right, role),
                )
            case e.Flags(held):
                return e.Flags(tuple(self.any(each, role) for each in held))
            case e.SetRef(name):
                return e.SetRef(nft_names.set_name(self._naming, self._place.table, name))
            case e.AnonymousSet(elements):
                return e.AnonymousSet(tuple(self.elements(elements, role, role)))
            case e.MapLookup(key, data):
                return e.MapLookup(self.any(key, None), self._map(data, role_of(key), role))
            case e.Jump(chain):
                return e.Jump(self._chain(chain))
            case e.Goto(chain):
                return e.Goto(self._chain(chain))
            case e.Unknown():
                raise NotSaid(given.text)
            case tuple():
                return tuple(self.any(each, role) for each in given)
            case _:
                return self._fields(given)

    def _fields(self, given: Any) -> Any:
        """Return a value whose texts are all words of nft's."""
        made = type(given)
        changes: dict[str, Any] = {}
        for name in fields_of(made):
            held = getattr(given, name)
            if isinstance(held, str):
                changes[name] = self._keyword(held)
            elif isinstance(held, tuple) and all(isinstance(each, str) for each in held):
                changes[name] = tuple(map(self._keyword, held))
            else:
                changes[name] = self.any(held, None)
        return made(**changes)

    def _chain(self, name: str) -> str:
        return nft_names.chain_name(self._naming, self._place.table, name)

    def _comment(self, given: str | None) -> str | None:
        return None if given is None else self._naming.comments.renamed(given)

    @staticmethod
    def _keyword(text: str) -> str:
        if text not in KEYWORDS and not is_nft_word(text):
            raise NotSaid(text)
        return text

    def _text(self, text: str, role: Role) -> str:
        if role == "device":
            return self._naming.device(text)
        hardware = self._names.hardware(text)
        if hardware is not None:
            return hardware
        if role == "user":
            return self._names.user(text)
        if role == "time" and _TIME.fullmatch(text):
            return text
        if is_nft_word(text):
            return text
        # An unknown word is compared with nothing that is known, whatever it is.
        return self._names.name(str(role) if role in {"object", "helper"} else "text", text)

    def _map(self, data: Any, key: Role, of_value: Role) -> Any:
        if isinstance(data, e.AnonymousSet):
            return e.AnonymousSet(tuple(self.elements(data.elements, key, of_value)))
        return self.any(data, None)

    def elements(self, given: tuple[e.Element, ...], key: Role, data: Role) -> Iterator[e.Element]:
        """Yield the new elements; a range of addresses becomes its networks."""
        for each in given:
            try:
                made = self._element(each, key, data)
            except NotSaid:
                self._naming.remove("element", "")
                made = [e.Element(key=UNKNOWN)]
            yield from made

    def _element(self, given: e.Element, key: Role, data: Role) -> list[e.Element]:
        keys = [*self._expanded(given.key, key)]
        if len(keys) > _MOST_ELEMENTS:
            raise NotSaid("range")
        for word in re.split("[ /]", given.limit or ""):
            if word and not word.isdecimal():
                self._keyword(word)
        of_value = None if given.value is None else self._range(given.value, data)
        comment = self._comment(given.comment)
        return [replace(given, key=made, value=of_value, comment=comment) for made in keys]

    def _expanded(self, given: Any, role: Role) -> Iterator[Any]:
        """Yield the expressions that represent one key: for a range of addresses, its networks."""
        match given:
            case e.Range(first, last) if isinstance(first, Address) and isinstance(last, Address):
                networks = blocks(first, last)
                if not networks:
                    raise NotSaid("range")
                for network in networks:
                    new = self._names.network(network)
                    if new.prefixlen == new.max_prefixlen:
                        yield new.network_address
                    else:
                        yield e.Prefix(new.network_address, new.prefixlen)
            case e.Concat(parts):
                roles = role if isinstance(role, tuple) else (None,) * len(parts)
                if len(roles) != len(parts):
                    raise NotSaid("concatenation")
                found: list[tuple[Any, ...]] = [()]
                for part, own in zip(parts, roles, strict=True):
                    choices = [*self._expanded(part, own)]
                    if len(found) * len(choices) > _MOST_ELEMENTS:
                        raise NotSaid("range")
                    found = [(*before, choice) for before in found for choice in choices]
                yield from map(e.Concat, found)
            case _:
                yield self.any(given, role)

    def _range(self, given: Any, role: Role = None) -> Any:
        """Return where something is translated to: a range of addresses must be one network."""
        if isinstance(given, e.Range) and isinstance(given.first, Address):
            networks = blocks(given.first, given.last)  # type: ignore[arg-type]  # both are
            if len(networks) != 1:
                raise NotSaid("range")
            new = self._names.network(networks[0])
            return e.Range(new.network_address, new.broadcast_address)
        if isinstance(given, e.Range):
            if isinstance(given.first, str):
                raise NotSaid(given.first)
            return given
        if isinstance(given, e.Concat):
            roles = role if isinstance(role, tuple) else (None,) * len(given.parts)
            return e.Concat(tuple(map(self._range, given.parts, roles)))
        return self.any(given, role)
