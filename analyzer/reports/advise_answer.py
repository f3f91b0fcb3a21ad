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
    """The answer of ``advise``: what measures buy Services, the one that fares worst first.

    Attributes:
        not_judged: names of which nothing is told: malformed, not among the objects, or nothing
            says where endpoints are.
        without: Services without endpoints.
        more: how many Services that lose something no measure was judged for.
        checked: how many predictions of changed objects were held against walks of their rules.
        every: whether a person wants measures, too, that are no better than none, or refused.
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
