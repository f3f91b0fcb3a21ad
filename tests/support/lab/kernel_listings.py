"""Dumps, restored by the real iptables and listed again: do the rows tell the rules?

A program: it leaves the host's network. Prints what it found as JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from analyzer.model.iptables import matches as m
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.rules import Rule, Ruleset
from analyzer.parsers import listing
from analyzer.parsers.iptables_save import parse
from analyzer.parsers.xt.rule import UNREAD
from netns_lab.command import run
from netns_lab.ipsets import make_sets
from netns_lab.namespace import Namespace, leave_host

#: How listings are asked for: with rounded counters, with whole ones and numbers of lines.
WAYS: Final = (("-nvL",), ("-n", "-v", "-x", "-L", "--line-numbers"))


def fault(listed: Rule, saved: Rule) -> str | None:
    """Return what a listing tells wrongly of a rule; None: nothing, and what it does not tell it
    says that it does not.
    """
    known = [each for each in listed.matches if not _is_unread(each)]
    whole = len(known) == len(listed.matches)
    target = listed.target
    if isinstance(target, t.TargetUnknown) and UNREAD in target.text:
        if target.text.split()[1] not in saved.raw:
            return "another target"
    elif target != saved.target:
        return f"target {target} for {saved.target}"
    others = [each for each in saved.matches if each not in known]
    if any(each not in saved.matches for each in known):
        return f"matches {known} for {saved.matches}"
    if whole and others:
        return f"nothing of {others}"
    order = [each for each in saved.matches if each in known]
    return None if order == known or not whole else f"order {known} for {order}"


def is_whole(rule: Rule) -> bool:
    """Tell whether a listing told all of a rule."""
    return UNREAD not in rule.raw


def _is_unread(match: m.Match) -> bool:
    return isinstance(match, m.MatchUnknown) and UNREAD in match.text


def listed(namespace: Namespace, binary: str, table: str, way: Sequence[str]) -> str:
    """Return what a program lists of a table."""
    return run(namespace, [binary, "-t", table, *way]).stdout


def faults(dump: Ruleset, listing_: Ruleset) -> list[str]:
    """Return what the listing of one table tells wrongly of it."""
    (name,) = listing_.tables
    ours, theirs = listing_.tables[name], dump.tables[name]
    if set(ours.chains) != set(theirs.chains):
        return [f"{name}: other chains"]
    found = [] if ours.complete else [f"{name}: taken for incomplete"]
    for chain, saved in theirs.chains.items():
        rows = ours.chains[chain]
        if (rows.policy, len(rows.rules)) != (saved.policy, len(saved.rules)):
            found.append(f"{name} {chain}: {len(rows.rules)} rules for {len(saved.rules)}")
            continue
        for one, other in zip(rows.rules, saved.rules, strict=True):
            wrong = fault(one, other)
            if wrong is not None:
                found.append(f"{name} {chain}: {wrong}")
    return found


def _restore(namespace: Namespace, binary: str, text: str) -> None:
    """Load a dump, and what its rules ask for beside it."""
    for name in dict.fromkeys(re.findall(r"--nfacct-name +(\S+)", text)):
        run(namespace, ["nfacct", "add", name])
    ruleset = parse(text, "dump")
    chains = (chain for table in ruleset.tables.values() for chain in table.chains.values())
    make_sets(namespace, ruleset, [rule for chain in chains for rule in chain.rules])
    run(namespace, [f"{binary}-restore"], text)


def main(words: Sequence[str] | None = None) -> int:
    """Restore each dump and hold all listings of it against it; 1: one tells something wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--into", type=Path, help="write the listings of the last dump here")
    parser.add_argument("dumps", nargs="+", type=Path)
    options = parser.parse_args(words)
    leave_host()
    found = {}
    for number, path in enumerate(options.dumps):
        namespace = Namespace(f"l{number}")
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        _restore(namespace, options.binary, text)
        wrong: list[str] = []
        rows = unread = 0
        saved = parse(run(namespace, [f"{options.binary}-save"]).stdout, "saved")
        for table in saved.tables:
            for way in WAYS:
                printed = listed(namespace, options.binary, table, way)
                read = listing.parse(printed, "listed")
                wrong += faults(saved, read)
                every = [rule for c in read.tables[table].chains.values() for rule in c.rules]
                rows += len(every)
                unread += sum(not is_whole(rule) for rule in every)
                if options.into is not None and way == WAYS[0]:
                    (options.into / f"{table}.txt").write_text(printed)
        found[str(path)] = {"faults": wrong, "rows": rows, "unread": unread}
    json.dump(found, sys.stdout)
    return int(any(each["faults"] for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
