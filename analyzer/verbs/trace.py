"""``trace``: how one packet ends, and the rules on its way."""

from __future__ import annotations

from types import SimpleNamespace

from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.dumps import of_version
from analyzer.inputs.node_files import node_addresses, routes_of, told_by_routes
from analyzer.inputs.recognised import read_dumps, read_input, told_by_services
from analyzer.kubeproxy.matched.sets import not_told
from analyzer.kubeproxy.names import NEVER_EMPTY
from analyzer.kubeproxy.routes.trace import trace as traced
from analyzer.model.diagnostics import bounded_work
from analyzer.output import finish
from analyzer.parsers.survey import survey_any
from analyzer.questions.evaluating import dead_of
from analyzer.questions.packet import family_of, is_named, odd_source, question, resolved
from analyzer.questions.whose_dump import of_another_node
from analyzer.reports.answers import TraceAnswer
from analyzer.reports.progress import progress


def trace(options: SimpleNamespace) -> int:
    """Print how the packet of the options may end."""
    died, told = None, []
    if is_named(options) or options.dead or options.dead_node or options.dead_zone:
        objects = ApiObjects(options)
        given = read_input(options, objects)
        dumps = given.every_ruleset
        options = resolved(options, given.view)
        died = dead_of(options, given)
        told = [*of_another_node(given)]
    else:
        with progress("rules") as advance:
            dumps, objects = read_dumps(options, advance)
    cluster = objects.cluster
    own = node_addresses(options, cluster)
    options = told_by_routes(options, cluster, own)
    family = family_of(options, dumps)
    rulesets = of_version(dumps, family)
    asked = question(options, own, routes_of(options), family)
    known = told_by_services(options, rulesets, objects, asked.addresses or ())
    found = traced(rulesets, asked, family, known)
    told += odd_source(asked, known, rulesets[0].file)
    diagnostics = told + [
        each
        for ruleset, visited in zip(rulesets, found.visited, strict=True)
        for each in (*ruleset.diagnostics, *survey_any(ruleset, visited, NEVER_EMPTY))
    ]
    diagnostics += bounded_work(found.exceeded, rulesets[0].file)
    diagnostics += not_told(found.missed_sets, rulesets[0].file)
    answer = TraceAnswer(
        cluster=cluster,
        node=options.node,
        packet=asked.packet,
        state=asked.state,
        tree=found.tree,
        ends=found.ends,
        assumptions=found.assumptions,
        # Only for chains that the packet reaches.
        diagnostics=tuple(diagnostics),
        every=options.verbose,
        dead=died if died is not None and died.is_anything else None,
    )
    return finish(options, options.verb, answer, answer.diagnostics, no=False)
