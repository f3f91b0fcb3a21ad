"""Load random rulesets into a namespace, and read back what nft prints of them in both forms.

The kernel and nft judge what is a rule: a rule that they refuse is left out. Run as a program,
which leaves the host's network namespace for good before it does anything else.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from typing import Any

from analyzer.model.value import replace
from analyzer.parsers import nft_json, nft_text
from analyzer.parsers.nft.rendering import render
from netns_lab.namespace import Namespace, leave_host
from tests.support.nft.comparing import plain, what_json_tells

_FRAME = """
table ip t {
 map m { type ipv4_addr . inet_proto . inet_service : verdict
 }
 map to { type inet_service : ipv4_addr
 }
 set s { type ipv4_addr; flags dynamic,timeout; timeout 3h
 }
 set r { type ipv4_addr . inet_service; flags interval
 }
 chain leaf { comment "a leaf"
 }
 chain pre { type nat hook prerouting priority %d; policy accept;
 }
 chain in { type filter hook input priority %d; policy drop;
 }
}
"""


def address(draw: random.Random) -> str:
    return f"10.{draw.randrange(256)}.{draw.randrange(256)}.{draw.randrange(1, 255)}"


def network(draw: random.Random) -> str:
    return f"10.{draw.randrange(256)}.0.0/{draw.randrange(8, 25)}"


def port(draw: random.Random) -> str:
    low = draw.randrange(1, 60000)
    return draw.choice([str(low), f"{low}-{low + draw.randrange(1, 5000)}"])


def mark(draw: random.Random) -> str:
    return hex(draw.getrandbits(32))


def match(draw: random.Random) -> str:
    sign = draw.choice(["", "!= "])
    return draw.choice(
        [
            f"ip saddr {sign}{network(draw)}",
            f"ip daddr {sign}{address(draw)}",
            f"ip daddr {sign}{{ 11.0.0.1, {network(draw)} }}",
            f"tcp dport {sign}{port(draw)}",
            f"udp sport {sign}{{ {port(draw)}, 53 }}",
            f"ip protocol {sign}{draw.choice(['tcp', 'udp', 'icmp', '99'])}",
            f"meta l4proto {{ tcp, udp }} th dport {port(draw)}",
            f"meta mark & {mark(draw)} {draw.choice(['==', '!='])} {mark(draw)}",
            f"meta mark {draw.choice(['<', '>=', '=='])} {mark(draw)}",
            f"ct state {draw.choice(['new', 'established,related', '{ new, invalid }'])}",
            f"ct state != {draw.choice(['new', 'invalid'])}",
            f"ct status {draw.choice(['dnat', 'snat,dnat'])}",
            f"ct mark & 0xff == {draw.randrange(256)}",
            f"fib {draw.choice(['daddr', 'saddr'])} type {sign}local",
            f'iifname {sign}"{draw.choice(["eth0", "veth*", "lo"])}"',
            f"numgen {draw.choice(['random', 'inc'])} mod 10 < {draw.randrange(1, 10)}",
            f"meta random & 2147483647 < {draw.getrandbits(31)}",
            f"tcp flags {draw.choice(['syn', '& (syn|ack) == syn', '!= syn'])}",
            f"icmp type {draw.choice(['echo-request', '77', '{ echo-reply, redirect }'])}",
            f"ip saddr @s ip saddr . tcp dport {sign}@r",
            f"limit rate {draw.randrange(1, 99)}/{draw.choice(['second', 'hour'])}",
            f"ip dscp {draw.choice(['cs1', 'af11', '5'])} ip ttl {draw.randrange(256)}",
            "counter",
            f"update @s {{ ip saddr timeout {draw.randrange(1, 99999)}s }}",
            f"meta mark set meta mark {draw.choice('|^&')} {mark(draw)}",
            f"ct mark set {mark(draw)}",
            f'log prefix "{draw.choice(["a b", "x{}", "# ;"])}"',
        ]
    )


def target(draw: random.Random) -> str:
    ends = ", ".join(f"{n} : {address(draw)} . {draw.randrange(1, 65536)}" for n in range(3))
    plain_ends = ", ".join(f"{n} : {address(draw)}" for n in range(3))
    return draw.choice(
        [
            *["accept", "drop", "return", "jump leaf", "goto leaf", "continue", ""],
            f"reject with icmp type {draw.choice(['host-unreachable', 'port-unreachable'])}",
            "reject with tcp reset",
            f"dnat to {address(draw)}",
            f"meta l4proto tcp dnat to {address(draw)}:{port(draw)} random,persistent",
            f"meta l4proto tcp dnat ip to numgen random mod 3 map {{ {ends} }}",
            f"dnat to jhash ip saddr mod 3 seed {mark(draw)} map {{ {plain_ends} }}",
            "dnat to tcp dport map @to",
            "meta l4proto udp redirect to :53",
            "ip daddr . meta l4proto . th dport vmap @m",
            f'numgen inc mod 2 vmap {{ 0 : drop, 1 : jump leaf }} comment "{mark(draw)}"',
            f"symhash mod 4 offset {draw.randrange(9)} vmap {{ 5 : accept, * : return }}",
        ]
    )


def nft(*words: str, given: str | None = None) -> str | None:
    done = subprocess.run(["nft", *words], input=given, text=True, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def load(draw: random.Random, wanted: int) -> int:
    """Load a ruleset; return how many rules of it were taken."""
    frame = _FRAME % (draw.randrange(-199, 199), draw.choice([-150, -10, 0, 10, 50]))
    assert nft("-f", "-", given=f"flush ruleset\n{frame}") is not None
    elements = {
        "m": f"{address(draw)} . tcp . {draw.randrange(65536)} : goto leaf",
        "to": f"{draw.randrange(65536)} : {address(draw)}",
        "s": f'{address(draw)} comment "{mark(draw)}", {address(draw)} timeout 1d2h',
        "r": f"{network(draw)} . {port(draw)}, {address(draw)} . 1",
    }
    for name, held in elements.items():
        assert nft(f"add element ip t {name} {{ {held} }}") is not None, held
    taken = 0
    for _ in range(wanted):
        words = [match(draw) for _ in range(draw.randrange(3))] + [target(draw)]
        rule = f"add rule ip t {draw.choice(['pre', 'in', 'leaf'])} {' '.join(words)}"
        taken += nft("-f", "-", given=f"{rule}\n") is not None
    return taken


def check() -> bool:
    """Read both listings of what is loaded, and load and read what we write of it.

    Returns whether nft takes back its own listing; where it does not, it need not take ours.
    """
    text, listed = nft("list", "ruleset"), nft("-a", "list", "ruleset")
    given = nft("-j", "list", "ruleset")
    assert text
    assert listed
    assert given
    ruleset = nft_text.parse(text, "text")
    assert timeless(what_json_tells(nft_json.parse(given, "json"))) == timeless(
        what_json_tells(ruleset)
    )
    assert timeless(plain(nft_text.parse(listed, "handles"))) == timeless(plain(ruleset))
    if nft("-f", "-", given=f"flush ruleset\n{text}") is None:
        return False
    theirs = nft("list", "ruleset")
    written = render(ruleset)
    assert nft("-f", "-", given=f"flush ruleset\n{written}") is not None, written
    again = nft("list", "ruleset")
    assert theirs is not None
    assert again is not None
    # Not as it was listed at first: nft puts what a reset needs in front of other matches.
    assert timeless(plain(nft_text.parse(again, "again"))) == timeless(
        plain(nft_text.parse(theirs, "theirs"))
    )
    return True


def timeless(given: Any) -> Any:
    """Take away what time changes from one listing to the next: when elements expire."""
    for table in given.values():
        table["sets"] = {
            name: replace(
                held, elements=tuple(replace(each, expires=None) for each in held.elements)
            )
            for name, held in table["sets"].items()
        }
    return given


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rulesets", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    leave_host()
    namespace = Namespace("nft")
    taken = rules = again = 0
    with namespace:
        for number in range(options.rulesets):
            draw = random.Random(options.seed + number)  # a repeatable ruleset
            wanted = 25
            taken += load(draw, wanted)
            rules += wanted
            again += check()
    json.dump({"rules": rules, "taken": taken, "again": again}, sys.stdout)


if __name__ == "__main__":
    main()
