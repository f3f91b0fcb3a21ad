"""Frontends in iptables mode whose rules are alike up to names and addresses.

Theory of operation
===================

What happens to flows to a frontend follows from the rows that such flows may hit. Most of these
are the Service's own: the rows of KUBE-SERVICES and KUBE-NODEPORTS for its address and port, and
the chains that they lead to. Here their text is taken with the names of chains, and the addresses
and ports of the frontend and of the endpoints, replaced by numbers in the order of appearance. Two
frontends with the same text have the same result, with the endpoints of one in the place of the
other's, if the rest of the rules cannot distinguish their addresses and ports: so for each of them
it is recorded in which networks and port ranges anywhere in the dump it lies, and whether it is
the node's own or in a network of pods.

The rules are traversed for one frontend of each class. A frontend with anything doubtful (a row
that was not kept as text, a port that rows match in other ways than by ``--dport``, a DNAT to
anything but an address and port) is in no class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.fastpath.around import LITERALS, PORTS, Around, as_host
from analyzer.kubeproxy.routes.pod_networks import PodNetworks
from analyzer.kubeproxy.rows.shapes import are_hosts
from analyzer.kubeproxy.view import Endpoint, Frontend
from analyzer.model.addresses import (
    Address,
    address_and_port_from_text,
    network_from_text,
)
from analyzer.model.iptables.rules import Ruleset, Table
from analyzer.model.value import value
from analyzer.parsers.rows import RowChains, RuleRows

_PREFIXES: Final = "|".join((names.ENDPOINT_PREFIX, *names.SERVICE_PREFIXES))
CHAIN: Final = rf"(?:{_PREFIXES})[^\s\"]+"
COMMENT: Final = r' -m comment --comment (?:"(?:[^"\\]|\\.)*"|[^\s"]+)'
COUNTS: Final = r"(?m:^)\[\d+:\d+\] "
_COMMENT: Final = re.compile(COMMENT)
_COUNTED: Final = re.compile(COUNTS)
_LEADS: Final = re.compile(rf" -[jg] ({CHAIN})(?!\S)")
TO: Final = re.compile(r" --to-destination (\S+)")
#: What is replaced: comments and counters by nothing.
TOKENS: Final = re.compile(
    rf"{COMMENT}|{COUNTS}|(?P<chain>{CHAIN})|(?<= --to-destination )(?P<to>\S+)"
    r"|(?<= -s )(?P<from>[\da-f.:]+/(?:32|128))(?!\S)"
    r"|(?<= -d )(?P<host>[\da-f.:]+/(?:32|128))(?!\S)|(?<= --dport )(?P<port>\d+)(?!\S)"
)
#: Rows for one address, and for one port.
_OF_HOST: Final = re.compile(
    rf"(?:{COUNTS})?-A \S+ (?:(?:! )?-s \S+ )?-d ([\d.]+/32|[\da-f:.]+/128) "
)
_OF_PORT: Final = re.compile(r"(?<! !) --dport (\d+)(?!\S)")
#: Chains with rows of all Services.
_LISTS: Final = (
    ("nat", names.SERVICES),
    ("nat", names.NODE_PORTS),
    ("filter", names.SERVICES),
    ("filter", names.EXTERNAL_SERVICES),
    ("filter", names.NODE_PORTS),
)
#: Most different addresses in the rest of a dump with which each of a Service's is compared.
MOST_NETWORKS: Final = 2_000


@value
class Closure:
    """The rows that flows to a frontend may hit, as far as they are its own.

    Attributes:
        key: equal for frontends that are alike.
        endpoints: those that the rows have as DNAT destinations, in the order in which `key`
            numbers them.
        around: networks named in the rows of all Services, and in those of frontends that are
            alike.
    """

    key: Hashable
    endpoints: tuple[Endpoint, ...]
    around: frozenset[str]


class IptablesClosures:
    """The closures of a dump's frontends.

    `own` are the node's addresses, if known; `pods` are the networks of pods. `tells` returns what
    rules may match on of an address other than the address itself.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        own: Iterable[Address],
        pods: PodNetworks,
        tells: Callable[[Address], Hashable] = lambda _: None,
    ) -> None:
        self._tells = tells
        nat = ruleset.tables.get("nat")
        whole = nat is not None and nat.complete and isinstance(nat.chains, RowChains)
        self._nat = nat if whole else None
        self._ruleset = ruleset
        self._own = frozenset(own)
        self._own_hosts = frozenset(map(as_host, self._own))
        self._places: dict[Address, Hashable] = {}
        self._last: tuple[Frontend, tuple[list[str], dict[str, str]] | None] | None = None
        self._pods = pods

    def of(self, frontend: Frontend, protocol: str) -> Closure | None:
        """Return the frontend's own rows that its flows may hit; None: it is in no class."""
        met = self.met(frontend)
        if met is None or self.around is None:
            return None
        rows, chains = met
        numbers = {name: at for at, name in enumerate(chains)}
        joined = "\n".join((*rows, *[f"\n{chains[name]}" for name in chains]))
        to = list(dict.fromkeys(TO.findall(joined)))
        endpoints = [endpoint_of(each) for each in to]
        if None in endpoints:
            return None
        known = [each for each in endpoints if each is not None]
        hosts: dict[str, str] = {}
        for each in known:
            hosts.setdefault(as_host(each.address), f"@{len(hosts)}")
        asked = None if frontend.address is None else as_host(frontend.address)
        others: dict[str, str] = {}
        to_numbers = {text: f"@{at}" for at, text in enumerate(to)}
        port = str(frontend.port)

        def replaced(token: re.Match[str]) -> str:
            match token.lastgroup:
                case "chain":
                    return f"#{numbers.get(token[0], token[0])}"
                case "to":
                    return to_numbers[token[0]]
                case "from":
                    return hosts.get(token[0], token[0])
                case "host":
                    if token[0] == asked:
                        return "@"
                    # Others, for example the ClusterIP of a NodePort's Service, need only differ
                    # from this one.
                    return hosts.get(token[0]) or others.setdefault(token[0], f"%{len(others)}")
                case "port":
                    return "@" if token[0] == port else token[0]
                case _:
                    return ""

        text = TOKENS.sub(replaced, joined)
        if '"' in text:
            return None  # what was left out as a comment may not be one
        literals = self.around.and_of(text)
        ports = tuple(dict.fromkeys(each.port for each in known))
        places, listed = list(hosts), self.listed
        key = (
            *(frontend.kind, protocol, text, hosts.get(asked or "")),
            None if frontend.address is None else self.relation(frontend.address, literals),
            tuple([self.relation(each.address, literals) for each in known]),
            tuple([(places.index(as_host(e.address)), ports.index(e.port)) for e in known]),
            *(literals.of_port(each) for each in (frontend.port, *ports)),
            tuple([self.is_own(each) for each in others]),
            # Flows after DNAT may hit rows of others, if these are for their address or port.
            tuple([at for each in hosts for at in listed.by_host.get(each, ())]),
            tuple([at for each in ports for at in listed.by_port.get(each or 0, ())]),
        )
        return Closure(key, tuple(known), literals.told)

    def met(self, frontend: Frontend) -> tuple[list[str], dict[str, str]] | None:
        """Return the rows, of the chains of all Services, that flows to a frontend may hit.

        With them the text of each chain that they lead to. None: not all of these are known.
        """
        if self._nat is None or frontend.port is None or self.around is None:
            return None
        if self._last is None or self._last[0] != frontend:
            rows = self._rows(frontend)
            chains = self._chains(rows)
            self._last = frontend, None if chains is None else (rows, chains)
        return self._last[1]

    def is_own(self, host: str) -> bool:
        """Return whether an address, as rows match on it, is one of the node's own."""
        return host in self._own_hosts

    def relation(self, address: Address, around: Around) -> Hashable:
        """Return what distinguishes an address for rules: networks, the node, and the pods."""
        place = self._places.get(address)
        if place is None:
            pods = self._pods
            place = self._places[address] = (
                address in self._own or address.is_loopback,
                *(any(address in n for n in theirs) for theirs in (pods.here, pods.elsewhere)),
                self._tells(address),
            )
        return place, around.of_address(address)

    def _rows(self, frontend: Frontend) -> list[str]:
        """Return the rows in the chains of all Services that its flows may hit, in order.

        Each begins with its chain, and the number of rows for any frontend that are before it.
        """
        listed = self.listed
        places = list(listed.by_port.get(frontend.port or 0, ()))
        if frontend.address is not None:
            places += listed.by_host.get(as_host(frontend.address), ())
        else:
            # It goes to some address of the node, which may not be known.
            places += listed.of_any_host.get(frontend.port or 0, ())
            places += listed.of_any_host.get(None, ())
            for own in self._own_hosts:
                places += listed.by_host.get(own, ())
        return [listed.rows[at] for at in sorted(set(places))]

    @cached_property
    def listed(self) -> ServiceRows:
        """The rows for one Service each, in chains with rows of all Services."""
        found = ServiceRows([], {}, {}, {}, [])
        for table, chain in _LISTS:
            held = self._ruleset.tables.get(table)
            rules = held.chains[chain].rules if held and chain in held.chains else ()
            if isinstance(rules, RuleRows):
                found.add(f"{table} {chain}", rules.lines)
        return found

    def _chains(self, rows: Sequence[str]) -> dict[str, str] | None:
        """Return the text of the Service's chains, in the order in which rows lead to them."""
        assert self._nat is not None  # checked by the callers
        found: dict[str, str] = {}
        rest = _LEADS.findall("\n".join(rows))[::-1]
        while rest:
            name = rest.pop()
            if name in found:
                continue
            chain = self._nat.chains.get(name)
            if chain is None or not isinstance(chain.rules, RuleRows) or not chain.rules.complete:
                return None
            found[name] = chain.rules.text.replace(f"-A {name} ", "-A ")
            rest += _LEADS.findall(found[name])[::-1]
        return found

    @cached_property
    def around(self) -> Around | None:
        """Everything named in rows that are of no Service; None: too much for a comparison."""
        pieces: list[str] = []
        for table in self._ruleset.tables.values():
            if not table.complete:
                return None
            pieces += _outside(table)
        pieces += [f"{row}\n" for row in self.listed.shared]
        # With comments: an address in one only splits classes further.
        text = "".join(pieces)
        literals = dict.fromkeys(LITERALS.findall(text))
        if len(literals) > MOST_NETWORKS or _LEADS.search(text):
            return None  # so flows to any frontend may reach a Service that is not their own
        return Around.of(literals, PORTS.findall(text))


@value
class ServiceRows:
    """Rows for one Service each, in chains with rows of all Services.

    Attributes:
        rows: chain after chain, each in its order.
        by_host: the positions of those that match one address.
        of_any_host: the same by their port, or None.
        by_port: those that match one port, and no address.
        shared: the rows of these chains that are not of a single Service.
    """

    rows: list[str]
    by_host: dict[str, list[int]]
    of_any_host: dict[int | None, list[int]]
    by_port: dict[int, list[int]]
    shared: list[str]

    def add(self, chain: str, rows: Iterable[str]) -> None:
        """Add the rows of a chain."""
        others = 0
        for row in rows:
            host, port = _host_and_port(row)
            if host is None and port is None:
                others += 1
                self.shared.append(row)
                continue
            at = len(self.rows)
            self.rows.append(f"{chain} {others} {_COUNTED.sub('', row, 1)}")
            if host is not None:
                self.by_host.setdefault(host, []).append(at)
                self.of_any_host.setdefault(port, []).append(at)
            elif port is not None:
                self.by_port.setdefault(port, []).append(at)


def _host_and_port(row: str) -> tuple[str | None, int | None]:
    """Return the single address and the single port that a row matches, if it has such matches."""
    bare = _COMMENT.sub("", row)
    host, ports = _OF_HOST.match(row), _OF_PORT.findall(bare)
    # Text between other quotes is not an option.
    port = int(ports[0]) if len(ports) == 1 and '"' not in bare else None
    if host is None:
        return None, port
    if are_hosts((host[1].removesuffix("/32"),), "ip"):  # as it is printed
        return host[1], port
    network = network_from_text(host[1])
    return None if network is None else as_host(network.network_address), port


def _outside(table: Table) -> Iterator[str]:
    """Yield the rows of a table that are in no chain of Services, and in none that lists these."""
    of_services = (names.ENDPOINT_PREFIX, *names.SERVICE_PREFIXES)
    for name in table.chains:
        if table.name == "nat" and name.startswith(of_services):
            continue
        rules = table.chains[name].rules
        if not isinstance(rules, RuleRows):
            yield "".join(f"{rule.raw}\n" for rule in rules)
        elif (table.name, name) not in _LISTS:
            yield rules.text


def endpoint_of(text: str) -> Endpoint | None:
    """Return the endpoint of ``--to-destination``; None: it is not an address with a port."""
    found = address_and_port_from_text(text)
    return None if found is None or found[1] is None else Endpoint(*found)
