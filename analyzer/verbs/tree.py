"""``tree``: the tree of each route of some ServicePorts."""

from __future__ import annotations

from types import SimpleNamespace

from analyzer.inputs.recognised import read_input
from analyzer.kubeproxy.assumed import ASSUMED
from analyzer.kubeproxy.select import narrow
from analyzer.kubeproxy.view import Source
from analyzer.output import finish
from analyzer.questions.evaluating import dead_of
from analyzer.questions.whose_dump import of_another_node
from analyzer.reports.answers import TreeAnswer


def tree(options: SimpleNamespace) -> int:
    """Print the trees of the ServicePorts that are selected."""
    given = read_input(options)
    died = dead_of(options, given)
    trees = tuple(
        (service, route, given.recogniser.tree(service, route))
        for service in narrow(given.view, options.service, options.namespace)
        for route in service.every_route(Source(options.source))
    )
    answer = TreeAnswer(
        cluster=given.cluster,
        view=given.view,
        dead=died,
        trees=trees,
        # Trees go through other rules than the shares of all Services do.
        diagnostics=(
            *[each for each in given.view.diagnostics if each.code != ASSUMED],
            *given.recogniser.assumed(),
            *of_another_node(given),
        ),
        every=options.all,
    )
    return finish(options, options.verb, answer, answer.diagnostics, no=False)
