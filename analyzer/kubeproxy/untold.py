"""What of a node's or a cluster's rules was not evaluated, although it may decide losses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.semantics.base_chains import Rules


@value
class Untold:
    """Rules that were not evaluated.

    Attributes:
        name: in words: a table that the dump lacks, or a chain of it.
        rules: those of the chain, equal if they do the same; empty: they are not in the dump.
    """

    name: str
    rules: str = ""


@value
class JudgedInPart:
    """A Service that is not evaluated at every node.

    Attributes:
        name: of the Service, or, with the nodes, of an IP version.
        why: what is the case, as the beginning of a sentence that ends in names.
    """

    name: str
    why: str


def of_frames(rulesets: Iterable[Rules]) -> Iterator[tuple[Untold, Diagnostic]]:
    """Yield chains of nft that see frames, not packets, and that may drop some."""
    for ruleset in rulesets:
        if isinstance(ruleset, Ruleset):
            continue
        from analyzer.semantics.frames import as_text, frame_chains, may_end

        for table, chain in frame_chains(ruleset):
            if may_end(table, chain):
                name = f"chain {chain.name} of table {table.family} {table.name}"
                says = f"{name} sees frames, not packets, and is not evaluated: what it drops or "
                says += "changes is not known"
                told = partial_warning("frames", says, ruleset.file)
                yield Untold(name, as_text(table, chain)), told
