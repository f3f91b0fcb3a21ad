"""``diff``: what changes between two dumps."""

from __future__ import annotations

from types import SimpleNamespace

from analyzer.inputs.recognised import read_two
from analyzer.kubeproxy.assumed import rests_on
from analyzer.kubeproxy.diff.difference import Conclusion, difference
from analyzer.kubeproxy.diff.dumps import Dump, versions_of_both
from analyzer.kubeproxy.select import names_in
from analyzer.output import finish
from analyzer.reports.diff_answer import DiffAnswer


def diff(options: SimpleNamespace) -> int:
    """Print how two dumps differ; the status says whether they do."""
    given = read_two(options)
    a, b = (Dump(each.ruleset.file, each.view, each.versions) for each in given)
    versions = versions_of_both(a, b)
    named = names_in((a.view, b.view), options.service, options.namespace)
    sides = {version: (given[0].side(version), given[1].side(version)) for version in versions}
    found = difference(sides, named)
    assumed = [
        each
        for number, dump in enumerate((a, b))
        for both in sides.values()
        for each in rests_on(both[number].used, given[number].assumed, dump.file)
    ]
    answer = DiffAnswer(
        rulesets=(given[0].ruleset, given[1].ruleset),
        a=a,
        b=b,
        versions=versions,
        cluster=given[0].cluster,
        difference=found,
        diagnostics=tuple(dict.fromkeys((*a.view.diagnostics, *b.view.diagnostics, *assumed))),
        every=options.all,
    )
    fine = {Conclusion.SAME} if options.count_intended else {Conclusion.SAME, Conclusion.INTENDED}
    no = answer.difference.verdict not in fine
    return finish(options, options.verb, answer, answer.diagnostics, no=no)
