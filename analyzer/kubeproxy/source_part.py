"""Sources of one kind that no rule distinguishes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from analyzer.model.addresses import Address, Network
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@value
class SourcePart:
    """Sources of one kind that no rule distinguishes.

    Attributes:
        network: those in it and in no narrower network of another part; None: all others.
        also: other networks for which the same holds.
        address: one of them; None: not known where they are.
        key: equal for parts with the same result.
        around: the key of the part that contains them; None: there is none.
    """

    network: Network | None
    also: tuple[Network, ...]
    address: Address | None
    key: Hashable
    around: Hashable | None


#: All sources of a kind, none of which represents the others.
ALL_SOURCES: Final = SourcePart(None, (), None, None, None)


def as_one(parts: Iterable[SourcePart]) -> Sequence[SourcePart]:
    """Return parts of which those with the same result are one, whatever is around them."""
    found: dict[Hashable, SourcePart] = {}
    for part in parts:
        known = found.get(part.key)
        if known is None or part.network is None:  # of which there is one only
            found[part.key] = part
        else:
            also = (*known.also, part.network, *part.also)
            found[part.key] = replace(known, also=also)
    return tuple(found.values())
