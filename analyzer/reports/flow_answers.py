"""The answers of ``suspects`` and ``pinned``, with everything their reports need."""

from __future__ import annotations

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from analyzer.failure.models import Dead
    from analyzer.failure.pinned import Pinned
    from analyzer.failure.suspects import Suspect
    from analyzer.kubeproxy.view import Endpoint, View
    from analyzer.model.cluster import Cluster
    from analyzer.model.diagnostics import Diagnostic


@value(kw_only=True)
class SuspectsAnswer:
    """The answer of ``suspects``: endpoints that look dead in conntrack.

    Attributes:
        flows: how many conntrack has; `owned` of them are to Services.
        rate: how often, at most, any is named that answers like the others.
        proposal: the command that asks what those cost that are named; empty where none is.
        every: whether a person wants those, too, that are not named.
        elsewhere: how many of `owned` are at endpoints that the rules do not show, so that they
            are not tested; and how many of these are unanswered.
    """

    cluster: Cluster
    view: View
    flows: int
    owned: int
    suspects: tuple[Suspect, ...]
    rate: float
    proposal: str
    diagnostics: tuple[Diagnostic, ...]
    every: bool = False
    elsewhere: tuple[int, int] = (0, 0)


@value(kw_only=True)
class PinnedAnswer:
    """The answer of ``pinned``: flows pinned to endpoints that do not answer.

    Fields without a line here are as in `SuspectsAnswer`.

    Attributes:
        foreign: endpoints of the rules whose address the objects give to another pod, and which.
    """

    cluster: Cluster
    view: View
    dead: Dead
    flows: int
    owned: int
    pinned: tuple[Pinned, ...]
    foreign: Mapping[Endpoint, str]
    diagnostics: tuple[Diagnostic, ...]
