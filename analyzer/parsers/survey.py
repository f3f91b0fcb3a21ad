"""What a dump contains that is not understood, and which chains are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.iptables.rules import Rule, Ruleset, Table
from analyzer.parsers.rows import RowChains, RuleRows
from analyzer.parsers.xt.known import TARGETS_READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.nft.ruleset import NftRuleset

#: A row of well-known options with well-formed values; group 1 is its target. Only other rows are
#: parsed here, which takes fifty times as long.
_OCTET: Final = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_PORT: Final = r"(?:[1-5]?\d{1,4}|6[0-4]\d{3})"
_LIST: Final = r"--name [\w-]{1,200} --mask 255\.255\.255\.255 --rsource"
_PLAIN: Final = (
    r"(?:\[\d+:\d+\] )?-A \S+"
    # Common beginnings of matches are written once: other branches are skipped early.
    r"(?: (?:-m (?:"
    r'comment --comment (?:"[^"\\]*"|[^\s"\\\']+)'
    rf"|(?:tcp|udp|sctp)(?: --[sd]port {_PORT})*"
    rf"|multiport (?:! )?--[sd]?ports {_PORT}(?:[,:]{_PORT}){{0,14}}"
    r"|set (?:! )?--match-set [\w:.-]{1,31} (?:src|dst)(?:,src|,dst){0,2}"
    r"|conntrack (?:! )?--ctstate [A-Z,]+"
    r"|mark (?:! )?--mark 0x[0-9a-f]{1,8}(?:/0x[0-9a-f]{1,8})?"
    r"|addrtype (?:! )?--(?:dst|src)-type [A-Z]+"
    r"|statistic --mode random --probability 0\.\d{5,11}"
    rf"|recent (?:--set|--rcheck --seconds [1-9]\d{{0,7}} --reap) {_LIST}"
    r"|nfacct --nfacct-name  ?[\w-]{1,30})"
    r"|(?:! )?-(?:[sd] [0-9a-f.:]+/\d+|[io] [\w.+@-]+|p [a-z]+)))*"
    # A goto leads to a chain, whatever its name; one named as a target may be missing.
    rf" -(?:j|g(?! (?:{'|'.join(sorted(TARGETS_READ))})(?: |$))) (MARK"
    r"(?= --set-xmark 0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8}$)"
    rf"|DNAT(?= --to-destination {_OCTET}(?:\.{_OCTET}){{3}}:{_PORT}$)"
    r"|REJECT(?= --reject-with icmp6?-port-unreachable$)"
    r"|MASQUERADE(?=(?: --random-fully)?$)|[\w-]+$)(?: --.*)?"
)


#: The chain of a row.
_CHAIN: Final = re.compile(r"-A (\S+)")
#: With more chains than this, all rows are first checked at once.
_MANY_CHAINS: Final = 100
#: If more chains are missing than this, only a few are reported one by one.
_MANY: Final = 12
_FEW: Final = 3


def survey(
    ruleset: Ruleset,
    unread: Mapping[str, Iterable[str] | None] | None = None,
    filled: tuple[str, ...] = (),
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each extension that is not read, and each chain that is missing.

    `unread` lists, by table, the chains to look at; all, if it is None or lacks the table. Chains
    whose names begin with one of `filled` have rules whenever a rule jumps to them.
    """
    for table in ruleset.tables.values():
        names = (unread or {}).get(table.name)
        yield from _survey(ruleset.file, table, table.chains if names is None else names, filled)


def survey_any(
    ruleset: Ruleset | NftRuleset,
    visited: Mapping[str, Iterable[str]],
    filled: tuple[str, ...] = (),
) -> Iterator[Diagnostic]:
    """Yield the diagnostics for the chains of any kind of ruleset that were `visited`."""
    if isinstance(ruleset, Ruleset):
        yield from survey(ruleset, visited, filled)
    else:
        from analyzer.parsers.nft.survey import survey as survey_nft

        yield from survey_nft(ruleset, visited)


def _survey(
    file: str, table: Table, names: Iterable[str], filled: tuple[str, ...]
) -> Iterator[Diagnostic]:
    strange = list(_strange(table, names, filled))
    if not strange:
        return
    from analyzer.model.iptables.matches import MatchUnknown
    from analyzer.model.iptables.targets import Goto, Jump, TargetUnknown
    from analyzer.parsers.xt.rule import OLD_BINARY, UNREAD

    unread: dict[str, list[int]] = {}
    missing: dict[str, list[int]] = {}
    old: dict[str, list[int]] = {}
    empty: dict[str, list[int]] = {}
    for rule in strange:
        line = rule.location.line
        for match in rule.matches:
            # The reader of a listing reports itself what a listing does not show.
            if isinstance(match, MatchUnknown) and UNREAD not in match.text:
                unread.setdefault(f"match {_first(match.text)}", []).append(line)
        match rule.target:
            case TargetUnknown(text) if re.search(OLD_BINARY, text):
                old.setdefault(f"target {_first(text)}", []).append(line)
            case TargetUnknown(text) if UNREAD in text:
                pass
            case TargetUnknown(text):
                unread.setdefault(f"target {_first(text)}", []).append(line)
            case Jump(chain) | Goto(chain) if chain not in table.chains:
                missing.setdefault(chain, []).append(line)
            case Jump(chain) | Goto(chain) if _is_unfilled(table, chain, filled):
                empty.setdefault(chain, []).append(line)
            case _:
                pass
    raw = {rule.location.line: rule.raw for rule in strange}
    for chain, lines in empty.items():
        text = (
            f"chain {chain} of table {table.name} is empty: was the dump taken in the middle of a "
            "sync? Flows that enter it are assumed to return"
        )
        yield _finding(file, lines, "empty-chain", text)
    for what, lines in old.items():
        text = (
            f"{what} is printed without its action: the dump was taken with an iptables older "
            "than the one that wrote the rules; take it again with the newer one"
        )
        yield _finding(file, lines, "older-iptables", text, raw)
    for what, lines in unread.items():
        text = f"{what} is not understood: answers that depend on it are bounds"
        yield _finding(file, lines, "unknown-extension", text, raw)
    told = dict(list(missing.items())[: _FEW if len(missing) > _MANY else _MANY])
    for chain, lines in told.items():
        text = f"chain {chain} of table {table.name} is not in the dump: what it does is unknown"
        yield _finding(file, lines, "missing-chain", text, raw)
    others = [lines for chain, lines in missing.items() if chain not in told]
    if others:
        text = f"{len(others):,} more chains of table {table.name} are not in the dump"
        yield _finding(file, [line for lines in others for line in lines], "missing-chain", text)


def _strange(table: Table, names: Iterable[str], filled: tuple[str, ...]) -> Iterator[Rule]:
    """Yield the rules that name something unknown; the others need not be parsed."""
    unfilled: dict[str, bool] = {}
    held = list(names)
    if len(held) > _MANY_CHAINS and _is_known(table, filled):
        return
    for name in held:
        rules = table.chains[name].rules
        if not isinstance(rules, RuleRows):
            continue
        for at, line in enumerate(rules.lines):
            target = well_known_target(line)
            known = target in table.chains or target in TARGETS_READ
            if target is not None and target not in unfilled:
                unfilled[target] = _is_unfilled(table, target, filled)
            if target is None or not known or unfilled[target]:
                yield rules.understand(rules.number(at), line)


def _is_known(table: Table, filled: tuple[str, ...]) -> bool:
    """Return whether all rows have well-known options, and jump to chains that exist."""
    if not isinstance(table.chains, RowChains):
        return False
    block, targets = table.chains.block, set[str]()
    for start, end in block.all_but():
        found = re.findall(rf"(?m)^{_PLAIN}$", block.text[start:end])
        # A match that ran on into the next row leaves fewer matches than rows.
        if len(found) != block.text.count("\n", start, end):
            return False
        targets.update(found)
    return all(
        each in TARGETS_READ or (each in table.chains and not _is_unfilled(table, each, filled))
        for each in targets
    )


def well_known_target(line: str) -> str | None:
    """Return the target of a row of well-known options; None for any other row."""
    plain = re.fullmatch(_PLAIN, line)  # it takes a while to compile, and may not be needed
    return None if plain is None else plain[1]


def _is_unfilled(table: Table, chain: str, filled: tuple[str, ...]) -> bool:
    """Return whether a chain is one that its writer fills before it jumps there, and is empty."""
    if not chain.startswith(filled) or chain not in table.chains:
        return False
    if isinstance(table.chains, RowChains):
        start, end = table.chains.block.span_of(chain)
        return start == end
    return not len(table.chains[chain].rules)


def _signature(rows: Iterable[str]) -> str:
    """Return which programs wrote the rows, if that is known of all of them."""
    from analyzer.model.programs import KUBE_PROXY, program_of  # few dumps need it

    chains = [(_CHAIN.search(row), row) for row in rows]
    programs = {program_of(found[1] if found else "", row) for found, row in chains}
    named = sorted(each for each in programs if each not in {None, KUBE_PROXY})
    return f"; written by {', '.join(named)}" if named and None not in programs else ""


def _first(text: str) -> str:
    """Return the name of an extension from its text: ``-m set --match-set x src``."""
    words = text.split()
    return words[1] if words[0] in {"-m", "-j"} and words[1:] else text


def _finding(
    file: str,
    lines: list[int],
    code: str,
    message: str,
    raw: Mapping[int, str] = MappingProxyType({}),
) -> Diagnostic:
    more = f" ({len(lines)} rules)" if lines[1:] else ""
    if raw:
        more += _signature([raw[line] for line in lines])
    return partial_warning(code, message + more, file, lines[0])
