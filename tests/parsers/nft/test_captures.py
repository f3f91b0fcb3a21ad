"""Text and JSON of one real ruleset are one model, and nothing of kube-proxy's is unknown."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from analyzer.model.nft.expressions import Unknown
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.nft.statements import Match, Xt
from analyzer.parsers import nft_json, nft_text
from analyzer.parsers.nft.rendering import render
from analyzer.parsers.nft.survey import survey
from tests.support.nft.comparing import plain, unknown_in, what_json_tells

FIXTURES = Path(__file__).parents[3] / "fixtures/nft"
KUBE_PROXY = ["1.30.3-nftables/seed-dns", "1.36.2-nftables/seed-dns"]
#: Rules of ours, as many kinds as nft 1.0.6 loads, each printed by it in both forms.
STATEMENTS = "statements"
#: What no reader of ours knows in them.
NOT_READ = ["meter foo", "tcp option @255", "reset tcp option", "synproxy mss"]
#: xtables matches that nft prints as a mere blank.
SILENT = {"comment", "tcp", "udp"}


def text_of(path: Path) -> str:
    if path.exists():
        return path.read_text(encoding="utf-8")
    return gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes()).decode()


def read_text(folder: Path, name: str = "nft-list-ruleset.txt") -> NftRuleset:
    return nft_text.parse(text_of(folder / name), name)


def read_json(folder: Path, name: str = "nft-list-ruleset.json") -> NftRuleset:
    return nft_json.parse(text_of(folder / name), name)


@pytest.mark.parametrize("case", [*KUBE_PROXY, STATEMENTS])
def test_text_and_json_are_one_model(case: str) -> None:
    text, given = read_text(FIXTURES / case), read_json(FIXTURES / case)
    assert what_json_tells(text) == what_json_tells(given)
    assert text.rules == given.rules == sum(len(c.rules) for c in chains(text))


@pytest.mark.parametrize("case", [*KUBE_PROXY, STATEMENTS])
def test_handles_change_nothing(case: str) -> None:
    listed = read_text(FIXTURES / case, "nft-a-list-ruleset.txt")
    assert plain(listed) == plain(read_text(FIXTURES / case))


@pytest.mark.parametrize("case", [*KUBE_PROXY, STATEMENTS])
def test_what_is_written_reads_back(case: str) -> None:
    ruleset = read_text(FIXTURES / case)
    assert plain(nft_text.parse(render(ruleset), "again")) == plain(ruleset)


@pytest.mark.parametrize("case", [*KUBE_PROXY, STATEMENTS])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\t", "    "),
        ("\n", "\r\n"),
        ("\t", ""),
        ("\n\t\tct state", ";\nct state"),
        (" {\n", " { # handle 7\n\n"),
        ("comment", "\\\ncomment"),
        ("table ", "# a note\ntable "),
        ("elements = {", "elements = {\n"),
    ],
)
def test_another_layout_changes_nothing(case: str, old: str, new: str) -> None:
    text = text_of(FIXTURES / case / "nft-list-ruleset.txt")
    assert old in text
    changed = nft_text.parse(text.replace(old, new), "f")
    assert plain(changed) == plain(nft_text.parse(text, "f"))
    assert changed.diagnostics == ()


@pytest.mark.parametrize("case", KUBE_PROXY)
def test_nothing_of_kube_proxy_is_unknown(case: str) -> None:
    for ruleset in (read_text(FIXTURES / case), read_json(FIXTURES / case)):
        assert list(unknown_in(plain(ruleset))) == []
        assert [*ruleset.diagnostics, *survey(ruleset)] == []


def test_what_is_unknown_is_kept_and_told_with_its_line() -> None:
    text = text_of(FIXTURES / STATEMENTS / "nft-list-ruleset.txt")
    found = list(survey(nft_text.parse(text, "rules.txt")))
    lines = text.split("\n")
    assert [d.code for d in found] == ["unknown-statement"] * len(NOT_READ)
    for diagnostic, start in zip(found, NOT_READ, strict=True):
        assert diagnostic.partial
        assert diagnostic.line is not None
        assert lines[diagnostic.line - 1].strip().startswith(start)


def chains(ruleset: NftRuleset) -> list[Any]:
    return [chain for table in ruleset.tables.values() for chain in table.chains.values()]


def test_each_rule_knows_its_line() -> None:
    text = text_of(FIXTURES / KUBE_PROXY[1] / "nft-list-ruleset.txt")
    lines = text.split("\n")
    for chain in chains(nft_text.parse(text, "rules.txt")):
        for rule in chain.rules:
            assert lines[rule.location.line - 1].strip() == rule.raw


def test_what_iptables_nft_wrote_is_unknown_where_nft_prints_nothing() -> None:
    folder = FIXTURES / "1.36.2-iptables-nft/two-node"
    ruleset = read_text(folder, "nft-list-ruleset-of-iptables-nft.txt")
    nat = ruleset.tables["ip", "nat"].chains
    # A DNAT: nft prints a blank at the end, and the rule must not look like a mere counter.
    assert nat["KUBE-SEP-ZP3FB6NMPNCO4VBJ"].rules[1].statements[-1] == Xt("target")
    drawn = nat["KUBE-SVC-TCOU7JCQXEZGVUNU"].rules[1].statements
    assert isinstance(drawn[1], Match)
    assert (drawn[1].operator, drawn[1].right) == ("<", 1 << 30)
    codes = {d.code: d.message for d in survey(ruleset)}
    assert "iptables-save" in codes["iptables-nft"]
    assert set(codes) == {"iptables-nft"}


@pytest.mark.parametrize("version", ["1.30.3", "1.36.2"])
def test_all_captures(captures: Path, version: str) -> None:
    seen = 0
    for folder in sorted((captures / f"{version}-nftables").iterdir()):
        for path in sorted(folder.glob("nft-list-ruleset*.txt*")):
            name = path.name.removesuffix(".gz")
            ruleset = read_text(folder, name)
            given = plain(ruleset)
            assert list(unknown_in(given)) == []
            assert list(survey(ruleset)) == []
            of_json = read_json(folder, name.replace(".txt", ".json"))
            assert what_json_tells(of_json) == what_json_tells(ruleset)
            assert plain(nft_text.parse(render(ruleset), "again")) == given
            seen += 1
        for path in folder.glob("nft-a-list-ruleset*"):
            listed = read_text(folder, path.name.removesuffix(".gz"))
            assert plain(listed) == plain(read_text(folder))
    assert seen >= 7


def test_captures_of_iptables_nft(captures: Path) -> None:
    """Where JSON names an extension, text translates it or is known to hide it."""
    folder = captures / "1.30.3-iptables-nft/features"
    text = read_text(folder, "nft-list-ruleset-of-iptables-nft.txt")
    given = read_json(folder, "nft-list-ruleset-of-iptables-nft.json")
    targets = 0
    for mine, theirs in zip(chains(text), chains(given), strict=True):
        for rule, other in zip(mine.rules, theirs.rules, strict=True):
            assert not any(isinstance(s, Unknown) for s in rule.statements)
            shown = Counter(s for s in rule.statements if isinstance(s, Xt))
            named = [s for s in other.statements if isinstance(s, Xt)]
            silent = sum(s.kind == "match" and s.name in SILENT for s in named)
            assert shown[Xt("match")] == silent
            lost = [s for s in named if s.kind == "target" and s.name in {"DNAT", "MASQUERADE"}]
            assert shown[Xt("target")] == len(lost) or not text_hides(rule.raw)
            targets += len(lost)
    assert targets > 200


def text_hides(raw: str) -> bool:
    return raw.endswith(" ")


def test_captures_of_iptables_nft_hold_nothing_else_unknown(captures: Path) -> None:
    seen = 0
    for path in sorted(captures.glob("*-iptables-nft/*/nft-list-ruleset-of-iptables-nft.txt*")):
        ruleset = read_text(path.parent, path.name.removesuffix(".gz"))
        assert {d.code for d in survey(ruleset)} == {"iptables-nft"}
        seen += 1
    assert seen >= 6
