"""The possible devices of a flow, if the exact one is not known."""

from __future__ import annotations

from enum import Enum

from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value


class Side(Enum):
    """Where a flow comes from or goes to, from the perspective of the node that it passes.

    `POD` is a pod of this node, `ELSEWHERE` one of another node, `OUTSIDE` everything else.
    """

    POD = "pod"
    ELSEWHERE = "pod-elsewhere"
    OUTSIDE = "outside"


@value
class Devices:
    """One device of several; which one is not known.

    Attributes:
        patterns: names as iptables prints them: a final ``+`` represents any continuation.
        inside: whether the device matches one of the patterns, or none of them.
        open: patterns of names about which nothing can be said.
        names: all possible names except those of `open`, if they are known one by one; then
            `inside` is true.
        beside: patterns of names that it does not have either, by an assumption of their own;
            only if `inside` is false.
    """

    patterns: tuple[str, ...]
    inside: bool
    open: tuple[str, ...] = ()
    names: frozenset[str] | None = None
    beside: tuple[str, ...] = ()

    def is_named(self, name: str) -> Ternary:
        """Return whether `name`, which may be a pattern, matches the device."""
        if name == "+":
            return Ternary.TRUE
        if not self.inside and any(covers(e, name) for e in (*self.patterns, *self.beside)):
            return Ternary.FALSE
        if any(meets(name, each) for each in self.open):
            return Ternary.UNKNOWN
        if self.names is not None:
            held = len(self._held(name))
            if held == len(self.names):
                return Ternary.TRUE
            return Ternary.UNKNOWN if held else Ternary.FALSE
        if not self.inside:
            return Ternary.UNKNOWN
        if all(covers(name, each) for each in self.patterns):
            return Ternary.TRUE
        none = not any(meets(name, each) for each in self.patterns)
        return Ternary.FALSE if none else Ternary.UNKNOWN

    def parted(self, name: str) -> tuple[Devices, Devices]:
        """Return the devices that `name` matches, and the others; names must be known one by one.

        Both parts are everything if `name` may match a name that is `open`.
        """
        assert self.names is not None
        inside = self._held(name)
        if any(meets(name, each) for each in self.open):
            return self, self
        parts = (inside, self.names - inside)
        return replace(self, names=parts[0]), replace(self, names=parts[1])

    def _held(self, name: str) -> frozenset[str]:
        assert self.names is not None
        if name.endswith("+"):
            return frozenset([each for each in self.names if each.startswith(name[:-1])])
        return frozenset((name,)) & self.names


def covers(pattern: str, other: str) -> bool:
    """Return whether `pattern` matches every device that `other` matches."""
    if not pattern.endswith("+"):
        return pattern == other
    return other.removesuffix("+").startswith(pattern[:-1])


def meets(one: str, other: str) -> bool:
    """Return whether both patterns can match the same device."""
    return covers(one, other) or covers(other, one)


def as_pattern(name: str) -> str:
    """Return a name of nft, or a prefix of names that ends in ``*``, as iptables prints it."""
    if name.endswith("*") and not name.endswith("\\*"):
        return f"{name[:-1]}+"
    return name.replace("\\*", "*")
