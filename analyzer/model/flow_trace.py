"""One flow's path through a node's rules, as reported by the kernel."""

from __future__ import annotations

from analyzer.model.value import value


@value(kw_only=True)
class FlowTrace:
    """The rules that a flow matched, beside the ways that were predicted.

    Attributes:
        flow: from where it came, and to where it went.
        matched: the rules of the dump that the kernel matched, in order, as they are written.
        differs: the first rule that is on none of the ways; None: the kernel went one of them.
    """

    service: str
    source: str
    flow: str
    matched: tuple[str, ...]
    differs: str | None
