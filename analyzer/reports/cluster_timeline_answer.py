"""The answer of ``cluster timeline``, with everything its reports need."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from analyzer.cluster.course import Length, Lost, Stood
from analyzer.cluster.drift_kinds import DriftKind
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.value import value


@value(kw_only=True)
class Look:
    """One dump.

    Attributes:
        at: when it was taken, in seconds since 1970.
        clock: what says so: name, bundle, dump or file.
        source: what was read.
        why: it says nothing, and this is why.
    """

    at: Fraction
    clock: str
    source: str
    why: str = ""


@value(kw_only=True)
class ChangedService:
    """A ServicePort that differs from the dump before.

    Attributes:
        whole: added or gone, where all of it is; else empty.
        gone, added: endpoints; moved: how many others have another share.
        frontends_gone, frontends_added: addresses.
        other: what else differs, in words: affinity, masquerade, what happens to other flows.
        is_certain: whether it is known to differ.
        stood: how long the state before had stood.
    """

    node: str
    after: Fraction
    before: Fraction
    service: str
    protocol: str
    version: int | None
    whole: str
    gone: tuple[str, ...]
    added: tuple[str, ...]
    moved: int
    frontends_gone: tuple[str, ...]
    frontends_added: tuple[str, ...]
    other: tuple[str, ...]
    is_certain: bool
    stood: Stood


@value(kw_only=True)
class Wrong:
    """A difference from what kube-proxy would write for the objects, and its duration."""

    node: str
    service: str
    protocol: str
    version: int | None
    drift: DriftKind
    what: str
    lasted: Length


@value(kw_only=True)
class LostAt:
    """What a ServicePort lost over time on a node, by its worst route at each moment.

    Attributes:
        absent: for how long the rules had none for it; what that cost is not counted.
    """

    node: str
    service: str
    protocol: str
    family: str
    lost: Lost
    absent: Length


@value(kw_only=True)
class NodeCourse:
    """One node: its dumps in order of time, including those that could not be read."""

    node: str
    looks: tuple[Look, ...]

    @property
    def good(self) -> tuple[Look, ...]:
        """Those that could be read."""
        return tuple(each for each in self.looks if not each.why)

    @property
    def is_twice_at_once(self) -> bool:
        """Whether two of these have the same time."""
        times = [each.at for each in self.good]
        return len(set(times)) < len(times)


@value(kw_only=True)
class TimelineOfDumpsAnswer:
    """The answer of ``cluster timeline``.

    Attributes:
        objects: when each state of the objects was, with what says so and its file.
        wrong: None: nothing was compared, and `why_not_compared` says why.
        lost: None: nothing was declared dead.
        dead: what was declared dead, in words.
        not_judged: names of ServicePorts that are not judged in full, by node.
        assumed: in words.
        most: seconds of all new flows that a ServicePort may lose; None without such a limit.
    """

    nodes: tuple[NodeCourse, ...]
    objects: tuple[Look, ...]
    changes: tuple[ChangedService, ...]
    wrong: tuple[Wrong, ...] | None
    why_not_compared: str
    lost: tuple[LostAt, ...] | None
    dead: tuple[str, ...]
    not_judged: Mapping[str, tuple[str, ...]]
    assumed: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    most: Fraction | None = None
    every: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all dumps were read in full."""
        failed = any(each.why for node in self.nodes for each in node.looks)
        alone = any(len(node.good) < 2 for node in self.nodes)  # noqa: PLR2004  # a course has two
        together = any(node.is_twice_at_once for node in self.nodes)
        absent = any(each.absent for each in self.lost or ())
        elsewhen = any(each.partial for each in self.diagnostics)
        known = not failed and not alone and not together and not absent and not elsewhen
        return known and not any(self.not_judged.values())

    @property
    def is_broken(self) -> bool:
        """Whether more may be lost than is allowed, or that is not known."""
        if self.most is None:
            return False
        most = self.most
        return not self.is_whole or any(e.lost.total.upper > most for e in self.lost or ())
