"""The plainest shapes of kube-proxy's rows, each a regular expression for whole rows.

Every character counts: a row that matches a shape is taken to mean what kube-proxy means by it.
Negated character classes are fastest in `re`, so the shapes say where a word ends and not what it
consists of; the words are then checked against their format, each different word once
(`are_hosts`, `is_port`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from ipaddress import IPv4Address, IPv6Address

from analyzer.kubeproxy import names
from analyzer.model.addresses import (
    Address,
    address_from_text,
    are_ipv4,
    ipv4_number,
    network_from_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_HIGHEST_PORT: Final = 0xFFFF
_LONGEST_PORT: Final = 5
_OF_IPV6: Final = frozenset("0123456789abcdef.:")


class Shapes:
    """The shapes, for rows with or without counters before them, of one IP version.

    Literal text first, wherever possible: the engine then skips to it. A shape that is searched for
    begins with the newline before its row and leaves the one after it. With `escapes` a comment may
    contain quotes; without, it ends at the next quote, and may extend over rows if there is none in
    its own: callers must count the rows of a shape of several rows.
    """

    def __init__(self, family: str, *, counted: bool, escapes: bool) -> None:
        row = r"\[\d+:\d+\] -A" if counted else "-A"
        length, to = (32, r"\2") if family == "ip" else (128, r"\[\2\]")
        says = r'[^"\\\n]*+' if escapes else '[^"]*+'
        # An empty alternative is faster than a question mark.
        comment = rf'(?:-m comment --comment (?:"{says}"|[\w-]++) |)'
        host = rf"([^/ ]++)/{length}"
        #: A KUBE-SEP chain: hairpin flows are marked, then all flows are sent on.
        self.endpoint = re.compile(
            rf"\n{row} (KUBE-SEP-[^ ]++) -s {host} {comment}-j KUBE-MARK-MASQ\n"
            rf"{row} \1 -p ([^ ]++) {comment}-m \3 -j DNAT --to-destination ({to}:(\d++))(?=\n)"
        )
        #: The rows of a KUBE-SVC or KUBE-SVL chain: flows from outside are marked; an endpoint is
        #: drawn, or in the last row, without a probability, takes the remaining flows.
        self.mark_outside = re.compile(
            rf"\n{row} [^ ]++ (?:! -s ([^ ]++) )?-d {host} -p ([^ ]++) {comment}-m \3 "
            r"--dport ([^ ]++) -j KUBE-MARK-MASQ(?=\n)"
        )
        self.draw = re.compile(
            rf"\n{row} [^ ]++ {comment}(?:-m statistic --mode random --probability ([^ ]++) |)"
            r"-j (KUBE-SEP-[^\n]++)"
        )
        #: A row of KUBE-SERVICES for one address and port; for one address.
        self.entry = re.compile(
            rf"{row} KUBE-SERVICES (?:! -s ([^ ]++) )?-d {host} -p ([^ ]++) "
            rf'-m comment --comment "({says})" -m \3 '
            r"--dport ([^ ]++) -j (KUBE-[^ ]++)"
        )
        self.other_host = rf"{row} KUBE-SERVICES (?:! -s [^ ]++ )?-d {host} "  # seldom used


def are_hosts(texts: Iterable[str], family: str) -> bool:
    """Return whether each of `texts` is an address as iptables-save prints it."""
    texts = tuple(texts)
    if not texts:
        return True
    if family != "ip":
        return all(
            ":" in text and _OF_IPV6.issuperset(text) and address_from_text(text) is not None
            for text in texts
        )
    return are_ipv4(texts)


def host(text: str) -> Address:
    """Return the address of a text that `are_hosts` accepts; one of IPv6 may have brackets."""
    if ":" in text:
        return IPv6Address(text.strip("[]"))
    return IPv4Address(ipv4_number(text))  # a third of the time of parsing the text again


def number(text: str) -> int:
    """Return the number of an address that `host` returns."""
    return int(host(text)) if ":" in text else ipv4_number(text)


@cache
def is_port(text: str) -> bool:
    """Return whether `text` is a port as iptables-save prints it."""
    return (
        len(text) <= _LONGEST_PORT
        and text.isdecimal()
        and text == str(int(text))
        and 0 < int(text) <= _HIGHEST_PORT
    )


@cache
def is_network(text: str | None) -> bool:
    """Return whether `text` is a network, or there is none."""
    return text is None or network_from_text(text) is not None


def uncommented(rows: str) -> list[str]:
    """Return rows without their counters and comments; rows with an escape do not change."""
    return [_uncommented(row) for row in rows.split("\n")[:-1]]


def _uncommented(row: str) -> str:
    bare = row[row.index("-A") :] if row.startswith("[") else row
    before, comment, behind = bare.partition('-m comment --comment "')
    says, end, rest = behind.partition('" ')
    is_read = comment and end and '"' not in says and "\\" not in bare
    return before + rest if is_read else bare


#: KUBE-SERVICES' last row, which sends flows to the node's own addresses to the NodePorts.
_TO_NODE_PORTS: Final = "-m addrtype --dst-type LOCAL -j KUBE-NODEPORTS"
NODE_PORTS: Final = frozenset(
    f"-A {names.SERVICES} {but}{_TO_NODE_PORTS}" for but in ("", "! -d ::1/128 ")
)


def mark_of(rows: list[str]) -> str | None:
    """Return the mark that KUBE-MARK-MASQ sets; None if its `rows` do anything else."""
    before, _, mark = "".join(rows).partition("-j MARK --set-xmark ")
    value, _, mask = mark.partition("/")
    whole = len(rows) == 1 and before == f"-A {names.MARK_MASQUERADE} "
    return value if whole and value == mask and _is_hexadecimal(value) else None


def _is_hexadecimal(text: str) -> bool:
    digits = text.removeprefix("0x")
    return text.startswith("0x") and bool(digits) and not digits.strip("0123456789abcdef")


def masquerades(rows: list[str], mark: str) -> bool:
    """Return whether KUBE-POSTROUTING masquerades flows with `mark`, and nothing else.

    As written up to 1.16, and from 1.17 on; without and with ``--random-fully``.
    """
    here = "-A KUBE-POSTROUTING"
    *first, last = rows or [""]
    last = last.removesuffix(" --random-fully")
    if not first:
        return last == f"{here} -m mark --mark {mark}/{mark} -j MASQUERADE"
    return last == f"{here} -j MASQUERADE" and first == [
        f"{here} -m mark ! --mark {mark}/{mark} -j RETURN",
        f"{here} -j MARK --set-xmark {mark}/0x0",
    ]
