"""The answer of ``advise``, with everything its reports need."""

from __future__ import annotations

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.advice.advise import Advice, Failures
    from analyzer.kubeproxy.predict.cluster import Prediction
    from analyzer.model.diagnostics import Diagnostic


@value(kw_only=True)
class AdviseAnswer:
    """The answer of ``advise``: what measures buy Services, the one with the greatest loss first.

    Attributes:
        not_judged: names without an answer: malformed, not among the objects, or with endpoints on
            unknown nodes.
        without: Services without endpoints.
        more: number of Services that lose flows for which no measure was judged.
        checked: number of predictions of changed objects that were compared with walks of their
            rules.
        every: whether to show measures, too, that are no better than none, or refused.
    """

    advice: tuple[Advice, ...]
    failures: Failures
    prediction: Prediction
    not_judged: tuple[str, ...]
    without: tuple[str, ...]
    more: int
    diagnostics: tuple[Diagnostic, ...]
    checked: int = 0
    every: bool = False
