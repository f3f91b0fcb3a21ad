"""All rules of one node together, from the dumps of every program that has some."""

from __future__ import annotations

from analyzer.inputs.dumps import goes_with, has_services
from analyzer.inputs.reading import read_all
from analyzer.inputs.recognised import Input, input_of
from analyzer.kubeproxy.rows.endpoints import EndpointRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace

    from analyzer.inputs.api_objects import ApiObjects
    from analyzer.semantics.base_chains import Rules


def read_whole(options: SimpleNamespace, objects: ApiObjects) -> Input:
    """Return the rules of all the dumps that the options name, as every verb reads them.

    Raises:
        AnalyzerError: they are none, or do not fit together.
        OSError: a file cannot be read.
    """
    dumps, others = read_all(options, None, EndpointRows.skim)
    main: list[Rules] = []
    for each in dumps:
        # Flows still hit rules of kube-proxy in a second backend.
        clashes = has_services(each) and any(
            has_services(other) and goes_with(each, other) for other in main
        )
        (others if clashes else main).append(each)
    return input_of(options, main, others, objects, None)


def rules_of(given: Input) -> int:
    """Return how many rules the dumps have."""
    return sum(each.rules for each in given.every_ruleset)
