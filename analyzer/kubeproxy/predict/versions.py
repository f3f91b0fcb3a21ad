"""Versions of kube-proxy, and whose captured rules stand for theirs."""

from __future__ import annotations

from analyzer.kubeproxy.generate.config import Layout
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: The first minor version that each layout stands for, up to the next.
#: 1.22 and 1.23 look at internalTrafficPolicy and still have chains XLB: no capture has that.
_LAYOUTS: Final = {
    19: Layout.V1_20,
    22: None,
    24: Layout.V1_25,
    26: Layout.V1_30,
    31: Layout.V1_36,
}
_NEWEST: Final = 36
#: nftables mode is there since 1.29 (KEP-3866), hints for nodes count since 1.34 (KEP-3015).
_NFTABLES: Final = 29
_NODE_HINTS: Final = 34
_PARTS: Final = 2
_DIGITS: Final = 3


@value(kw_only=True)
class Version:
    """A version of kube-proxy.

    Attributes:
        minor: 36 of 1.36.
        layout: of the captures whose rules stand for its own.
    """

    minor: int
    layout: Layout

    @property
    def text(self) -> str:
        """As it is written: 1.36."""
        return f"1.{self.minor}"

    @property
    def has_nftables(self) -> bool:
        """Whether it knows nftables mode."""
        return self.minor >= _NFTABLES

    @property
    def has_node_hints(self) -> bool:
        """Whether it looks at topology hints for nodes."""
        return self.minor >= _NODE_HINTS

    @property
    def is_known(self) -> bool:
        """Whether it is none that came after the newest capture."""
        return self.minor <= _NEWEST


def version_from_text(text: str) -> Version:
    """Return the version that ``1.30``, ``v1.30.3`` or ``v1.30.3+k3s1`` spells.

    Raises:
        ValueError: it spells none, or one whose rules are not known; the message says which.
    """
    parts = text.strip().removeprefix("v").split(".")
    minor = parts[1] if len(parts) >= _PARTS else ""
    if parts[0] != "1" or not (minor.isascii() and minor.isdecimal() and len(minor) < _DIGITS):
        raise ValueError(f"{text!r} is no version of kube-proxy (for example 1.30)")
    number = int(minor)
    layout = None
    for first, each in _LAYOUTS.items():
        layout = each if number >= first else layout
    if layout is None:
        raise ValueError(
            f"rules of kube-proxy 1.{number} are not predicted; known are 1.19 to 1.21 and 1.24 on"
        )
    return Version(minor=number, layout=layout)


NEWEST: Final = Version(minor=_NEWEST, layout=Layout.V1_36)
