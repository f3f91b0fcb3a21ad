"""Random rulesets that the kernel takes, over all tables, with matches of many kinds."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from random import Random
from typing import Final

from analyzer.model.diagnostics import Location
from analyzer.model.iptables import matches as m
from analyzer.model.iptables import options as o
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.rules import Rule
from analyzer.parsers.xt.rule import render_rule

SERVICE, POD, OTHER_POD, NODE = map(IPv4Address, ("10.2.3.4", "10.1.0.9", "10.1.0.8", "172.16.0.1"))
ADDRESSES: Final = (SERVICE, POD, OTHER_POD, NODE)
PORTS: Final = (53, 80)
DEVICES: Final = ("eth0", "pod0", "lo")
HOOKS: Final = {
    "raw": ("PREROUTING", "OUTPUT"),
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
}
_STATES: Final = ("NEW", "ESTABLISHED", "INVALID", "UNTRACKED", "DNAT", "RELATED")
_TRACED: Final = "-p udp -j TRACE"
_UDP: Final = m.MatchProtocol("udp")
_SIMPLE: Final[dict[str, t.Target | None]] = {
    "none": None,
    "accept": t.Accept(),
    "drop": t.Drop(),
    "return": t.Return(),
    "notrack": t.NoTrack(),
    "reject": t.Reject("icmp-port-unreachable"),
    "redirect": t.Redirect(o.Range(80, 80)),
    "masquerade": t.Masquerade(),
}


class RandomRules:
    """Makes one ruleset after the other, the same ones for the same seed."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def text(self) -> str:
        """Return a ruleset as iptables-restore reads it; raw traces every packet of UDP."""
        random = self._random
        tables = ["raw", *(name for name in ("mangle", "nat", "filter") if random.random() < 0.8)]
        lines: list[str] = []
        for table in tables:
            users = ("U", "V")
            lines.append(f"*{table}")
            for hook in HOOKS[table]:
                drops = table != "nat" and random.random() < 0.1
                lines.append(f":{hook} {'DROP' if drops else 'ACCEPT'} [0:0]")
            lines += [f":{user} - [0:0]" for user in users]
            for at, chain in enumerate((*HOOKS[table], *users)):
                if table == "raw" and chain in HOOKS["raw"]:
                    lines.append(f"-A {chain} {_TRACED}")
                later = users if at < len(HOOKS[table]) else users[users.index(chain) + 1 :]
                hooks = HOOKS[table] if chain in users else (chain,)
                for _ in range(random.choice((0, 1, 1, 2, 3))):
                    lines.append(render_rule(chain, self._rule(table, hooks, later)))
            lines.append("COMMIT")
        return "\n".join(lines) + "\n"

    def _rule(self, table: str, hooks: tuple[str, ...], later: tuple[str, ...]) -> Rule:
        random = self._random
        target = self._target(table, hooks, later)
        matches: list[m.Match] = []
        for _ in range(random.choice((0, 0, 1, 1, 2))):
            match = random.choice(_MATCHES)(random, hooks)
            if match is not None and _kind(match) not in map(_kind, matches):
                matches.append(match)
        needs = isinstance(target, t.Dnat | t.Redirect) or any(
            isinstance(match, m.MatchUdp | m.MatchMultiport) for match in matches
        )
        bare = [each for each in matches if _is_bare(each)]
        held = [*bare, *([_UDP] if needs else []), *(e for e in matches if not _is_bare(e))]
        return Rule(tuple(held), target, Location("made", 1), "")

    def _target(
        self, table: str, hooks: tuple[str, ...], later: tuple[str, ...]
    ) -> t.Target | None:
        kinds = ["none", "accept", "accept", "return", "mark", "mark", "flow", "copy"]
        kinds += [] if table == "nat" else ["drop"]  # iptables refuses it there
        kinds += ["jump", "jump", "goto", "goto"] if later else []
        kinds += ["notrack"] if table == "raw" else []
        kinds += ["reject"] if table == "filter" else []
        if table == "nat" and set(hooks) <= {"PREROUTING", "OUTPUT"}:
            kinds += [*4 * ["dnat"], "redirect"]
        if table == "nat" and hooks == ("POSTROUTING",):
            kinds += 3 * ["masquerade"]
        return self._made(self._random.choice(kinds), later)

    def _made(self, kind: str, later: tuple[str, ...]) -> t.Target | None:
        random = self._random
        value, mask = random.randrange(4), random.randrange(4)
        match kind:
            case "jump":
                return t.Jump(random.choice(later))
            case "goto":
                return t.Goto(random.choice(later))
            case "mark":
                return t.SetMark(value, mask)
            case "flow":
                return t.SetConnmark(value, mask)
            case "copy":
                return t.CopyConnmark(random.choice(("save", "restore")), value, mask)
            case "dnat":
                to = random.choice((POD, OTHER_POD, NODE))
                return t.Dnat(t.NatRange(to, None, random.choice(PORTS)))
            case _:
                return _SIMPLE[kind]


def _kind(match: m.Match) -> type:
    return type(match.match if isinstance(match, m.MatchNot) else match)


def _is_bare(match: m.Match) -> bool:
    bare = m.MatchSource, m.MatchDestination, m.MatchInInterface, m.MatchOutInterface
    return issubclass(_kind(match), bare)


def _negated(random: Random, match: m.Match) -> m.Match:
    return m.MatchNot(match) if random.random() < 0.3 else match


def _host(random: Random) -> IPv4Network:
    address = random.choice(ADDRESSES)
    return IPv4Network((address, random.choice((32, 32, 24, 16))), strict=False)


def _in_device(random: Random, hooks: tuple[str, ...]) -> m.Match | None:
    allowed = not {"OUTPUT", "POSTROUTING"} & set(hooks)
    return _negated(random, m.MatchInInterface(random.choice(DEVICES))) if allowed else None


def _out_device(random: Random, hooks: tuple[str, ...]) -> m.Match | None:
    allowed = not {"PREROUTING", "INPUT"} & set(hooks)
    return _negated(random, m.MatchOutInterface(random.choice(DEVICES))) if allowed else None


def _masked(random: Random) -> o.Masked:
    return o.Masked(random.randrange(4), random.randrange(1, 4))


_Make = Callable[[Random, tuple[str, ...]], m.Match | None]

_MATCHES: Final[tuple[_Make, ...]] = (
    lambda r, _: m.MatchRandom(r.randrange(1, 4) << 29),
    lambda r, _: m.MatchRandom(r.randrange(1, 4) << 29),
    lambda r, _: m.MatchNot(m.MatchRandom(r.randrange(1, 4) << 29)),
    lambda r, _: _negated(r, m.MatchDestination(_host(r))),
    lambda r, _: _negated(r, m.MatchSource(_host(r))),
    _in_device,
    _out_device,
    lambda r, _: m.MatchUdp(destination_port=o.Option(_ports(r), r.random() < 0.3)),
    lambda r, _: m.MatchMultiport(
        destination_ports=o.Option((_ports(r), o.Range(80, 90)), r.random() < 0.3)
    ),
    lambda r, _: m.MatchIprange(
        destination=o.Option(o.AddressRange(OTHER_POD, POD), r.random() < 0.3)
    ),
    lambda r, _: _negated(r, m.MatchMark(_masked(r))),
    lambda r, _: _negated(r, m.MatchConnmark(_masked(r))),
    lambda r, _: m.MatchConntrack(
        state=o.Option(tuple(r.sample(_STATES, r.choice((1, 2)))), r.random() < 0.3)
    ),
    lambda r, _: m.MatchConntrack(
        original_destination=o.Option(_host(r), r.random() < 0.3), direction="ORIGINAL"
    ),
    lambda r, _: m.MatchConntrack(reply_source=o.Option(_host(r), r.random() < 0.3)),
    lambda r, _: m.MatchAddrtype(destination_type=o.Option(("LOCAL",), r.random() < 0.3)),
    lambda r, _: m.MatchAddrtype(source_type=o.Option(("LOCAL",), r.random() < 0.3)),
    lambda r, _: m.MatchLength(o.Range(0, r.choice((20, 65535)))),
    lambda r, _: m.MatchTtl(above=r.choice((1, 200))),
    lambda _, __: m.MatchComment("a comment"),
)


def _ports(random: Random) -> o.Range:
    first = random.choice((53, 80, 81))
    return o.Range(first, random.choice((first, 80 if first <= 80 else 90)))
