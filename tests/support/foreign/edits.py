"""Rules of kube-proxy itself that somebody has edited: rows lost, moved, or with another target."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from random import Random

#: Most edits of one dump.
_MOST = 3
#: How often one of the chains around those of Services is edited.
_FRAME = 0.5
_OF_SERVICE = re.compile(r"KUBE-(SVC|SVL|EXT|XLB|FW|SEP)-|/")
_ROW = re.compile(r"-A \S+ ")
_HEAD = re.compile(r"\s*(type |policy |comment |})")
#: A target with its options.
_IPTABLES_TARGET = re.compile(r"-[jg] \S+( .*)?$")
_TO_ENDPOINTS = re.compile(r"-j (?:DNAT|KUBE-(?!MARK-MASQ|POSTROUTING))")
#: A verdict at the end of a rule of nft.
_NFT_VERDICT = re.compile(r"(?:jump|goto) \S+$|(?:accept|drop|return|reject)$")


def edited(text: str, random: Random, *, nft: bool) -> str:
    """Return a dump of kube-proxy's rules with up to three rows edited."""
    lines = text.splitlines(keepends=True)
    for _ in range(random.randint(1, _MOST)):
        places = [*(_of_nft(lines) if nft else _of_iptables(lines))]
        if not places:
            break
        # The rows that lead to all Services are few, and matter most.
        frame = [at for at in places if not _OF_SERVICE.search(_chain_at(lines, at))]
        at = random.choice(frame if frame and random.random() < _FRAME else places)
        edits = (_without, _twice, _swapped, _turned, _drawn_otherwise, _moved)
        lines = random.choice(edits)(lines, at, places, random)
    return "".join(lines)


def _of_iptables(lines: Sequence[str]) -> list[int]:
    """Return the rows of iptables, but for those that are alone in a Service's chain.

    kube-proxy writes none without rows, and sources that enter such a chain and leave it again are
    not told from those that it refuses.
    """
    rows = [at for at, line in enumerate(lines) if _ROW.match(line)]
    each = Counter(_chain(lines[at]) for at in rows)
    alone = ("KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-XLB-")
    return [
        at for at in rows if each[chain := _chain(lines[at])] > 1 or not chain.startswith(alone)
    ]


def _of_nft(lines: Sequence[str]) -> list[int]:
    found: list[int] = []
    inside = False
    for at, line in enumerate(lines):
        if line.lstrip().startswith("chain "):
            inside = True
        elif line.strip() == "}":
            inside = False
        elif inside and not _HEAD.match(line):
            found.append(at)
    return found


def _without(lines: Sequence[str], at: int, _places: Sequence[int], _random: Random) -> list[str]:
    return [*lines[:at], *lines[at + 1 :]]


def _twice(lines: Sequence[str], at: int, _places: Sequence[int], _random: Random) -> list[str]:
    return [*lines[:at], lines[at], *lines[at:]]


def _swapped(lines: Sequence[str], at: int, places: Sequence[int], _random: Random) -> list[str]:
    """Swap a row with the next one, if that is of the same chain."""
    if at + 1 not in places or _chain(lines[at]) != _chain(lines[at + 1]):
        return [*lines]
    return [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]


def _turned(lines: Sequence[str], at: int, _places: Sequence[int], random: Random) -> list[str]:
    """Give a row the target or verdict of another, or one that ends the traversal."""
    line = lines[at].rstrip("\n")
    table = next((each for each in reversed(lines[:at]) if each.startswith("*")), "")
    if not line.startswith("-A"):
        new = random.choice(("accept", "drop", "return", "reject", "continue"))
        return [*lines[:at], f"{_NFT_VERDICT.sub(new, line)}\n", *lines[at + 1 :]]
    # iptables refuses others in nat.
    ends = ("ACCEPT", "RETURN") if table == "*nat\n" else ("ACCEPT", "RETURN", "DROP", "REJECT")
    new = f"-j {random.choice(ends)}"
    return [*lines[:at], f"{_IPTABLES_TARGET.sub(new, line)}\n", *lines[at + 1 :]]


def _drawn_otherwise(
    lines: Sequence[str], at: int, _places: Sequence[int], random: Random
) -> list[str]:
    """Change how often a row draws, or whose flows it matches."""
    share = f"0.{random.randint(1, 9)}0000000000"
    line = re.sub(r"--probability \S+", f"--probability {share}", lines[at])
    if line == lines[at] and " -s " in line:
        line = (
            line.replace(" ! -s ", " -s ") if " ! -s " in line else line.replace(" -s ", " ! -s ")
        )
    line = re.sub(r"(ip6? saddr) (?!!=)(?=[\d@$])", r"\1 != ", line)
    return [*lines[:at], line, *lines[at + 1 :]]


def _moved(lines: Sequence[str], at: int, places: Sequence[int], random: Random) -> list[str]:
    """Put a row elsewhere: before a row of any chain of its table."""
    bounds = [n for n, line in enumerate(lines) if line.startswith(("*", "table "))]
    first = max((n for n in bounds if n <= at), default=0)
    last = min((n for n in bounds if n > at), default=len(lines))
    to = random.choice([n for n in places if first <= n < last])
    row = lines[at]
    if not _may_move(row, lines[to]):
        return [*lines]
    if row.startswith("-A"):
        row = re.sub(r"^-A \S+", f"-A {_chain(lines[to])}", row)
    rest = [*lines[:to], row, *lines[to:]]
    del rest[at + (to <= at)]
    return rest


def _may_move(row: str, to: str) -> bool:
    """Return whether the kernel may take a row in another chain.

    Also not moved is what rejects flows in kube-proxy's table of nftables mode: if that is all of
    them before nat, it is taken for kube-proxy's answer.
    """
    if row.startswith("-A"):
        # DNAT is for PREROUTING and OUTPUT, and so is what leads there; and no chain loops.
        chain = _chain(to)
        leads = _TO_ENDPOINTS.search(row) is not None and chain != _chain(row)
        barred = "POSTROUTING" in chain or chain.startswith("KUBE-SEP-")
        return not leads or ("-j KUBE-SEP-" in row and not barred)
    return not re.search(r"\b(reject|jump|goto|vmap|dnat|masquerade)\b", row)


def _chain_at(lines: Sequence[str], at: int) -> str:
    if lines[at].startswith("-A "):
        return _chain(lines[at])
    heads = (line for line in reversed(lines[:at]) if line.lstrip().startswith("chain "))
    return next(heads, "")


def _chain(line: str) -> str:
    return line.split(" ")[1] if line.startswith("-A ") else ""
