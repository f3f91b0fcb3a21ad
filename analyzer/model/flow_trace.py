"""One flow's path through a node's rules, as reported by the kernel."""

from __future__ import annotations

from analyzer.model.value import value


@value(kw_only=True)
class FlowTrace:
    """The rules that a flow matched, compared with the predicted paths.

    Attributes:
        flow: its source and destination.
        matched: the rules of the dump that the kernel matched, in order, as text.
        differs: the first rule that is on none of the paths; None if the kernel took one of them.
    """

    service: str
    source: str
    flow: str
    matched: tuple[str, ...]
    differs: str | None
