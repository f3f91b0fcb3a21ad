"""What broken dumps are made of: clean ones, and edits of their text that must fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.captures import FIXTURES, ROOT

Edit = Callable[[str], str]

CHECK = ROOT / "fixtures" / "check"
#: Frontends of all kinds, policies and affinity: by EXT, SVL and FW; by XLB, FW and KUBE-MARK-DROP.
DUAL = CHECK / "1.36.2-iptables-legacy" / "dual-stack" / "iptables-legacy-save.txt"
DUAL_6 = DUAL.with_name("ip6tables-legacy-save.txt")
OLD_DUAL = CHECK / "1.20.2-iptables-legacy" / "dual-stack" / "iptables-legacy-save.txt"
TWO_NODE = FIXTURES / "1.36.2-iptables-legacy" / "two-node" / "iptables-legacy-save.txt"
OLD = FIXTURES / "1.14.0-iptables-legacy" / "two-node" / "iptables-legacy-save.txt"


@dataclass(frozen=True)
class Kind:
    """One kind of broken dump.

    `found` are the codes, each with what stands in the line that it points at (None: in none).
    `names` are words for the traffic, which the messages together hold. `objects` changes the
    capture's objects, which are given only then.
    """

    name: str
    report: str
    base: Path
    edit: Edit
    found: tuple[tuple[str, str | None], ...]
    names: tuple[str, ...]
    objects: Callable[[Any], None] | None = None

    def __str__(self) -> str:
        return self.name


@dataclass
class Kinds:
    """All kinds of broken dumps, gathered by the decorator `kind`."""

    all: list[Kind] = field(default_factory=list)

    def kind(
        self,
        report: str,
        base: Path,
        *found: tuple[str, str | None],
        names: tuple[str, ...],
        objects: Callable[[Any], None] | None = None,
    ) -> Callable[[Edit], Edit]:
        def add(edit: Edit) -> Edit:
            name = edit.__name__
            self.all.append(Kind(name, report, base, edit, found, names, objects))
            return edit

        return add


def unchanged(_: Any) -> None:
    """Leave the objects as they were captured."""


def lines_with(text: str, *parts: str) -> list[str]:
    """Return the rules that hold all of `parts`."""
    return [
        line
        for line in text.split("\n")
        if line.startswith("-A") and all(part in line for part in parts)
    ]


def only(text: str, *parts: str) -> str:
    """Return the one rule that holds all of `parts`."""
    (found,) = lines_with(text, *parts)
    return found


def without(text: str, *parts: str) -> str:
    """Take one rule out."""
    return text.replace(only(text, *parts) + "\n", "", 1)


def changed(text: str, parts: tuple[str, ...], old: str, new: str) -> str:
    """Change the one rule that holds all of `parts`."""
    line = only(text, *parts)
    assert old in line
    return text.replace(line, line.replace(old, new), 1)


def without_chain(text: str, chain: str) -> str:
    """Take out a chain's declaration and its rules."""
    kept = [
        line for line in text.split("\n") if not line.startswith((f":{chain} ", f"-A {chain} "))
    ]
    assert len(kept) < text.count("\n") + 1
    return "\n".join(kept)


def emptied(text: str, chain: str) -> str:
    """Take out a chain's rules."""
    rules = lines_with(text, f"-A {chain} ")
    assert rules
    for rule in rules:
        text = text.replace(f"{rule}\n", "", 1)
    return text


def before(text: str, parts: tuple[str, ...], *new: str) -> str:
    """Put rules before the one that holds all of `parts`."""
    line = only(text, *parts)
    return text.replace(line, "\n".join([*new, line]), 1)


def behind(text: str, parts: tuple[str, ...], *new: str) -> str:
    """Put rules behind the one that holds all of `parts`."""
    line = only(text, *parts)
    return text.replace(line, "\n".join([line, *new]), 1)


def with_kubelet(text: str) -> str:
    """Add the rules that the kubelet of 1.20 keeps: what is marked for it is dropped."""
    text = before(
        text, ("-A KUBE-MARK-MASQ",), "-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000"
    )
    return before(
        text,
        ("-A KUBE-FORWARD", "--ctstate INVALID"),
        "-A INPUT -j KUBE-FIREWALL",
        "-A OUTPUT -j KUBE-FIREWALL",
        "-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP",
    ).replace(":KUBE-FORWARD ", ":KUBE-FIREWALL - [0:0]\n:KUBE-FORWARD ", 1)
