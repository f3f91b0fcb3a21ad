"""Rules that are not kube-proxy's, put into a dump wherever there is a place for one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.support.foreign.ground import Ground

#: Networks that hold pods, endpoints, nodes and clients, whole and in part.
_NETWORKS = (
    "192.0.2.0/24",
    "198.51.100.0/25",
    "203.0.113.0/30",
    "10.0.0.0/8",
    "0.0.0.0/1",
    "192.168.0.0/24",
    "192.168.0.10/32",
)
_BASES = {
    "raw": ("PREROUTING", "OUTPUT"),
    "mangle": ("PREROUTING", "INPUT", "OUTPUT", "FORWARD", "POSTROUTING"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
}
_ENDING = {
    "raw": ("ACCEPT", "DROP", "RETURN"),
    "mangle": ("ACCEPT", "DROP", "RETURN"),
    "filter": ("ACCEPT", "DROP", "RETURN", "REJECT --reject-with icmp-port-unreachable"),
}
#: nft's names of what a hook is called, and the priorities that there are around conntrack and nat.
_NFT_HOOKS = {
    "prerouting": ("filter", (-300, -150, -101, -99, 0)),
    "input": ("filter", (-10, 0)),
    "output": ("filter", (-300, -150, -101, -99, 0)),
    "forward": ("filter", (-10, 0)),
    "postrouting": ("filter", (-10, 50)),
}
#: Those that a flow meets behind its DNAT, where it may be written to.
_BEHIND = {
    "prerouting": (-99, 0),
    "input": (-10, 0),
    "output": (-99, 0),
    "forward": (-10, 0),
    "postrouting": (-10, 50),
}
#: What others say to conntrack before it looks at a flow, or when it no longer listens.
_TO_CONNTRACK = (
    "ct zone set 5",
    "ct original zone set 5",
    "ct reply zone set 5",
    "notrack",
)
#: Chains whose flows have a device to leave by.
_WITH_WAY_OUT = frozenset({"FORWARD", "KUBE-FORWARD", "OUTPUT", "POSTROUTING", "KUBE-POSTROUTING"})
_MARKING = (
    "meta mark set meta mark | 0x00004000",
    "meta mark set 0x00000000",
    "ct mark set 0x00000001",
)
#: Chains of iptables where sources may be changed.
_LEAVING = frozenset({"INPUT", "POSTROUTING", "KUBE-POSTROUTING"})
#: How often others have a chain that they jump to, and how often a dump lacks it.
_RATE_OF_JUMPS = 0.3
_RATE_OF_MISSING = 0.5
_RATE_OF_SETS = 0.3
#: How often no rule of theirs matches on a device by which packets come in, and more on others.
_RATE_OF_LEAVING_ONLY = 0.3
_MINE = re.compile(r"^\tchain mine \{\n.*\n\t\}\n|^:MINE-.*\n|^-A MINE-.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Foreign:
    """A dump with rules of others in it, and those of them that may stand in a file beside it."""

    text: str
    beside: tuple[str, ...] = ()


class Writer:
    """Writes rules that ask for what the ground has."""

    def __init__(self, ground: Ground, random: Random) -> None:
        self._ground = ground
        self._random = random
        found = set(re.findall(r"\b10\.\d+\.\d+\.\d+\b", ground.text))
        self._hosts = sorted(found) or ["10.0.0.1"]
        pods = (*ground.pods_here, *ground.pods_elsewhere, *ground.pods_of_none)
        networks = [str(n) for n in pods]
        inner = [str(next(n.subnets(2))) for n in pods]
        self._networks = [*_NETWORKS, *networks, *inner, *(f"{h}/32" for h in self._hosts)]
        #: Whether rules match only on devices to leave by: then nothing but answers tells clients'
        #: devices apart.
        self._leaving_only = random.random() < _RATE_OF_LEAVING_ONLY

    def iptables(self) -> str:
        """Return the dump with one to three rows of others."""
        text = self._ground.text
        for number in range(self._random.randint(1, 3)):
            text = self._with_row(text, number)
        return text

    def _with_row(self, text: str, number: int) -> str:
        table = self._random.choice(("raw", "mangle", "nat", "nat", "filter", "filter"))
        tables = dict(_tables(text))
        if table not in tables:
            bases = "".join(f":{each} ACCEPT [0:0]\n" for each in _BASES[table])
            tables[table] = f"*{table}\n{bases}COMMIT\n"
        body = tables[table]
        chains = re.findall(r"^:(\S+) ", body, re.MULTILINE)
        ours = [c for c in chains if c.startswith("KUBE-") and "CANARY" not in c]
        chain = self._random.choice([*_BASES[table], *self._random.sample(ours, min(3, len(ours)))])
        if chain in _BASES[table] and self._random.random() < 0.1 and table != "nat":
            tables[table] = body.replace(f":{chain} ACCEPT", f":{chain} DROP")
            return "".join(tables.values())
        rows = [f"-A {chain} {self._match(chain)}-j {self._target(table, chain)}"]
        declared = ""
        if self._random.random() < 0.2:
            mine = f"MINE-{number}"
            declared = f":{mine} - [0:0]\n"
            inside = f"-A {mine} {self._match(chain)}-j {self._target(table, chain)}"
            jump = self._random.choice("jg")
            rows = [f"-A {chain} {self._match(chain)}-{jump} {mine}", inside]
        tables[table] = _put(body, declared, chain, rows, self._random)
        return "".join(tables.values())

    def _match(self, chain: str) -> str:
        entering = chain not in {*_LEAVING, "OUTPUT"}
        choices = ["", "source", "source", "source", "not", "range", "mark", "port", "to", "local"]
        choices += ["connmark"] if chain in _LEAVING else []
        devices = ["way out"] * (chain in _WITH_WAY_OUT) * (8 if self._leaving_only else 1)
        devices += ["device"] * (entering and not self._leaving_only)
        match self._random.choice([*choices, *devices]):
            case "source":
                return f"-s {self._network()} "
            case "not":
                return f"! -s {self._network()} "
            case "range":
                low, high = sorted(self._random.sample(range(256), 2))
                return f"-m iprange --src-range 192.0.2.{low}-192.0.2.{high} "
            case "mark":
                mark = self._random.choice(("0x4000/0x4000", "0x1/0x1", "0x0/0xff"))
                return f"-m mark {self._random.choice(('', '! '))}--mark {mark} "
            case "connmark":
                return "-m connmark --mark 0x1/0x1 "
            case "port":
                return f"-p tcp -m tcp --sport {self._random.choice((40000, 1024))} "
            case "to":
                return f"-d {self._random.choice(self._hosts)}/32 "
            case "local":
                return "-m addrtype --src-type LOCAL "
            case "device":
                return f"-i {self._random.choice(('eth0', 'cni0'))} "
            case "way out":
                return f"-o {self._random.choice(('eth0', 'cni0'))} "
            case _:
                return ""

    def _network(self) -> str:
        return self._one(*self._networks)

    def _target(self, table: str, hook: str) -> str:
        leaving = hook in _LEAVING
        marks = ("MARK --set-xmark 0x4000/0x4000", "MARK --set-xmark 0x0/0x4000")
        if table == "nat":
            snat = ("SNAT --to-source 192.168.0.200",) if leaving else ()
            if leaving and hook != "INPUT":
                snat = ("MASQUERADE", *snat)
            return self._one("ACCEPT", "RETURN", *marks, *snat)
        zones = ("CT --zone 5", "CT --zone-orig 5", "CT --zone-reply 5")
        also = ("NOTRACK", *zones) if table == "raw" else ("CONNMARK --set-xmark 0x1/0x1",)
        return self._one(*_ENDING[table], *marks, *also)

    def _one(self, *choices: str) -> str:
        return choices[self._random.randrange(len(choices))]

    # --- nft ---

    def nft(self) -> Foreign:
        """Return the dump with a table of others, beside or in it, and rules of theirs inside."""
        text = self._ground.text
        if self._random.random() < 0.5:
            text = self._with_rule(text)
        table = self.nft_table()
        return Foreign(text, (table,)) if self._random.random() < 0.5 else Foreign(text + table)

    def nft_table(self) -> str:
        """Return a table of others, of one base chain."""
        hook = self._random.choice(("nat-out", "nat-in", *_NFT_HOOKS))
        if hook in {"nat-out", "nat-in"}:
            kind, hook = "nat", "postrouting" if hook == "nat-out" else "input"
            priority = self._random.choice((90, 100, 110))
        else:
            kind, priorities = _NFT_HOOKS[hook]
            priority = self._random.choice(priorities)
        policy = self._random.choice(("accept",) * 8 + ("drop",)) if kind == "filter" else "accept"
        rules = [self._rule(hook, kind) for _ in range(self._random.randint(1, 2))]
        return self._table_of(f"{kind} hook {hook} priority {priority}; policy {policy}", rules)

    def writing_table(self) -> str:
        """Return a table that writes to flows behind their DNAT, on one hook."""
        hook, priorities = self._random.choice(list(_BEHIND.items()))
        rules = [
            self._match_of_nft(hook)
            + self._one(*_MARKING, "ip saddr set 192.0.2.7", "ip saddr set 198.51.100.9")
            for _ in range(self._random.randint(1, 2))
        ]
        priority = self._random.choice(priorities)
        return self._table_of(f"filter hook {hook} priority {priority}; policy accept", rules)

    def _table_of(self, head: str, rules: list[str]) -> str:
        mine = ""
        if self._random.random() < _RATE_OF_JUMPS:
            mine = f"\tchain mine {{\n\t\t{rules.pop()}\n\t}}\n"
            named, asks = self._asking_map()
            mine = named + mine
            rules.append(
                self._one("jump mine", "goto mine", "meta l4proto vmap { tcp : jump mine }", asks)
            )
        if self._random.random() < _RATE_OF_SETS:
            named, asks = self._asking_set()
            mine = named + mine
            first, _, rest = rules.pop().partition(" ")
            rules.append(f"{asks} {first} {rest}".strip())
        body = "".join(f"\t\t{rule}\n" for rule in rules)
        return f"table ip foreign {{\n{mine}\tchain c {{\n\t\ttype {head};\n{body}\t}}\n}}\n"

    def _asking_map(self) -> tuple[str, str]:
        """Return a verdict map of hosts, networks or marks that leads to a chain, and its use."""
        kind, asked, keys = self._keys("jump mine")
        return f"\tmap who {{\n\t\t{kind} : verdict\n{keys}\t}}\n", f"{asked} vmap @who"

    def _asking_set(self) -> tuple[str, str]:
        """Return a set of hosts, networks or marks, and the comparison that asks for it."""
        kind, asked, keys = self._keys("")
        return f"\tset some {{\n\t\t{kind}\n{keys}\t}}\n", f"{asked} @some"

    def _keys(self, leads: str) -> tuple[str, str, str]:
        """Return the type of a set or map, what is asked, and its lines; each key `leads` there."""
        asked = self._one("ip daddr", "ip saddr", "meta mark")
        if asked == "meta mark":
            kind, keys, flags = "mark", [self._one("0x00004000", "0x00000000", "0x00000001")], ""
        elif self._random.random() < 0.5:
            kind, keys, flags = "ipv4_addr", [self._network()], "\t\tflags interval\n"
        else:
            kind, flags = "ipv4_addr", ""
            keys = self._random.sample(self._hosts, min(2, len(self._hosts)))
        elements = ", ".join(f"{key} : {leads}" if leads else key for key in keys)
        return f"type {kind}", asked, f"{flags}\t\telements = {{ {elements} }}\n"

    def shown(self, text: str) -> str:
        """Return a dump, or what is left of it without a chain that others jump to."""
        if self._random.random() < _RATE_OF_MISSING:
            return _MINE.sub("", text)
        return text

    def _with_rule(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        start = next((at for at, line in enumerate(lines) if line.startswith("table ip ")), 0)
        end = next((at for at, line in enumerate(lines) if at > start and line == "}\n"), 0)
        inside = [
            at for at in range(start, end) if lines[at].startswith("\t\t") and _is_rule(lines, at)
        ]
        at = self._random.choice(inside)
        chain = next(line for line in reversed(lines[:at]) if line.startswith("\tchain "))
        kind = "nat" if "masquerading" in chain or "postrouting" in chain else "inside"
        return "".join([*lines[:at], f"\t\t{self._rule('inside', kind)}\n", *lines[at:]])

    def _rule(self, hook: str, kind: str) -> str:
        ends = ["return", *_MARKING]
        if kind == "nat":
            ends = ["accept", "return", "snat to 192.168.0.200"]
            ends += [] if hook == "input" else ["masquerade"]
        elif hook != "inside":
            ends += ["accept", "drop"]
            ends += _TO_CONNTRACK if hook in {"prerouting", "output"} else ()
        return self._match_of_nft(hook) + self._one(*ends)

    def _match_of_nft(self, hook: str) -> str:
        network = self._network()
        return self._one(
            *(
                "",
                f"ip saddr {network} ",
                f"ip saddr != {network} ",
                f"ip saddr {{ {network}, 192.0.2.7 }} ",
                "ip saddr 192.0.2.4-192.0.2.77 ",
                "ip saddr & 0.0.0.1 == 0.0.0.1 ",
                f"ip daddr {self._random.choice(self._hosts)} ",
                "meta mark & 0x00004000 == 0x00004000 ",
                "ct mark 0x00000001 ",
                "tcp sport 40000 ",
                "fib saddr type local ",
                *(
                    ()
                    if hook in {"postrouting", "input", "output", "inside"} or self._leaving_only
                    else ('iifname "cni0" ',)
                ),
                *(
                    ('oifname "cni0" ', 'oifname "eth0" ') * (4 if self._leaving_only else 1)
                    if hook in {"forward", "postrouting", "output"}
                    else ()
                ),
            )
        )


def _is_rule(lines: list[str], at: int) -> bool:
    """Tell whether a line stands in a chain, behind its type."""
    for line in reversed(lines[:at]):
        if line.startswith("\tchain "):
            words = lines[at].split()
            return words[0] not in {"type", "comment", "policy"}
        if line.startswith(("\t}", "\tset ", "\tmap ", "table ")):
            return False
    return False


def _tables(text: str) -> Iterator[tuple[str, str]]:
    for body in re.findall(r"^\*\w+\n.*?^COMMIT\n", text, re.MULTILINE | re.DOTALL):
        yield body[1 : body.index("\n")], body


def _put(body: str, declared: str, chain: str, rows: list[str], random: Random) -> str:
    lines = body.splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if line.startswith(("-A", "COMMIT")))
    places = [at for at, line in enumerate(lines) if line.startswith(f"-A {chain} ")]
    # Before one of its rows or behind the last.
    at = random.choice([*places, places[-1] + 1]) if places else len(lines) - 1
    head, rest = lines[:first], lines[first:]
    at -= first
    mine = [f"{row}\n" for row in rows]
    return "".join([*head, declared, *rest[:at], mine[0], *rest[at:-1], *mine[1:], rest[-1]])


def split(text: str, random: Random) -> tuple[str, str]:
    """Return the tables of a dump of iptables in two files, that of nat in the first."""
    tables = dict(_tables(text))
    away = [name for name in tables if name != "nat"]
    moved = set(random.sample(away, random.randint(1, len(away)))) if away else set()
    first = "".join(body for name, body in tables.items() if name not in moved)
    return first, "".join(tables[name] for name in moved)
