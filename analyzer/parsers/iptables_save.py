"""iptables-save and ip6tables-save, of iptables-legacy and iptables-nft, and ``iptables -S``.

Theory of operation
===================

What iptables-save printed and nobody touched is read by four regular expressions over the whole
text: tables, chains, and the rows of each chain as one piece. No row becomes an object; a rule
is understood when its chain is first looked at (`SlicedRows`). Of a dump of a hundred thousand
rules a question usually concerns a few dozen.

Everything else (a paste with prompts, a fragment, ``iptables -S``, a cut-off file) goes line by
line through `careful`, which gives the same values, and a diagnostic for whatever is odd.

Source: iptables/iptables-save.c, ``do_output``; iptables/nft.c, ``nft_chain_save``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from analyzer.model.rules import Chain, Ruleset, Table
from analyzer.parsers.header import GENERATED, family_of
from analyzer.parsers.rows import Block, Chains, Declared, Skim, Skimmed, SlicedRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

_HEAD: Final = re.compile(r"\*(\w+)\n")
_CHAIN: Final = re.compile(r"(\S+) (\S+) \[(\d{1,20}):(\d{1,20})\]")
#: How a chain of somebody's own, which has no policy, is declared.
_USUAL: Final = "- [0:0]"
#: The end of a line that a line follows which declares no chain.
_LAST_CHAIN: Final = re.compile(r"\n(?!:)")
_END: Final = "COMMIT\n"
_BETWEEN: Final = re.compile(r"(?:#.*\n|[ \t]*\n)*+")
#: The rows of one chain, which iptables-save prints together.
_GROUP: Final = re.compile(r"-A (\S+) .*\n(?:-A \1 .*\n)*+")
_COUNTED_GROUP: Final = r"(?:\[\d+:\d+\] )?-A (\S+) .*\n(?:(?:\[\d+:\d+\] )?-A \1 .*\n)*+"
_SNIFF: Final = re.compile(
    r"^[-+ \t>$]*(?:\*\s*[a-z]+\s*$|:\S+ (?:ACCEPT|DROP|-) \[\d+:\d+\]|-P [A-Z]+ (?:ACCEPT|DROP)"
    r"|(?:\[\d+:\d+\]\s*)?-A \S+ )",
    re.MULTILINE,
)

#: Policy, packets and bytes of a chain; None: it has none.
_Head: TypeAlias = tuple[str | None, tuple[int, int]] | None


def sniff(text: str) -> bool:
    """Tell whether `text` has a line that iptables-save or ``iptables -S`` prints."""
    return _SNIFF.search(text) is not None


def parse(
    text: str,
    file: str,
    table: str | None = None,
    advance: Callable[[int, int | None], None] | None = None,
    skim: Skim | None = None,
) -> Ruleset:
    """Read a dump; `table` names the table where the text does not, as of ``iptables -S``.

    `skim` may take rows of text that nobody touched.

    Raises:
        InputError: it holds no rule and no chain.
    """
    found = None if table else _clean(text, file, skim)
    if found is not None:
        return found
    from analyzer.parsers.careful import CarefulReader

    return CarefulReader(file, table, advance).read(text)


def _clean(text: str, file: str, skim: Skim | None) -> Ruleset | None:
    """Return what iptables-save printed, untouched; None when the text is anything else."""
    tables: dict[str, Table] = {}
    family = family_of(text)
    at = 0
    while True:
        between = _BETWEEN.match(text, at)
        assert between is not None  # it may be empty
        if any(family_of(head[0]) != family for head in GENERATED.finditer(between[0])):
            return None
        at = between.end()
        if at == len(text):
            break
        name = _HEAD.match(text, at)
        if name is None or name[1] in tables:
            return None
        last = _LAST_CHAIN.search(text, name.end() - 1)
        start = last.end() if last is not None else at
        chains = None
        skimmed = None if skim is None else skim(text, start, family, name[1])
        if skimmed is not None and skimmed.spans:
            chains = _chains(text, (name.end(), start), file, name[1], skimmed)
        chains = chains or _chains(text, (name.end(), start), file, name[1], None)
        if chains is None:
            return None
        tables[name[1]] = Table(family, name[1], chains)
        at = chains.block.span[1] + len(_END)
    if not tables:
        return None
    head = GENERATED.search(text)
    return Ruleset(
        tables=tables,
        family=family,
        input_format="iptables-save",
        file=file,
        backend=None if head is None else "nft" if head[2] else "legacy",
    )


def _declared(
    text: str, span: tuple[int, int], skimmed: Mapping[str, object]
) -> Mapping[str, _Head] | None:
    """Return the chains that the lines at `span` declare; None when a line is odd.

    Those in `skimmed` are not looked at one by one where they are declared in that order.
    """
    start, end = span
    if skimmed:
        together = f" {_USUAL}\n:".join(skimmed)
        at = text.find(f":{next(iter(skimmed))} ", start, end)
        behind = at + len(together) + len(f":{_USUAL} \n")
        if text.startswith(f":{together} {_USUAL}\n", at) and behind <= end:
            before, after = _declarations(text[start:at]), _declarations(text[behind:end])
            if before is None or after is None:
                return None
            twice = not before.keys().isdisjoint(after)
            if not twice and not any(map(skimmed.__contains__, (*before, *after))):
                return Declared(before, skimmed, after)
    found = _declarations(text[start:end])
    return found if found is not None and skimmed.keys() <= found.keys() else None


def _declarations(lines: str) -> dict[str, _Head] | None:
    """Return the chains that `lines` declare; None when a line is odd."""
    found: dict[str, _Head] = {}
    if not lines:
        return found
    # A piece is the name of such a chain, behind lines of others if there are any.
    *pieces, rest = f"{lines[1:]}:".split(f" {_USUAL}\n:")
    for piece in pieces:
        if " " in piece or "\n" in piece:
            *others, piece = piece.split("\n:")  # noqa: PLW2901  # the name behind them
            if not _declare(found, others):
                return None
        found[piece] = None
    if rest and not _declare(found, rest.removesuffix("\n:").split("\n:")):
        return None
    joined = "".join(found)
    # Neither blanks nor lines of a name alone.
    return found if " " not in joined and joined.isprintable() else None


def _declare(found: dict[str, _Head], lines: list[str]) -> bool:
    """Add chains that have a policy or counts; tell whether all lines are of such."""
    for line in lines:
        words = _CHAIN.fullmatch(line)
        if words is None:
            return False
        name, policy, packets, octets = words.groups()
        found[name] = None if policy == "-" else policy, (int(packets), int(octets))
    return True


def _chains(
    text: str, lines: tuple[int, int], file: str, table: str, skim: Skimmed | None
) -> Chains | None:
    """Return the chains of a table, declared at `lines`; None when one of them is odd."""
    start = lines[1]
    skimmed, spans = ({}, []) if skim is None else (skim.chains, skim.spans)
    group = re.compile(_COUNTED_GROUP) if text.startswith("[", start) else _GROUP
    groups: dict[str, tuple[int, int]] = {}
    found = at = 0
    begins = [start, *[last for _, last in spans]]
    for begin, end in zip(begins, [*[first for first, _ in spans], None], strict=True):
        piece, at = _groups(group, text, begin, len(text) if end is None else end)
        if end not in {None, at}:
            return None
        groups.update(piece)
        found += len(piece)
    declared = _declared(text, lines, skimmed)
    if (
        declared is None
        or not text.startswith(_END, at)
        or len(groups) < found  # a chain in two pieces
        or not groups.keys().isdisjoint(skimmed)
        or not all(map(declared.__contains__, groups))
    ):
        return None
    rows = Block(text, groups, (start, at), lambda *span: _groups(group, text, *span)[0], skim)

    def make(name: str) -> Chain:
        policy, counters = declared[name] or (None, (0, 0))
        return Chain(name, SlicedRows(file, declared, table, rows, name), policy, counters)

    return Chains(declared, make, rows)


def _groups(
    group: re.Pattern[str], text: str, start: int, end: int
) -> tuple[dict[str, tuple[int, int]], int]:
    """Return the rows of each chain from `start` on, and where something else begins."""
    found: dict[str, tuple[int, int]] = {}
    at = start
    for each in group.finditer(text, start, end):
        if each.start() != at or each[1] in found:
            break
        found[each[1]] = each.span()
        at = each.end()
    return found, at


def render(ruleset: Ruleset) -> str:
    """Return the tables as iptables-save prints them, without its comments and counters."""
    from analyzer.parsers.xt.rule import render_rule

    lines: list[str] = []
    for table in ruleset.tables.values():
        lines.append(f"*{table.name}")
        lines += [f":{c.name} {c.policy or '-'} [0:0]" for c in table.chains.values()]
        lines += [
            render_rule(chain.name, rule) for chain in table.chains.values() for rule in chain.rules
        ]
        lines.append("COMMIT")
    return "\n".join(lines) + "\n"
