"""A coverage-guided fuzzing of everything that reads a dump; ``make soak ONLY=fuzzer``.

Whatever the bytes, reading them, understanding each rule and recognising Services raises nothing
but our own errors, and what was understood is printed and read again to the same rules. libFuzzer
reports an input that takes unreasonably long as a fault too.
"""

from __future__ import annotations

import contextlib
import sys

import atheris

with atheris.instrument_imports(include=["analyzer"]):
    # Loaded later than here, they would be watched no more.
    import analyzer.kubeproxy.dispatch.entries
    import analyzer.kubeproxy.fastpath.quiet
    import analyzer.kubeproxy.routes.walks
    import analyzer.parsers.careful
    import analyzer.parsers.compression
    import analyzer.parsers.xt.rule  # noqa: F401  # loaded under atheris
    from analyzer.errors import AnalyzerError
    from analyzer.kubeproxy.iptables import Recogniser
    from analyzer.model.cluster import Cluster
    from analyzer.parsers.iptables_save import parse, render
    from analyzer.reports.answers import ServicesAnswer
    from analyzer.reports.renderers import RENDERERS, renderer
    from tests.support.parsed_objects import parse_objects
    from tests.support.reading import read_ruleset


def one_input(data: bytes) -> None:
    """Read `data` in every way there is."""
    with contextlib.suppress(AnalyzerError):
        parse_objects([("objects.json", data)])
    try:
        ruleset = read_ruleset(data, "dump")
        for table in ruleset.tables.values():
            for chain in table.chains.values():
                tuple(chain.rules)
        view = Recogniser(ruleset, Cluster()).view()
    except AnalyzerError:
        return
    answer = ServicesAnswer(
        ruleset=ruleset,
        cluster=Cluster(),
        view=view,
        services=view.services,
        diagnostics=view.diagnostics,
    )
    for format_name in RENDERERS["services"]:
        renderer("services", format_name)(answer)
    if all(table.complete for table in ruleset.tables.values()):
        text = render(ruleset)
        assert render(parse(text, "again")) == text


def main() -> None:
    """Hand the inputs over to libFuzzer; its options are those of the command line."""
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
