"""The files of one node: its rules, and the further files that they need."""

from __future__ import annotations

from analyzer.errors import UsageError
from analyzer.inputs.files import read_file, read_rules
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:  # only loaded when needed
    from types import SimpleNamespace

    from analyzer.model.ipsets import Ipsets
    from analyzer.parsers.rows import Skim
    from analyzer.reports.progress import Advance
    from analyzer.semantics.base_chains import Rules


def read_all(
    options: SimpleNamespace, advance: Advance | None, skim: Skim | None = None
) -> tuple[list[Rules], list[Rules]]:
    """Read the dumps, and those of ``--with``, with the ipsets that their rules refer to.

    Raises:
        AnalyzerError: a file is not what it should be.
        OSError: it cannot be read.
    """
    most = options.max_input
    names = options.dumps, options.others
    given = options.input_format, options.table, advance, skim
    dumps = [read_rules(name, *given, most=most) for name in names[0]]
    # What else the node has is read for its rules, not for its Services.
    others = [read_rules(name, None, None, advance, None, most=most) for name in names[1]]
    if options.ipsets is None:
        return dumps, others
    sets = _sets(options)
    return [_with_sets(each, sets) for each in dumps], [_with_sets(each, sets) for each in others]


def _sets(options: SimpleNamespace) -> Ipsets:
    from analyzer.parsers.ipset_save import parse_ipsets

    name = options.ipsets
    if name == "-":
        raise UsageError("--ipsets -: only a dump can be standard input")
    return parse_ipsets(read_file(name, options.max_input), name)


def _with_sets(ruleset: Rules, sets: Ipsets) -> Rules:
    return replace(ruleset, ipsets=sets) if isinstance(ruleset, Ruleset) else ruleset
