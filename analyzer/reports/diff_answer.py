"""The answer of ``diff``, with everything its reports need."""

from __future__ import annotations

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.kubeproxy.diff.difference import Difference
    from analyzer.kubeproxy.diff.dumps import Dump
    from analyzer.model.cluster import Cluster
    from analyzer.model.diagnostics import Diagnostic
    from analyzer.semantics.base_chains import Rules


@value(kw_only=True)
class DiffAnswer:
    """The answer of ``diff``: what differs between two dumps.

    Attributes:
        versions: the IP versions that both have, which were compared.
        every: whether a person wants to see each of many changes.
    """

    a: Dump
    b: Dump
    rulesets: tuple[Rules, Rules]
    versions: tuple[int, ...]
    cluster: Cluster
    difference: Difference
    diagnostics: tuple[Diagnostic, ...]
    every: bool = False
