"""Pseudonyms: a keyed hash of each name, by the kind of thing that it names."""

from __future__ import annotations

import base64
import hmac
import re
from ipaddress import IPv4Address, IPv6Address

from analyzer.anonymise.addresses import AddressMap
from analyzer.model.addresses import (
    Address,
    Network,
    address_and_port_from_text,
    address_from_text,
    address_to_text,
    network_from_text,
    network_to_text,
)
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

#: Letters of base32 that a hash in a name has: 50 bits.
_LETTERS: Final = 10
#: What every cluster has by the same name, and what verbs know by it: API server and DNS.
NAMESPACES: Final = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))
_SERVICES: Final = {
    ("default", "kubernetes"): frozenset(("https",)),
    ("kube-system", "kube-dns"): frozenset(("dns", "dns-tcp", "metrics")),
}
_SERVICE_PORT: Final = re.compile(r"([^\s/:]+)/([^\s/:]+)(?:(:)([^\s/:]*))?")
_HARDWARE: Final = re.compile(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5,}")
_DIGITS: Final = re.compile(r"\d{1,10}")
#: How names of each kind begin. A port's name has 15 letters at most, and a letter.
_BEGINS: Final = {
    "namespace": "ns-",
    "service": "svc-",
    "port": "p-",
    "node": "node-",
    "pod": "pod-",
    "zone": "zone-",
    "region": "region-",
    "user": "user-",
    "set": "set-",
    "list": "list-",
    "helper": "helper-",
    "object": "object-",
    "label": "label-",
    "text": "text-",
    "chain": "CHAIN-",
    "table": "table-",
}


@value
class Renamed:
    """A row of the private map: the old name, the new one, and the kind of thing it names."""

    kind: str
    old: str
    new: str


class Pseudonyms:
    """All new names that a salt leads to.

    `well_known`: the Services that every cluster has keep their names, with their namespaces.
    """

    def __init__(self, salt: bytes, *, well_known: bool = True) -> None:
        self._key = hmac.digest(salt, b"kubeodds anonymise names", "sha256")
        self.addresses = AddressMap(hmac.digest(salt, b"kubeodds anonymise addresses", "sha256"))
        self._well_known = well_known
        self._names: dict[tuple[str, str], str] = {}
        #: What was named by others, as chains are.
        self._noted: dict[tuple[str, str], str] = {}

    def rows(self) -> Iterator[Renamed]:
        """Yield the rows of the private map."""
        for (kind, old), new in (*self._names.items(), *self._noted.items()):
            yield Renamed(kind, old, new)
        seen: set[str] = set()
        for old_place, new_place in self.addresses.seen.items():
            old, new, kind = str(old_place), str(new_place), "address"
            if not isinstance(old_place, (IPv4Address, IPv6Address)):
                host = f"/{old_place.max_prefixlen}"
                kind = "address" if old.endswith(host) else "network"
                old, new = old.removesuffix(host), new.removesuffix(host)
            if old not in seen:
                seen.add(old)
                yield Renamed(kind, old, new)

    def note(self, kind: str, old: str, new: str) -> str:
        """Record a name that was renamed elsewhere in the map, and return its new name."""
        self._noted[kind, old] = new
        return new

    def hashed(self, kind: str, old: str, letters: int = _LETTERS) -> str:
        """Return the first letters of the base32 of a keyed hash, in capitals."""
        told = f"{kind}\0{old}".encode("utf-8", "surrogateescape")
        digest = hmac.digest(self._key, told, "sha256")
        return base64.b32encode(digest).decode("ascii")[:letters]

    def name(self, kind: str, old: str) -> str:
        """Return the pseudonym of a name; the same in every context."""
        found = self._names.get((kind, old))
        if found is None:
            letters = self.hashed(kind, old)
            found = _BEGINS[kind] + (letters if kind == "chain" else letters.lower())
            self._names[kind, old] = found
        return found

    def namespace(self, old: str) -> str:
        """Return the pseudonym of a namespace."""
        if self._well_known and old in NAMESPACES:
            return old
        return self.name("namespace", old)

    def service(self, namespace: str, old: str) -> str:
        """Return the pseudonym of a Service."""
        if self._well_known and (namespace, old) in _SERVICES:
            return old
        return self.name("service", old)

    def port(self, namespace: str, service: str, old: str) -> str:
        """Return the pseudonym of a port's name; empty if it has none."""
        if not old:
            return ""
        if self._well_known and old in _SERVICES.get((namespace, service), ()):
            return old
        return self.name("port", old)

    def service_port(self, text: str) -> str | None:
        """Return the new form of ``ns/name[:port]``; None if it is not one."""
        found = _SERVICE_PORT.fullmatch(text)
        if found is None:
            return None
        namespace, service, colon, port = found.groups()
        new = f"{self.namespace(namespace)}/{self.service(namespace, service)}{colon or ''}"
        if colon and not port:  # reports leave it out
            self.note("ServicePort", text[:-1], new[:-1])
        return self.note("ServicePort", text, new + self.port(namespace, service, port or ""))

    def address(self, given: Address) -> Address:
        """Return the new address of an address."""
        return self.addresses.address(given)

    def network(self, given: Network) -> Network:
        """Return the new network of a network."""
        return self.addresses.network(given)

    def address_text(self, text: object) -> str | None:
        """Return the new text of an address or network; None if it is neither."""
        if not isinstance(text, str):
            return None
        address = address_from_text(text)
        if address is not None:
            return address_to_text(self.address(address))
        network = network_from_text(text) if "/" in text else None
        return None if network is None else network_to_text(self.network(network))

    def endpoint_text(self, text: str) -> str | None:
        """Return the new form of ``address:port``; None if it is not one."""
        place = address_and_port_from_text(text)
        if place is None or place[1] is None:
            return None
        address = address_to_text(self.address(place[0]))
        host = f"[{address}]" if ":" in address else address
        return f"{host}:{place[1]}"

    def hardware(self, text: str) -> str | None:
        """Return the new MAC address; None if it is not one.

        A group stays a group, so do broadcast and the address of zeros.
        """
        if _HARDWARE.fullmatch(text) is None:
            return None
        octets = text.lower().split(":")
        if set(octets) <= {"ff"} or set(octets) <= {"00"}:
            return text.lower()
        digest = hmac.digest(self._key, b"hardware\0" + text.lower().encode(), "sha256")
        group = int(octets[0], 16) & 1
        found = [f"{digest[0] & 0xFC | 2 | group:02x}"]  # locally administered
        found += [f"{each:02x}" for each in digest[1 : len(octets)]]
        return self.note("hardware", text.lower(), ":".join(found))

    def user(self, text: str) -> str:
        """Return the new name of a user; a numeric uid is kept."""
        return text if _DIGITS.fullmatch(text) else self.name("user", text)
