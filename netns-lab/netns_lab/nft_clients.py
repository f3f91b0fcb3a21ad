"""The sets in which rules of nft keep clients, which implement session affinity.

Theory of operation
===================

To empty a set is a transaction, by netlink: libnftables would list all sets before. The kernel
looks at every chain of the ruleset to end one, which takes 2 ms where there are 1,500. That is
little for a hundred clients, and much for one. A few clients are removed by rules: the node sends a
packet to each, whose destination these rules delete from all sets, and drop it before any rule of
the dump. Rules can only name sets of their own table, so for as long as they are needed each table
with such sets has one more chain.

Source: Linux, net/netfilter/nft_dynset.c, ``nft_dynset_eval``: ``NFT_DYNSET_OP_DELETE``;
net/netfilter/nf_tables_api.c, ``nf_tables_delsetelem``: without elements, all of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import count
from socket import SOCK_RAW, socket
from typing import Final, NamedTuple

from analyzer.model.addresses import Address
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink, attribute
from netns_lab.nft import Nft
from netns_lab.servers import FAMILIES

#: Clients that are removed one by one.
_FEW: Final = 4
#: Turns until the sets are emptied again. What a rule has deleted stays in the hash table until a
#: collector comes by, once a second. With more than 16 entries in one place the kernel begins to
#: rebuild the table, and meanwhile takes no new ones (lib/rhashtable.c, ``RHT_ELASTICITY``).
_TURNS: Final = 8
#: Of netlink, and the numbers of families there.
_NETFILTER, _DELETE_ELEMENTS = 12, 10 << 8 | 14
_FAMILIES: Final = {"inet": 1, "ip": 2, "arp": 3, "netdev": 5, "bridge": 7, "ip6": 10}
#: RFC 3692: for experiments.
_PROTOCOL: Final = 253
_CHAIN: Final = "kubeodds-lab-forget"
#: Packets' families by IP version, and their names in ``meta nfproto``.
_FAMILY_OF: Final = {4: "ip", 6: "ip6"}
_PROTOCOLS: Final = {"ip": "ipv4", "ip6": "ipv6"}
#: The family of clients in sets of these types.
_CLIENTS: Final[Mapping[tuple[str, ...], str]] = {("ipv4_addr",): "ip", ("ipv6_addr",): "ip6"}
#: A client in a set of such a type.
_ANY_CLIENT: Final[Mapping[tuple[str, ...], str]] = {
    ("ipv4_addr",): "192.0.2.1",
    ("ipv6_addr",): "2001:db8::1",
}


class ClientSet(NamedTuple):
    """A set, or a map, that rules fill: by family, table and name."""

    family: str
    table: str
    name: str
    key: tuple[str, ...]
    is_map: bool


class ClientSets:
    """All of them in one namespace."""

    def __init__(self, namespace: Namespace, nft: Nft, sets: Sequence[ClientSet]) -> None:
        self._namespace, self._nft, self._sets = namespace, nft, tuple(sets)
        self._flush = "\n".join(
            f"flush {'map' if each.is_map else 'set'} {each.family} {each.table} {each.name}"
            for each in self._sets
        )
        self._is_small = False

    @cached_property
    def _netlink(self) -> Netlink:
        return Netlink(self._namespace, _NETFILTER)

    def flush(self) -> None:
        """Empty them."""
        if not self._sets:
            return
        self._shrink()
        for each in self._sets:
            place = attribute(1, _text(each.table)) + attribute(2, _text(each.name))
            body = struct.pack(">BBH", _FAMILIES[each.family], 0, 0) + place
            self._netlink.add(f"flush set {each.name}", _DELETE_ELEMENTS, body)
        self._netlink.commit()

    def _shrink(self) -> None:
        """Let the kernel keep small hash tables, which are walked through each time.

        It makes one for as many elements as there may be, by default 65,535, and a smaller one as
        soon as an element is removed (lib/rhashtable.c, ``automatic_shrinking``).
        """
        if self._is_small:
            return
        self._is_small = True
        adds = (
            f"add element {each.family} {each.table} {each.name} {{ {_ANY_CLIENT[each.key]} }}"
            for each in self._sets
            if each.key in _ANY_CLIENT and not each.is_map
        )
        self._nft.run("\n".join([self._flush, *adds, self._flush]))

    @contextmanager
    def forgetting(self, clients: Sequence[Address]) -> Iterator[Callable[[], None]]:
        """Yield what makes the rules forget `clients`, and whatever else they knew at first."""
        self.flush()
        tables = list(dict.fromkeys((each.family, each.table) for each in self._sets))
        if len(clients) > _FEW or not self._has_names_for(clients):
            yield self.flush
            return
        with ExitStack() as stack:
            sending = {
                version: stack.enter_context(
                    self._namespace.socket(FAMILIES[version], SOCK_RAW, _PROTOCOL)
                )
                for version in {each.version for each in clients}
            }
            self._nft.run("\n".join(self._commands(tables)))
            stack.callback(
                self._nft.run,
                "\n".join(f"delete chain {family} {table} {_CHAIN}" for family, table in tables),
            )

            turns = count()

            def forget() -> None:
                if next(turns) % _TURNS == 0:
                    self.flush()
                    return
                for client in clients:
                    _send(sending[client.version], client)

            yield forget

    def _has_names_for(self, clients: Sequence[Address]) -> bool:
        """Return whether rules can delete all clients from all sets."""
        families = {each.family for each in self._sets}
        return all(each.key in _CLIENTS and not each.is_map for each in self._sets) and all(
            families & {"inet", _FAMILY_OF[each.version]} for each in clients
        )

    def _commands(self, tables: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Yield commands that add the chains; the last of these drops."""
        for place in tables:
            family, table = place
            where = f"{family} {table} {_CHAIN}"
            # One after the other, each ahead of everything else.
            priority = -2_000_000_000 + tables.index(place)
            yield f"add chain {where} {{ type filter hook output priority {priority}; }}"
            for each in self._sets:
                if (each.family, each.table) == place:
                    client = f"{_CLIENTS[each.key]} daddr"
                    deletes = f"delete @{each.name} {{ {client} }}"
                    yield f"add rule {where} meta l4proto {_PROTOCOL} {deletes}"
        for family in _FAMILY_OF.values():
            last = [place for place in tables if place[0] in {family, "inet"}][-1:]
            for place in last:
                protocol = f"meta nfproto {_PROTOCOLS[family]} " if place[0] == "inet" else ""
                drop = f"{protocol}meta l4proto {_PROTOCOL} drop"
                yield f"add rule {' '.join(place)} {_CHAIN} {drop}"


def _text(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape") + b"\0"


def _send(sending: socket, client: Address) -> None:
    """Send the packet that removes a client.

    Raises:
        LabError: it was not dropped by the last of the rules.
    """
    try:
        sending.sendto(b"", (str(client), 0))
    except PermissionError:
        return
    raise LabError(f"no rule has removed {client} from the sets of session affinity")
