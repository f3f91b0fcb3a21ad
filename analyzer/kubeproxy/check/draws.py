"""Each endpoint is drawn once, with probability 1/n when n endpoints are left.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``probability``: ten digits, five up to 1.16.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from analyzer.kubeproxy.check.facts import DRAWING, DumpFacts
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.check.probabilities import is_one_of, number_of
from analyzer.kubeproxy.matched.chain_rule import ChainRule
from analyzer.model.probability import (
    ALWAYS,
    NEVER,
    XT_STATISTIC_BITS,
    Dyadic,
    threshold_from_text,
)


def draws(facts: DumpFacts) -> Iterator[Finding]:
    """Find probabilities that are not 1/n, and draws that are missing, doubled or never reached."""
    for chain in facts.chains(*DRAWING):
        rows = facts.draws(chain)
        if rows:
            yield from _order(facts, chain, rows)
            yield from _twice(facts, chain, rows)


def _order(facts: DumpFacts, chain: str, rows: list[ChainRule]) -> Iterator[Finding]:
    # Rules for some flows only, for example of a former external IP, are not draws.
    if any(row.source or row.destination or row.others or row.mark for row in rows):
        return
    *first, last = rows
    if last.probability is not None and not facts.nat.complete:
        return  # the rest may have been cut off
    if last.probability is not None:
        left = _left(rows)
        yield Finding(
            code="no-last-endpoint",
            message=(
                f"the last rule of {chain} is random too, so {_percent(left)} of "
                f"{facts.traffic(chain)} reach no endpoint: the final unconditional rule is "
                "missing"
            ),
            line=last.line,
        )
    for at, row in enumerate(first):
        if row.probability is None:
            behind = len(rows) - at - 1
            yield Finding(
                code="never-drawn",
                message=(
                    f"this rule sends all {facts.traffic(chain)} to "
                    f"{facts.endpoint(row.target or '')}; {behind} rule(s) after it are never "
                    "evaluated"
                ),
                line=row.line,
            )
            return
    yield from _probabilities(facts, chain, rows)


def _probabilities(facts: DumpFacts, chain: str, rows: list[ChainRule]) -> Iterator[Finding]:
    drawn = [row for row in rows if row.probability is not None]
    total = len(drawn) + 1
    wrong = [at for at, row in enumerate(drawn) if not is_one_of(total - at, row.probability or "")]
    if not wrong:
        return
    numbers = [number_of(row.probability or "") for row in drawn]
    # Numbers that fall to 2 by more than one at a time: rules between them are lost.
    if None not in numbers and rows[-1].probability is None:
        known = [number for number in numbers if number is not None]
        steps = [*known, 1]
        gaps = [at for at in range(len(known)) if steps[at] != steps[at + 1] + 1]
        if all(a > b for a, b in pairwise(steps)):
            at = gaps[0]
            lost = steps[at] - steps[at + 1] - 1
            yield Finding(
                code="lost-draw",
                message=(
                    f"{chain} has probabilities for {steps[0]} endpoints and rules for "
                    f"{len(rows)}: {lost} endpoint(s) after this rule get no new flows, and the "
                    f"last rule takes their share of {facts.traffic(chain)} "
                    f"({_percent(_share(rows, len(rows) - 1))} instead of 1/{len(rows)})"
                ),
                line=drawn[at].line,
            )
            return
    at, row = wrong[0], drawn[wrong[0]]  # later ones follow from it, or are no better
    yield Finding(
        code="wrong-probability",
        message=f"{facts.endpoint(row.target or '')} gets {_percent(_share(rows, at))} of "
        f"{facts.traffic(chain)}, not 1/{total}: the rule's probability is not 1/{total - at}",
        line=row.line,
    )


def _twice(facts: DumpFacts, chain: str, rows: list[ChainRule]) -> Iterator[Finding]:
    seen: dict[str, ChainRule] = {}
    for row in rows:
        to = facts.destinations.get(row.target or "", row.target or "")
        if to in seen:
            yield Finding(
                code="endpoint-twice",
                message=f"{facts.endpoint(row.target or '')} is drawn twice in {chain} (first in "
                f"line {seen[to].line}), so it gets two shares of {facts.traffic(chain)}",
                line=row.line,
            )
        else:
            seen[to] = row


def _chance(row: ChainRule) -> Dyadic:
    if row.probability is None:
        return ALWAYS
    try:
        return Dyadic.of(threshold_from_text(row.probability), XT_STATISTIC_BITS)
    except ValueError:
        return NEVER


def _share(rows: list[ChainRule], at: int) -> Dyadic:
    return _left(rows[:at]) * _chance(rows[at])


def _left(rows: list[ChainRule]) -> Dyadic:
    left = ALWAYS
    for row in rows:
        left = left * ~_chance(row)
    return left


def _percent(share: Dyadic) -> str:
    return f"{float(share) * 100:.4g}%"
