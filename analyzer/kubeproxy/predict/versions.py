"""Versions of kube-proxy, and the captured version that represents each."""

from __future__ import annotations

from analyzer.kubeproxy.generate.config import RulesLayout
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: The first minor version that each layout is used for, up to the next.
_LAYOUTS: Final = {
    14: RulesLayout.V1_14,
    15: RulesLayout.V1_16,
    17: RulesLayout.V1_17,
    18: RulesLayout.V1_18,
    19: RulesLayout.V1_20,
    21: RulesLayout.V1_21,
    22: RulesLayout.V1_23,
    24: RulesLayout.V1_24,
    25: RulesLayout.V1_25,
    26: RulesLayout.V1_26,
    27: RulesLayout.V1_27,
    28: RulesLayout.V1_28,
    29: RulesLayout.V1_30,
    31: RulesLayout.V1_36,
}
#: 1.22.4 fixed what 1.22.0 to 1.22.3 do with endpoints that are not ready (#106030): since then it
#: sends flows as 1.23 does.
_MENDED: Final = 22
_MENDED_IN: Final = 4
_NEWEST: Final = 36
#: nftables mode exists since 1.29 (KEP-3866), hints for nodes count since 1.34 (KEP-3015).
_NFTABLES: Final = 29
_NODE_HINTS: Final = 34
_PARTS: Final = 2
_DIGITS: Final = 3


@value(kw_only=True)
class Version:
    """A version of kube-proxy.

    Attributes:
        minor: 36 for 1.36.
        patch: if it decides the layout, the first of those with the same layout; otherwise None.
        layout: of the captures whose rules represent its own.
    """

    minor: int
    patch: int | None = None
    layout: RulesLayout

    @property
    def text(self) -> str:
        """As it is written: 1.36."""
        return f"1.{self.minor}" if self.patch is None else f"1.{self.minor}.{self.patch}"

    @property
    def is_mended(self) -> bool:
        """Whether it is one of a minor version whose first patch releases have other rules."""
        return self.minor == _MENDED and self.patch is None

    @property
    def has_nftables(self) -> bool:
        """Whether it has nftables mode."""
        return self.minor >= _NFTABLES

    @property
    def has_node_hints(self) -> bool:
        """Whether it uses topology hints for nodes."""
        return self.minor >= _NODE_HINTS

    @property
    def is_known(self) -> bool:
        """Whether it is not newer than the newest capture."""
        return self.minor <= _NEWEST


def counted_as(text: str) -> str:
    """Return the key by which nodes' versions are counted: usually the minor version."""
    minor = ".".join(text.removeprefix("v").split(".")[:_PARTS])
    return version_from_text(text).text if minor == f"1.{_MENDED}" else minor


def version_from_text(text: str) -> Version:
    """Return the version that ``1.30``, ``v1.30.3`` or ``v1.30.3+k3s1`` spells.

    Raises:
        ValueError: it is not a version, or its rules are not known; the message says which.
    """
    parts = text.strip().removeprefix("v").split(".")
    minor = parts[1] if len(parts) >= _PARTS else ""
    if parts[0] != "1" or not (minor.isascii() and minor.isdecimal() and len(minor) < _DIGITS):
        raise ValueError(f"{text!r} is not a version of kube-proxy (for example 1.30)")
    number = int(minor)
    layout = None
    for first, each in _LAYOUTS.items():
        layout = each if number >= first else layout
    if layout is None:
        raise ValueError(
            f"rules of kube-proxy 1.{number} are not predicted; 1.14 is the oldest known"
        )
    if number != _MENDED:
        return Version(minor=number, layout=layout)
    patch = parts[_PARTS].partition("-")[0].partition("+")[0] if len(parts) > _PARTS else ""
    if patch in {str(each) for each in range(_MENDED_IN)}:
        return Version(minor=number, patch=0, layout=RulesLayout.V1_22)
    return Version(minor=number, layout=layout)


#: The first patch release of a version that `is_mended`.
MENDED_IN: Final = f"1.{_MENDED}.{_MENDED_IN}"
NEWEST: Final = Version(minor=_NEWEST, layout=RulesLayout.V1_36)
