"""Rules with limits of their own, named where the lab may have exceeded them.

The prediction assumes that traffic stays within such limits, and the lab sends as fast as it can.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeVar

from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.assumed import ASSUMED
from analyzer.kubeproxy.rows.texts import rows_of
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import replace
from analyzer.parsers.nft.rendering import render_rule as render_nft
from analyzer.parsers.xt.rule import render_rule
from analyzer.reports.answers import LabAnswer
from analyzer.reports.lab_pcap_answer import LabPcapAnswer
from analyzer.reports.lab_phases_answer import LabPhasesAnswer
from analyzer.reports.phrases import count
from analyzer.semantics.assumed import ASSUMPTIONS, LIMITS
from analyzer.semantics.base_chains import Rules

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_LIMITED: Final = re.compile(
    r"-m (?:limit|hashlimit|connlimit) |-m recent .*--hitcount |\blimit rate |\bct count "
)
#: Rules that a message names.
_NAMED: Final = 3
#: Characters of a rule that a message quotes.
_MOST_QUOTED: Final = 200

AnyAnswer = TypeVar("AnyAnswer", LabAnswer, LabPhasesAnswer, LabPcapAnswer)


def with_limits(answer: AnyAnswer, given: Input) -> AnyAnswer:
    """Return an answer that, if it disagrees, names the rules whose limits may explain that."""
    if answer.agrees or not _depends_on_limits(given):
        return answer
    rules = [each for ruleset in given.every_ruleset for each in _limited(ruleset)]
    if not rules:
        return answer
    named = "; ".join(f"{where}: {text[:_MOST_QUOTED]}" for where, text in rules[:_NAMED])
    more = f"; and {len(rules) - _NAMED} more" if len(rules) > _NAMED else ""
    has = "has a limit" if len(rules) == 1 else "have limits"
    note = Diagnostic(
        severity=Severity.WARNING,
        code="beyond-limits",
        message=f"{count(len(rules), 'rule')} {has} that the lab may have exceeded, which would "
        f"explain flows that were dropped or rejected ({named}{more}); --assume limits=unknown "
        "predicts bounds for any rate, and --for with --rate sends slowly",
        file=given.ruleset.file,
    )
    return replace(answer, diagnostics=(*answer.diagnostics, note))


def _depends_on_limits(given: Input) -> bool:
    row = next(each for each in ASSUMPTIONS if each.name == LIMITS)
    value = given.assumed.get(LIMITS, row.default)
    told = {each.message for each in given.view.diagnostics if each.code == ASSUMED}
    return value in row.sentences and row.sentence(value) in told


def _limited(ruleset: Rules) -> Iterator[tuple[str, str]]:
    """Yield where the rules with limits are, and what they are."""
    if isinstance(ruleset, Ruleset):
        for table in ruleset.tables.values():
            if not _LIMITED.search(rows_of(table)):
                continue
            for chain in table.chains.values():
                for rule in chain.rules:
                    text = render_rule(chain.name, rule)
                    if _LIMITED.search(_QUOTED.sub('""', text)):
                        yield str(rule.location), text
        return
    for nft_table in ruleset.tables.values():
        for nft_chain in nft_table.chains.values():
            for nft_rule in nft_chain.rules:
                text = render_nft(nft_rule)
                if _LIMITED.search(_QUOTED.sub('""', text)):
                    yield str(nft_rule.location), text
