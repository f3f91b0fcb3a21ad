"""Random rulesets of nft: several tables and families, base chains of all hooks, maps of all kinds.

The kernel is the judge of what is a rule: those that it refuses are left out. What is generated
leads somewhere often enough: chains that nat may use and chains that it may not are kept apart,
and matches ask for what the packets that are sent have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.support.lab.nodes import ADDRESSES6, OUTSIDE, OUTSIDE6
from tests.support.lab.random_rules import ADDRESSES

HOOKS: Final = ("prerouting", "input", "forward", "output", "postrouting")
_NAT_HOOKS: Final = ("prerouting", "input", "output", "postrouting")
_PRIORITIES: Final = (-300, -190, -150, -101, -100, -99, -10, 0, 0, 0, 10, 50, 99, 100, 101, 300)
_NAT_PRIORITIES: Final = (-150, -100, -100, -50, 0, 50, 100, 100, 150)
#: Chains without a hook, by who may jump to them; none jumps to one before it.
_USERS: Final = {"filter": ("u", "v", "w"), "dnat": ("n", "o"), "snat": ("p", "q")}
_DEVICES: Final = ("eth0", "pod0", "lo")
_STATES: Final = (
    *("new", "established,related", "invalid", "untracked"),
    *("!= new", "{ new, untracked }", "!= { new, invalid }"),
)
_OPERATORS: Final = ("==", "==", "!=")


@dataclass(frozen=True)
class Held:
    """A ruleset in the order in which it loads: frames, each as a whole, and single rules."""

    frames: tuple[str, ...]
    rules: tuple[str, ...]


class RandomNft:
    """Makes one ruleset after the other, the same ones for the same seed."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def ruleset(self) -> Held:
        random = self._random
        tables = random.sample(
            [("ip", "a"), ("inet", "b"), ("ip", "c"), ("ip6", "a"), ("inet", "d")],
            random.choice((1, 1, 2, 2, 3)),
        )
        made = [_Table(random, family, name) for family, name in tables]
        frames = [text for each in made for text in each.frames()]
        return Held(tuple(frames), tuple(rule for each in made for rule in each.rules()))


def _lists_as_another(words: str) -> bool:
    """Tell whether nft lists `words` as what means something else.

    ``< 53`` and ``> 80``, which no packet meets, it joins to ``!= 53-80``.
    """
    found = re.search(r"(?:^| )(\S.*) < (\d+) \1 > (\d+)", words)
    return found is not None and int(found[2]) <= int(found[3])


class _Table:
    def __init__(self, random: Random, family: str, name: str) -> None:
        self._random = random
        self._family = family
        self._place = f"{family} {name}"
        # What its sets and maps hold; inet may match either.
        self._six = family == "ip6" or (family == "inet" and random.random() < 0.4)
        self._addresses = ADDRESSES6 if self._six else ADDRESSES
        self._bases: list[tuple[str, str, str]] = []

    # --- frames ---

    def frames(self) -> Iterator[str]:
        yield f"add table {self._place}"
        yield from self._users()
        yield from self._base_chains()
        yield from self._sets()

    def _users(self) -> Iterator[str]:
        for users in _USERS.values():
            for user in users:
                yield f"add chain {self._place} {user}"

    def _base_chains(self) -> Iterator[str]:
        random = self._random
        for at in range(random.choice((2, 3, 4, 5, 7))):
            kind = random.choice(("filter", "filter", "nat", "nat", "route"))
            hooks = {"filter": HOOKS, "nat": _NAT_HOOKS, "route": ("output",)}[kind]
            hook = random.choice(hooks)
            if kind == "nat" and hook == "input" and random.random() < 0.7:
                hook = "prerouting"
            priority = random.choice(_NAT_PRIORITIES if kind == "nat" else _PRIORITIES)
            policy = "drop" if random.random() < 0.08 else "accept"
            self._bases.append((f"b{at}", kind, hook))
            head = f"type {kind} hook {hook} priority {priority}; policy {policy};"
            yield f"add chain {self._place} b{at} {{ {head} }}"

    def _sets(self) -> Iterator[str]:
        random = self._random
        address = "ipv6_addr" if self._six else "ipv4_addr"
        some = self._some
        low, high = min(self._addresses), max(self._addresses)
        net = self._network()
        yield self._set("set s", f"type {address};", f"{some()}, {self._source()}")
        yield self._set("set i", f"type {address}; flags interval;", f"{net}")
        yield self._set("set r", f"type {address}; flags interval;", f"{low}-{low + 1}, {high}")
        key = f"type {address} . inet_proto . inet_service;"
        yield self._set("set k", key, f"{some()} . udp . 53, {some()} . tcp . {self._port()}")
        key = f"type {address} . inet_service; flags interval;"
        yield self._set("set c", key, f"{net} . 50-60, {some()} . {random.choice((80, 81))}")
        yield self._set("set d", f"type {address}; flags dynamic, timeout; timeout 1h;", "")
        yield self._set("set e", f"type {address} . inet_service; flags dynamic; size 64;", "")
        yield self._set("set f", "type ifname; flags interval;", '"pod*", "eth0"')
        yield self._set("set m", "type mark;", "0x1, 0x2")
        for group, users in _USERS.items():
            first, last = users[0], users[-1]
            goes = f"{random.choice(('goto', 'jump'))} {last}"
            key = f"type {address} . inet_proto . inet_service : verdict;"
            held = f"{some()} . udp . 53 : goto {first}, {some()} . tcp . 80 : {goes}"
            yield self._set(f"map vk{group}", key, held)
            held = f"{net} : {goes}, {self._source()} : {random.choice(('accept', goes))}"
            yield self._set(f"map vi{group}", f"type {address} : verdict; flags interval;", held)
            key = f"type {address} . inet_service : verdict; flags interval;"
            yield self._set(f"map vc{group}", key, f"{net} . 50-60 : {goes}")
        to = self._endpoint
        yield self._set("map t", f"type inet_service : {address};", f"53 : {to()}, 80 : {to()}")
        key = f"type {address} . inet_service : {address} . inet_service;"
        held = f"{some()} . 53 : {to()} . 53, {some()} . 80 : {to()} . 81"
        yield self._set("map tt", key, held)
        yield self._set("map n", f"type mark : {address} . inet_service;", f"0 : {to()} . 53")
        yield self._set("map x", "type inet_service : mark;", "53 : 0x1, 80 : 0x2")

    def _set(self, what: str, head: str, elements: str) -> str:
        kind, name = what.split()
        held = f" elements = {{ {elements} }}" if elements else ""
        return f"add {kind} {self._place} {name} {{ {head}{held} }}"

    # --- rules ---

    def rules(self) -> Iterator[str]:
        random = self._random
        for name, kind, hook in self._bases:
            group = "filter"
            if kind == "nat":
                group = "dnat" if hook in {"prerouting", "output"} else "snat"
            for _ in range(random.choice((1, 1, 2, 3))):
                yield self._rule(name, group, _USERS[group])
        for group, users in _USERS.items():
            for at, user in enumerate(users):
                for _ in range(random.choice((0, 1, 2, 3))):
                    yield self._rule(user, group, users[at + 1 :])

    def _rule(self, chain: str, group: str, later: tuple[str, ...]) -> str:
        random = self._random
        words = [self._match() for _ in range(random.choice((0, 0, 1, 1, 2)))]
        if _lists_as_another(" ".join(words)):
            words = words[:1]
        changes = self._change() if random.random() < 0.35 else ""
        ends = "" if changes and random.random() < 0.5 else self._end(group, later)
        if "tcp reset" in ends:
            # nft 1.0.6 takes it for what it puts there itself, and prints it no more.
            words = [word for word in words if "nfproto" not in word]
        return f"add rule {self._place} {chain} {' '.join([*words, changes, ends])}"

    def _end(self, group: str, later: tuple[str, ...]) -> str:
        random = self._random
        kinds: list[Callable[[], str]] = [
            lambda: "counter",
            lambda: random.choice(("accept", "accept", "return", "continue", "drop")),
        ]
        if later:
            to = random.choice(later)
            goes = random.choice(("jump", "goto"))
            kinds += [
                lambda: f"{goes} {to}",
                lambda: self._verdicts(goes, to),
                lambda: f"{self._ip} daddr . meta l4proto . th dport vmap @vk{group}",
                lambda: f"{self._ip} {self._side} vmap @vi{group}",
                lambda: f"{self._ip} {self._side} . th dport vmap @vc{group}",
            ]
        match group:
            case "filter":
                kinds.append(self._reject)
            case "dnat":
                kinds += 5 * [self._dnat]
            case _:
                kinds += 3 * [self._snat]
        return random.choice(kinds)()

    def _verdicts(self, goes: str, to: str) -> str:
        random = self._random
        other = random.choice(("accept", "return", "continue", "drop", f"{goes} {to}"))
        return random.choice(
            [
                f"numgen random mod 2 vmap {{ 0 : {goes} {to}, 1 : {other} }}",
                f"numgen random mod 4 vmap {{ 0-1 : {goes} {to}, 3 : {other} }}",
                f"numgen random mod 3 offset 5 vmap {{ 5 : {goes} {to}, 7 : {other} }}",
                f"numgen inc mod 2 vmap {{ 0 : {goes} {to}, 1 : {other} }}",
                f"th dport vmap {{ 53 : {goes} {to}, 70-90 : {other} }}",
                f"meta l4proto . th dport vmap {{ udp . 53 : {goes} {to}, tcp . 80 : {other} }}",
                f'iifname vmap {{ "eth0" : {goes} {to}, "lo" : {other} }}',
                f"ct state vmap {{ new : {goes} {to}, invalid : {other} }}",
                f"meta mark vmap {{ 0x0 : {goes} {to}, 0x1 : {other} }}",
                f"fib daddr type vmap {{ local : {goes} {to}, unicast : {other} }}",
                f"{self._ip} {self._side} vmap {{ {self._network()} : {goes} {to}, * : {other} }}",
            ]
        )

    def _reject(self) -> str:
        return self._random.choice(
            [
                "reject",
                "reject with icmpx port-unreachable",
                "reject with tcp reset",
                "meta l4proto tcp reject with tcp reset",
            ]
        )

    def _dnat(self) -> str:
        to, port = self._endpoint, self._port()
        family = f" {self._ip}" if self._family == "inet" else ""
        host = f"[{to()}]" if self._six else f"{to()}"
        l4 = "meta l4proto { tcp, udp }"
        three = f"0 : {to()} . 53, 1 : {to()} . 53, 2 : {to()} . 81"
        return self._random.choice(
            [
                f"dnat{family} to {to()}",
                f"{l4} dnat{family} to {host}:{port}",
                f"{l4} dnat {self._ip} to numgen random mod 3 map {{ {three} }}",
                f"dnat{family} to numgen random mod 2 map {{ 0 : {to()}, 1 : {to()} }}",
                f"dnat{family} to numgen random mod 3 map {{ 0 : {to()}, 1 : {to()} }}",
                f"dnat{family} to th dport map @t",
                f"dnat {self._ip} to {self._ip} daddr . th dport map @tt",
                f"{l4} dnat {self._ip} to meta mark map @n",
                f"{l4} redirect to :{port}",
                "redirect",
            ]
        )

    def _snat(self) -> str:
        family = f" {self._ip}" if self._family == "inet" else ""
        return self._random.choice(
            [
                "masquerade",
                "masquerade fully-random",
                f"snat{family} to {self._some()}",
            ]
        )

    def _change(self) -> str:
        random = self._random
        bits = f"0x{random.randrange(1, 16):x}"
        return random.choice(
            [
                *(f"meta mark set meta mark {op} {bits}" for op in "|^&"),
                f"meta mark set meta mark & 0x3 | {bits}",
                f"meta mark set {bits}",
                "meta mark set th dport map @x",
                "meta mark set ct mark",
                "meta mark set numgen random mod 4",
                f"ct mark set {bits}",
                "ct mark set meta mark",
                f"ct mark set ct mark | {bits}",
                "notrack",
                f"update @d {{ {self._ip} saddr }}",
                f"add @e {{ {self._ip} saddr . th dport }}",
                "counter",
            ]
        )

    def _match(self) -> str:
        random = self._random
        sign = random.choice(_OPERATORS)
        is_not = random.choice(("", "", "!= "))
        port, some, ip = self._port(), self._some(), self._ip
        side = self._side
        device = random.choice((*_DEVICES, "p*"))
        way = random.choice(("iifname", "oifname"))
        bits = random.randrange(1, 8)
        return random.choice(
            [
                f"{ip} {side} {is_not}{some}",
                f"{ip} {side} {is_not}{self._source()}",
                f"{ip} {side} {is_not}{self._network()}",
                f"{ip} {side} {is_not}{{ {some}, {self._source()} }}",
                f"{ip} {side} {is_not}@{random.choice('sird')}",
                f"{ip} daddr . meta l4proto . th dport {is_not}@k",
                f"{ip} {side} . th dport {is_not}@{random.choice('ce')}",
                f"th dport {is_not}{port}",
                f"udp dport {is_not}{port}",
                f"tcp dport {is_not}{{ 53, 70-90 }}",
                f"th dport {is_not}50-60",
                f"th dport {random.choice(('<', '>', '<=', '>='))} {port}",
                *self._joined("th dport", self._port(), self._port()),
                *self._joined("meta mark", random.randrange(4), random.randrange(4)),
                *self._joined("numgen random mod 5", 1, random.randrange(2, 5)),
                f"meta l4proto {is_not}{random.choice(('tcp', 'udp', '{ tcp, udp }'))}",
                "ip protocol udp" if not self._six else "ip6 nexthdr tcp",
                f"meta nfproto {random.choice(('ipv4', 'ipv6'))}",
                f"meta mark & 0x{bits:x} {sign} 0x{random.randrange(8) & bits:x}",
                f"meta mark {random.choice(('<', '>=', '==', '!='))} {random.randrange(4)}",
                f"meta mark {is_not}@m",
                f"ct state {random.choice(_STATES)}",
                f"ct status {random.choice(('dnat', 'snat', 'confirmed', 'snat,dnat', '!= dnat'))}",
                f"ct mark & 0x{bits:x} {sign} 0x{random.randrange(8) & bits:x}",
                f"ct direction {random.choice(('original', 'reply'))}",
                f"ct original {ip} daddr {is_not}{some}",
                f"ct original {ip} saddr {is_not}{self._source()}",
                f"ct original proto-dst {is_not}{port}",
                f"ct reply {ip} saddr {is_not}{some}",
                f"fib {random.choice(('daddr', 'saddr'))} type {is_not}local",
                f"fib daddr . iif type {is_not}local",
                f'{way} {is_not}"{device}"',
                f"{way} {is_not}@f",
                f'{way} {is_not}{{ "eth0", "lo" }}',
                f'{random.choice(("iif", "oif"))} {is_not}"{random.choice(_DEVICES)}"',
                f"numgen random mod 4 {random.choice(('<', '>=', '==', '!='))} 1",
                f"numgen random mod 3 offset 1 {is_not}{{ 1, 3 }}",
                "numgen inc mod 2 == 0",
                "meta random < 1073741824",
                "ip ttl 64" if not self._six else "ip6 hoplimit != 64",
                "meta length < 1000",
            ]
        )

    @staticmethod
    def _joined(left: str, *ends: int) -> Iterator[str]:
        """Give two comparisons that nft lists as one."""
        low, high = sorted(ends)
        if low < high:
            yield f"{left} < {high} {left} > {low}"
            yield f"{left} >= {high} {left} <= {low}"

    # --- what packets have ---

    @property
    def _ip(self) -> str:
        return "ip6" if self._six else "ip"

    @property
    def _side(self) -> str:
        return self._random.choice(("daddr", "daddr", "saddr"))

    def _some(self) -> str:
        return str(self._random.choice(self._addresses))

    def _source(self) -> str:
        return str(OUTSIDE6 if self._six else OUTSIDE)

    def _endpoint(self) -> str:
        return str(self._random.choice(self._addresses[1:]))

    def _network(self) -> str:
        six = ("fd00:10:1::/64", "fd00:10::/32", "fd00:172::/64")
        four = ("10.1.0.0/24", "10.0.0.0/8", "172.16.0.0/12", "10.2.3.4/30")
        return self._random.choice(six if self._six else four)

    def _port(self) -> int:
        return self._random.choice((53, 80, 81))
