"""The complete difference between two dumps, and the verdict."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping

from analyzer.kubeproxy.diff.beside import NonServiceFlows, beside
from analyzer.kubeproxy.diff.changes import ServiceChange
from analyzer.kubeproxy.diff.compare import compare
from analyzer.kubeproxy.diff.side import DumpSide
from analyzer.model.value import value


@enum.unique
class Conclusion(enum.Enum):
    """The overall result of a comparison.

    For clients of ServicePorts nothing changes with SAME and INTENDED; with UNKNOWN that is not
    known.
    """

    SAME = "same"
    INTENDED = "intended"
    UNKNOWN = "unknown"
    DIFFERENT = "different"


@value(kw_only=True)
class Difference:
    """The difference between two dumps.

    Attributes:
        changes: the ServicePorts that are not the same, in the order of their names.
        both: how many ServicePorts both dumps have.
        alike: of these, how many are the same as far as known but not fully known.
        is_open: whether these may differ, since rules of other programs do.
        cut: whether one of the dumps lacks rules: ServicePorts, or what ends their flows.
        beside: what happens to flows to no Service, and differences of nftables mode by design.
    """

    changes: tuple[ServiceChange, ...]
    both: int
    alike: int
    cut: bool
    is_open: bool = False
    beside: tuple[NonServiceFlows, ...]

    @property
    def verdict(self) -> Conclusion:
        """The overall result: the worst of all parts."""
        certain = any(each.is_certain for each in self.changes)
        if certain or any(each.is_certain and not each.is_intended for each in self.beside):
            return Conclusion.DIFFERENT
        if (
            self.is_open
            or self.cut
            or self.changes
            or any(not each.is_certain for each in self.beside)
        ):
            return Conclusion.UNKNOWN
        return Conclusion.INTENDED if self.beside else Conclusion.SAME


def difference(
    sides: Mapping[int, tuple[DumpSide, DumpSide]], named: Collection[str] | None = None
) -> Difference:
    """Return what differs between two dumps, given as two sides for each IP version of both.

    With `named`, only ServicePorts with these names are compared, and no flows to none.
    """
    found = [compare(a, b, version, named) for version, (a, b) in sides.items()]
    asked = sides.items() if named is None else ()
    return Difference(
        changes=tuple([change for each in found for change in each.changes]),
        both=sum(each.both for each in found),
        alike=sum(each.alike for each in found),
        cut=any(each.cut for each in found),
        is_open=any(each.is_open for each in found),
        beside=(
            *[one for version, (a, b) in asked for one in beside(a, b, version)],
            *[one for each in found for one in each.expected],
        ),
    )
