"""Frontends in nft tables: of Services, those that the filter hooks refuse, and hostPorts."""

from __future__ import annotations

from collections.abc import Container, Iterator
from ipaddress import IPv4Address, IPv6Address

from analyzer.kubeproxy import names
from analyzer.kubeproxy.dispatch.nft_chains import reached_by
from analyzer.kubeproxy.dispatch.nft_places import PacketPattern, places
from analyzer.kubeproxy.rows.nft import PlainChain, PlainElement, chains_of, numbers_of, rows_of
from analyzer.kubeproxy.view import Frontend, FrontendKind
from analyzer.model.addresses import IPV4, VERSIONS, Address
from analyzer.model.hooks import AT_DEVICES
from analyzer.model.iptables import targets
from analyzer.model.nft.expressions import Drop, Goto, Jump
from analyzer.model.nft.ruleset import Chain, NftRuleset, Set, Table
from analyzer.model.nft.statements import Reject
from analyzer.model.packet import UNKNOWN_PACKET
from analyzer.model.value import value
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    from analyzer.kubeproxy.dispatch.object_names import ObjectNames

    #: Protocol, address and port.
    DestinationKey: TypeAlias = tuple[str | None, Address | None, int | None]

#: Hooks at which flows are sent to endpoints.
NAT_HOOKS: Final = frozenset({"prerouting", "output"})
FILTER_HOOKS: Final = frozenset({"prerouting", "input", "forward", "output"})
#: The table of kube-proxy, and its set of ClusterIPs.
_TABLE: Final = "kube-proxy"
_CLUSTER_IPS: Final = "cluster-ips"
#: Prefix of the chains for traffic from outside the cluster.
_EXTERNAL: Final = "external-"
#: The hook of devices that flows pass before those of nat.
INGRESS: Final = frozenset(
    hook for of in AT_DEVICES.values() for hook, before in of.items() if before == "PREROUTING"
)


def at_devices(ruleset: NftRuleset) -> list[Table]:
    """Return the tables with chains at devices alone."""
    tables = ruleset.tables.values()
    return [each for each in tables if each.family == "netdev" and "dormant" not in each.flags]


def base_chains(table: Table, hooks: Container[str], kind: str) -> list[str]:
    """Return the names of a table's base chains of a type that any of `hooks` calls."""
    bases = [chain for chain in table.chains.values() if chain.hook is not None]
    return [chain.name for chain in bases if chain.hook in hooks and chain.type == kind]


@value(kw_only=True)
class NftDispatch:
    """One frontend of one ServicePort, and the chain that it leads to.

    That of a hostPort, which belongs to no Service, is the chain with its DNAT rule.
    """

    name: str
    protocol: str
    frontend: Frontend
    chain: str
    table: Table
    among: str | None = None
    plain: PlainChain | None = None

    @property
    def is_of_service(self) -> bool:
        """Whether kube-proxy may have written it."""
        return self.frontend.kind is not FrontendKind.HOST_PORT


class NftDispatches:
    """The frontends of one family, `family`: ``ip`` or ``ip6``, in a ruleset.

    `plainly`: elements of the plainest shape are read as rows.

    Attributes:
        tables: those that packets of the family traverse.
        guarded: frontends of which the filter hooks refuse some flows and not others.
        refused: what they refuse for certain, and how: reject or drop.
        guessed: frontends whose kind does not follow from the rules.
        plain_map: the map whose elements are read as rows.
        plain_maps: the same by family, table and name, if every chain that it names is in the dump.
        plain_addresses: the endpoints of the chains that it leads to, as written.
    """

    def __init__(
        self,
        ruleset: NftRuleset,
        family: str,
        object_names: ObjectNames | None,
        *,
        plainly: bool,
    ) -> None:
        self._family = family
        self._version = VERSIONS[family]
        self._address = IPv4Address if self._version == IPV4 else IPv6Address
        self._object_names = object_names
        self._plainly = plainly
        self.tables = [
            table
            for table in ruleset.tables.values()
            if table.family in {family, "inet"} and "dormant" not in table.flags
        ]
        self.guessed: set[DestinationKey] = set()
        self.plain_map: str | None = None
        self.plain_maps: set[tuple[str, str, str]] = set()
        self.plain_addresses: set[str] = set()
        held = [table.sets.get(_CLUSTER_IPS) for table in self.tables]
        sets = [each for each in held if each is not None]
        self._known_ips = frozenset[int]().union(*[numbers_of(s, self._version) for s in sets])
        self._refusing: dict[tuple[PacketPattern, str, str], Table] = {}
        #: By table and name.
        self._chains: dict[tuple[int, str], list[Chain]] = {}
        self.guarded = self._read_guarded()
        self.dispatches = list(self._read_dispatches())
        ours = {id(each.table) for each in self.dispatches if each.is_of_service}
        # What other tables refuse, for example a firewall's, is not a Service.
        self._refusing = {
            key: table
            for key, table in self._refusing.items()
            if id(table) in ours or table.name == _TABLE
        }
        self.refused: list[tuple[PacketPattern, str]] = [key[:2] for key in self._refusing]

    def node_port_sets(self) -> Iterator[Set]:
        """Yield the sets of addresses at which NodePorts answer, also those without endpoints."""
        for each in self.dispatches:
            if each.among is not None and each.among in each.table.sets:
                yield each.table.sets[each.among]
        for (place, *_), table in self._refusing.items():
            if place.among is not None and place.among in table.sets:
                yield table.sets[place.among]

    def _read_dispatches(self) -> Iterator[NftDispatch]:
        for table in self.tables:
            yield from self._read_table(table)
        for table in self.tables:
            if (table.family, table.name) == (self._family, names.HOST_PORT_TABLE):
                from analyzer.kubeproxy.dispatch.nft_host_ports import host_ports

                for each in host_ports(table, base_chains(table, NAT_HOOKS, "nat")):
                    yield NftDispatch(
                        name=each.name,
                        protocol=each.protocol,
                        frontend=each.frontend,
                        chain=each.chain,
                        table=table,
                    )

    def _read_table(self, table: Table) -> Iterator[NftDispatch]:
        rows: list[PlainElement] = []

        def take(name: str) -> bool:
            # Two maps may have the same address: only evaluating the rules tells which one decides.
            if self.plain_map is not None or not self._plainly or table.family != self._family:
                return self.plain_map == name and bool(rows)
            found = rows_of(table.sets[name]) if name in table.sets else None
            # No packet matches an address of the other IP version, which only an edited dump has.
            if found is None or any(type(each) is not self._address for each, *_ in found):
                return False
            self.plain_map = name
            rows.extend(found)
            return True

        others = list(places(table, base_chains(table, NAT_HOOKS, "nat"), take))
        if rows and all(chain in table.chains for *_, chain in rows):
            self.plain_maps.add((table.family, table.name, str(self.plain_map)))
        plain, hosts = chains_of(table, dict.fromkeys(chain for *_, chain in rows))
        self.plain_addresses |= hosts
        for row in rows:
            yield self._of_row(row, table, plain.get(row[-1]))
        for place in filter(self._is_mine, others):
            match place.verdict:
                case Jump(chain) | Goto(chain) if place.is_of_service:
                    yield self._entrance(place, chain, table)
                case _:
                    pass

    def _is_mine(self, place: PacketPattern) -> bool:
        """Return whether packets of this family can match; a table may be of both families."""
        return place.address is None or place.address.version == self._version

    def _of_row(self, row: PlainElement, table: Table, plain: PlainChain | None) -> NftDispatch:
        address, protocol, port, chain = row
        name, frontend = self._named((protocol, address, port), None, chain)
        return NftDispatch(
            name=name,
            protocol=protocol,
            frontend=frontend,
            chain=chain,
            table=table,
            plain=plain,
        )

    def _entrance(self, place: PacketPattern, chain: str, table: Table) -> NftDispatch:
        name, frontend = self.named(place, chain)
        return NftDispatch(
            name=name,
            protocol=str(place.protocol),
            frontend=frontend,
            chain=chain,
            table=table,
            among=place.among,
        )

    def named(self, place: PacketPattern, chain: str) -> tuple[str, Frontend]:
        """Return the name of a Service and the frontend that packets to a place are for."""
        return self._named(_key(place), place.comment, chain)

    def _named(self, to: DestinationKey, comment: str | None, chain: str) -> tuple[str, Frontend]:
        name = comment or names.name_in_chain(chain)
        protocol, address, port = to
        kind: str | None = None
        if self._object_names is not None:
            told, kind = self._object_names.of("", address, port or 0, str(protocol))
            kind = kind if name in {None, told} else None
            name = name or told
        if address is None:
            frontend = Frontend(FrontendKind.NODE_PORT, None, port)
        else:
            frontend = Frontend(self._kind(to, chain, kind), address, port)
        return name or str(frontend), frontend

    def _kind(self, to: DestinationKey, chain: str, told: str | None) -> FrontendKind:
        _, address, _ = to
        if told is not None:
            return FrontendKind(told)
        if address is not None and int(address) in self._known_ips:
            return FrontendKind.CLUSTER_IP
        if self._known_ips or chain.startswith(_EXTERNAL):
            self.guessed.add(to)
            # Only LoadBalancer addresses have source ranges.
            guarded = to in self.guarded
            return FrontendKind.LOAD_BALANCER_IP if guarded else FrontendKind.EXTERNAL_IP
        return FrontendKind.CLUSTER_IP

    def chains(self, table: Table, name: str) -> list[Chain]:
        """Return a chain and all chains reached from it."""
        key = id(table), name
        found = self._chains.get(key)
        if found is None:
            found = self._chains[key] = list(reached_by(table, [name]))
        return found

    def _read_guarded(self) -> set[DestinationKey]:
        """Return the places whose flows rules in the filter hooks may refuse, but not all."""
        found: set[DestinationKey] = set()
        for table in self.tables:
            walk = NftTraversal(table, self._family, Situation())
            answers: dict[object, str | None] = {}
            found_here = places(table, base_chains(table, FILTER_HOOKS, "filter"))
            for place in filter(self._is_mine, found_here):
                if place.verdict not in answers:
                    answers[place.verdict] = _answer(place, walk)
                answer = answers[place.verdict]
                if answer is None:
                    found.add(_key(place))
                elif place.is_of_service:
                    self._refusing.setdefault((place, answer, table.name), table)
        return found


def _key(place: PacketPattern) -> DestinationKey:
    return place.protocol, place.address, place.port


def _answer(place: PacketPattern, walk: NftTraversal) -> str | None:
    """Return how packets are refused for certain; None: they are not, or not all are."""
    match place.verdict:
        case Drop():
            return "drop"
        case Reject():
            return "reject"
        case Jump(chain) | Goto(chain):
            match walk.tree(chain, UNKNOWN_PACKET):
                case Leaf(targets.Reject()):
                    return "reject"
                case Leaf(targets.Drop()):
                    return "drop"
                case _:
                    return None
        case _:
            return None
