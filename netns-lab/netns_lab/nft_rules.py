"""An nft ruleset in a namespace, with our own counters of the endpoints drawn.

Theory of operation
===================

kube-proxy's nft chains have no counters. So a table of ours counts after DNAT: two chains, right
after all nat chains of prerouting and of output, record the destination of each new flow with DNAT
in a set whose elements have counters. They issue no verdicts and come after the draw, so the odds
stay the same. What the node sends to itself passes prerouting again, on loopback, and is not
counted twice.

Source: Linux, net/netfilter/nft_dynset.c, ``nft_dynset_eval``; include/uapi/linux/netfilter_ipv4.h.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from ipaddress import ip_address
from itertools import islice
from typing import Any, Final

from analyzer.model.addresses import Address
from analyzer.model.nft import statements as st
from analyzer.model.nft.expressions import AnonymousSet, Element
from analyzer.model.nft.ruleset import Chain, NftRuleset, Set
from analyzer.model.value import replace
from analyzer.parsers import nft_text
from analyzer.semantics.base_chains import Rules
from netns_lab.backend import Backend, SocketAddress, not_loaded
from netns_lab.command import ip_batch, run
from netns_lab.errors import LabError
from netns_lab.nft import Nft
from netns_lab.nft_clients import ClientSet, ClientSets
from netns_lab.nft_commands import commands, devices, understood
from netns_lab.nft_drawn import DrawnSet

#: Commands per transaction: the kernel checks all jumps of a table at the end of each.
_COMMANDS: Final = 2_000
_EXPIRES: Final = re.compile(r" expires \w+")
_COUNTING: Final = """
table inet {table} {{
    set drawn4 {{ type ipv4_addr . inet_service; flags dynamic; size 1000000; counter; }}
    set drawn6 {{ type ipv6_addr . inet_service; flags dynamic; size 1000000; counter; }}
    chain prerouting {{
        type filter hook prerouting priority -99;
        iifname != "lo" jump count
    }}
    chain output {{
        type filter hook output priority -99;
        jump count
    }}
    chain count {{
        meta l4proto != {{ tcp, udp, sctp }} return
        ct state new ct status dnat update @drawn4 {{ ip daddr . th dport }}
        ct state new ct status dnat update @drawn6 {{ ip6 daddr . th dport }}
    }}
}}
"""
#: An element of each comes and goes, so that the kernel keeps small hash tables for them, which it
#: walks through for each reading: the first is for as many elements as there may be.
_SMALL: Final = """
add element inet {table} drawn4 {{ 192.0.2.1 . 1 }}
add element inet {table} drawn6 {{ 2001:db8::1 . 1 }}
flush set inet {table} drawn4
flush set inet {table} drawn6
"""
#: The sets of that table.
_DRAWN: Final = ("drawn4", "drawn6")


class Nftables(Backend):
    """nft rules loaded by libnftables, with counters in a table of our own."""

    _clients: ClientSets | None

    def load(self, ruleset: Rules) -> None:
        """Load all tables of the dump, and the one that counts."""
        match ruleset:
            case NftRuleset():
                pass
            case _:
                raise LabError(
                    f"{ruleset.file}: nft cannot load a dump of iptables-save; leave out --backend"
                )
        ruleset = self._ruleset = self._loadable(ruleset)
        self._nft = Nft(self.namespace)
        self._place(devices(ruleset))
        rest = commands(ruleset)
        while some := list(islice(rest, _COMMANDS)):
            self._take(some)
        self.adopt(ruleset)
        self._table = "kubeodds-lab"  # `kubeodds` is that of a repair
        while ("inet", self._table) in ruleset.tables:
            self._table += "-lab"
        # Beside other rules of the node it may be there already: twice it would count twice.
        if f"table inet {self._table}" not in self._nft.run("list tables").splitlines():
            self._nft.run((_COUNTING + _SMALL).format(table=self._table))
        self._drawn = [DrawnSet(self.namespace, self._table, name) for name in _DRAWN]

    def adopt(self, ruleset: Rules) -> None:
        """Use the rules that are loaded already, which must be exactly these besides our own.

        Raises:
            LabError: they differ.
        """
        assert isinstance(ruleset, NftRuleset)
        held = nft_text.parse(self._nft.run("list ruleset"), "nft list ruleset")
        _check_same(self._loadable(ruleset), held)
        self._clients = self._sets_of_clients(held, ruleset)

    def _loadable(self, ruleset: NftRuleset) -> NftRuleset:
        """Return a ruleset without the rules that are left out, which are noted."""
        if not self.lenient:
            return ruleset
        kept, left_out = understood(ruleset)
        for rule, why in left_out:
            note = not_loaded(rule.location, why)
            if note not in self.notes:
                self.notes.append(note)
        return kept

    def changed(self) -> None:
        """Look again which sets rules fill, once that is asked for."""
        self._clients = None

    def _sets_of_clients(self, held: NftRuleset, ruleset: NftRuleset) -> ClientSets:
        """Return the sets that rules fill in the tables of a dump."""
        of_clients = [
            ClientSet(*place, name, each.key, is_map=each.value is not None)
            for place in ruleset.tables
            # As they are loaded.
            for name, each in held.tables[place].sets.items()
            if "dynamic" in each.flags
        ]
        return ClientSets(self.namespace, self._nft, of_clients)

    def _known(self) -> ClientSets:
        if self._clients is None:
            held = nft_text.parse(self._nft.run("list ruleset"), "nft list ruleset")
            self._clients = self._sets_of_clients(held, self._ruleset)
        return self._clients

    def change(self, commands: str) -> bool:
        """Run commands of nft, all or none; return whether they were accepted."""
        try:
            self._nft.run(commands)
        except LabError:
            return False
        return True

    def saved(self) -> str:
        """Return the rules as nft prints them, without our own and what changes over time."""
        text = _EXPIRES.sub("", self._nft.run("list ruleset"))
        own = text.find(f"table inet {self._table} {{")
        end = text.find("\n}\n", own)
        return text if own < 0 else text[:own] + text[end + len("\n}\n") :]

    def resync(self, ruleset: Rules, without: Collection[str] = ()) -> bool:
        """Rewrite kube-proxy's tables in one transaction, as it does when it starts."""
        del without  # no other table can name its chains
        return self.change(self.sync(ruleset)[1])

    def sync(self, ruleset: Rules) -> tuple[list[str], str]:
        """Return the program, and its input, of a full sync of kube-proxy: one transaction."""
        assert isinstance(ruleset, NftRuleset)
        kept = self._loadable(ruleset)
        tables = {place: t for place, t in kept.tables.items() if place[1] == "kube-proxy"}
        return self._instead_of(tables, replace(kept, tables=tables))

    def replacement(self, ruleset: Rules) -> tuple[list[str], str]:
        """Return the program, and its input, that replaces all tables in one transaction."""
        match ruleset:
            case NftRuleset():
                pass
            case _:
                raise LabError(
                    f"{ruleset.file}: it is not of the same kind as the rules that it replaces"
                )
        ruleset = self._loadable(ruleset)
        self._place(devices(ruleset))
        before, self._ruleset = self._ruleset, ruleset
        return self._instead_of(before.tables, ruleset)

    @staticmethod
    def _instead_of(
        places: Iterable[tuple[str, str]], ruleset: NftRuleset
    ) -> tuple[list[str], str]:
        drop = [f"delete table {' '.join(place)}" for place in places]
        return ["nft", "-f", "-"], "\n".join([*drop, *commands(ruleset)]) + "\n"

    def listing(self) -> list[str]:
        """Return the command that prints the loaded rules."""
        return ["nft", "list", "ruleset"]

    def check(self, ruleset: Rules, listing: str) -> None:
        """Check that `listing` is `ruleset`."""
        assert isinstance(ruleset, NftRuleset)
        held = nft_text.parse(listing, "nft list ruleset")
        _check_same(self._loadable(ruleset), held)

    def _take(self, some: list[str]) -> None:
        """Run commands as one transaction; if that is refused, in halves.

        An ordinary user's socket buffer holds few commands; and this finds the one that nft
        refuses.
        """
        try:
            self._nft.run("\n".join(some))
        except LabError:
            if len(some) == 1:
                raise
            half = len(some) // 2
            self._take(some[:half])
            self._take(some[half:])

    def _place(self, names: frozenset[str]) -> None:
        """Create the interfaces that are missing; no packet arrives through them."""
        shown = run(self.namespace, ["ip", "-o", "link"]).stdout
        there = {line.split(":")[1].strip().partition("@")[0] for line in shown.splitlines()}
        missing = sorted(names - there)
        for name in missing:
            if not name.isprintable() or any(c.isspace() or c == "/" for c in name):
                raise LabError(f"no interface can have the name {name!r}")
        ip_batch(self.namespace, [f"link add {name} type bridge" for name in missing])

    def forget_clients(self) -> None:
        """Empty the sets that rules fill."""
        self._known().flush()

    def forgetting(self, clients: Sequence[Address]) -> AbstractContextManager[Callable[[], None]]:
        """Let rules forget a few clients without a transaction."""
        return self._known().forgetting(clients)

    def _newly_drawn(self) -> Counter[SocketAddress]:
        """Read the counters in our sets."""
        found: Counter[SocketAddress] = Counter()
        for each in self._drawn:
            found.update(dict(each.new()))
        return found

    def cross_check(self) -> None:
        """Read the counters by libnftables too."""
        for held in self._drawn:
            counted = held.packets()
            other: dict[SocketAddress, int] = {}
            for item in self._nft.listed(f"set inet {self._table} {held.name}"):
                for each in item.get("set", {}).get("elem", ()):
                    address, port = each["elem"]["val"]["concat"]
                    other[int(ip_address(address)), port] = each["elem"]["counter"]["packets"]
            if counted != other:
                raise LabError(
                    f"netlink and libnftables do not read the same counters in set {held.name}: "
                    f"{len(counted)} and {len(other)} endpoints"
                )


def _check_same(wanted: NftRuleset, held: NftRuleset) -> None:
    for place, table in wanted.tables.items():
        loaded = held.tables.get(place)
        for name, chain in table.chains.items():
            other = loaded.chains.get(name) if loaded is not None else None
            if other is None or _of_chain(chain) != _of_chain(other):
                raise LabError(_different(f"chain {name}", place))
        for name, each in table.sets.items():
            found = loaded.sets.get(name) if loaded is not None else None
            if "dynamic" in each.flags and found is not None:
                found = replace(found, elements=each.elements)  # clients that came since
            if found is None or _of_set(each) != _of_set(found):
                raise LabError(_different(f"set {name}", place))


def _different(what: str, place: tuple[str, str]) -> str:
    return (
        f"{what} of table {' '.join(place)} is not the same once it is loaded; is this nft older "
        "or newer than the one that wrote the dump?"
    )


def _of_chain(chain: Chain) -> Any:
    """Return the parts of a chain that have an effect."""
    head = chain.type, chain.hook, chain.priority, chain.policy or "accept", set(chain.devices)
    return head, [tuple(map(_lasting, rule.statements)) for rule in chain.rules]


def _lasting(statement: st.Statement) -> st.Statement:
    """Return a statement without what packets change, as nft writes it when it loads it."""
    match statement:
        case st.Counter():
            return st.Counter()
        # So a set is listed whose elements were merged into one; loaded again, it is no set.
        case st.Match("==" | "!=" as operator, left, AnonymousSet((Element(key=key, value=None),))):
            return st.Match(operator, left, key)
        case _:
            return statement


def _of_set(held: Set) -> Mapping[str, Any]:
    """Return the parts of a set that have an effect; `expires` changes every second."""
    return {
        "types": (held.key, held.value, held.timeout),
        "elements": frozenset(
            replace(each, expires=None, comment=None, counter=None) for each in held.elements
        ),
    }
