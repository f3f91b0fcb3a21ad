"""The commands that remove an earlier repair found in a dump, if its undo is lost."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.model.iptables.rules import Rule, Ruleset, Table
from analyzer.model.iptables.targets import Goto, Jump
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers.xt.rule import render_rule
from analyzer.repair.chains import target_in, texts
from analyzer.repair.patch import PREFIX, TABLE, NotCopied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.semantics.base_chains import Rules


def undo_of(ruleset: Rules) -> str:
    """Return the commands; empty if there is no repair.

    Raises:
        NotCopied: a rule that leads to it is not understood.
    """
    if isinstance(ruleset, NftRuleset):
        own = [family for family, name in ruleset.tables if name == TABLE]
        return "".join(f"delete table {family} {TABLE}\n" for family in own)
    return "".join(_lines(ruleset))


def _lines(ruleset: Ruleset) -> Iterator[str]:
    for name in ("nat", "filter"):  # nat first, so that kube-proxy has the flows again
        table = ruleset.tables.get(name)
        own = [] if table is None else [c for c in table.chains if c.startswith(PREFIX)]
        if table is None or not own:
            continue
        yield f"*{name}\n"
        yield from _jumps_to_ours(table)
        yield from (f"-F {each}\n" for each in own)
        yield from (f"-X {each}\n" for each in own)
        yield "COMMIT\n"


def _jumps_to_ours(table: Table) -> Iterator[str]:
    """Yield what deletes the rules by which other chains lead to ours."""
    for chain in table.chains.values():
        if chain.name.startswith(PREFIX):
            continue
        for at, row in enumerate(texts(chain)):
            if (target_in(row) or "").startswith(PREFIX):
                yield f"{_deleting(chain.name, chain.rules[at])}\n"


def _deleting(chain: str, rule: Rule) -> str:
    match rule.target:
        case Jump() | Goto():
            row = render_rule(chain, rule)
        case _:
            raise NotCopied(f"rule {rule.location} is not understood")
    if not row.isprintable():
        raise NotCopied(f"rule {rule.location} contains control characters")
    return f"-D {row.removeprefix('-A ')}"
