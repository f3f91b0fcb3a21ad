"""Chains that are skimmed off a dump leave it as it is: same chains, same rules, same places."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError
from analyzer.kubeproxy.generate import iptables_save, services
from analyzer.kubeproxy.rows import endpoints as endpoint_rows
from analyzer.kubeproxy.rows.endpoints import EndpointRows
from analyzer.kubeproxy.rows.shapes import are_hosts
from analyzer.model import addresses
from analyzer.parsers.rows import RowChains, RuleRows
from tests.support.captures import FIXTURES
from tests.support.reading import read_ruleset

ODD_NAMES = ["KUBE-SVC-", "\x01", "KUBE-SEP-\t", "KUBE-SEP-\x1b", "KUBE-SEP-\u2028"]
DUMPS = sorted(FIXTURES.glob("*iptables*/*/iptables-*-save.txt"))


def read(data: bytes, *, skimming: bool) -> object:
    """Return all that a reader gives: chains in order, their rows with numbers, diagnostics."""
    try:
        ruleset = read_ruleset(data, "dump", skim=EndpointRows.skim if skimming else None)
    except AnalyzerError as error:
        return str(error)
    tables = {
        name: [
            (c.name, c.policy, c.counters, c.rules.rows if isinstance(c.rules, RuleRows) else None)
            for c in table.chains.values()
        ]
        for name, table in ruleset.tables.items()
    }
    lengths = {name: (len(t.chains), t.rules) for name, t in ruleset.tables.items()}
    return tables, lengths, ruleset.rules, ruleset.diagnostics, ruleset.backend


def skimmed(data: bytes) -> int:
    """Return how many chains of table nat are skimmed."""
    chains = read_ruleset(data, "dump", skim=EndpointRows.skim).tables["nat"].chains
    assert isinstance(chains, RowChains)
    return len(chains.block.skimmed.chains) if chains.block.skimmed is not None else 0


@pytest.mark.parametrize("path", DUMPS, ids=lambda p: str(p.relative_to(FIXTURES)))
def test_a_skimmed_dump_is_the_same(path: Path) -> None:
    data = path.read_bytes()
    assert read(data, skimming=True) == read(data, skimming=False)
    assert skimmed(data) > 0


@pytest.mark.parametrize("piece", [1, 300, 1 << 17])
def test_pieces_of_any_size_leave_no_chain_apart(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_rows, "_PIECE", piece)
    data = iptables_save(list(services(30))).encode()
    assert skimmed(data) == 300
    assert read(data, skimming=True) == read(data, skimming=False)


@given(st.sampled_from(DUMPS), st.sampled_from([1, 300, 1 << 17]), st.randoms())
def test_dumps_that_somebody_has_changed_are_the_same(
    path: Path, piece: int, chance: random.Random
) -> None:
    lines = path.read_text().split("\n")
    for _ in range(chance.randint(1, 3)):
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(5):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[other])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = lines[at].replace("KUBE-SEP-", chance.choice(ODD_NAMES))
            case _:
                place = chance.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:place] + chance.choice('!"-/\\\t 10x') + lines[at][place:]
    data = "\n".join(lines).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(endpoint_rows, "_PIECE", piece)
        assert read(data, skimming=True) == read(data, skimming=False)


def test_a_chain_in_two_pieces_is_not_skimmed() -> None:
    lines = iptables_save(list(services(3))).split("\n")
    first = next(line for line in lines if line.startswith("-A KUBE-SEP-"))
    again = [*lines[: lines.index("COMMIT")], first, *lines[lines.index("COMMIT") :]]
    data = "\n".join(again).encode()
    assert read(data, skimming=True) == read(data, skimming=False)


def test_other_tables_are_not_skimmed() -> None:
    text = iptables_save(list(services(3)))
    assert text.count("*nat\n") == 1
    data = text.replace("*nat\n", "*mangle\n").encode()
    chains = read_ruleset(data, "dump", skim=EndpointRows.skim).tables["mangle"].chains
    assert isinstance(chains, RowChains)
    assert chains.block.skimmed is None


#: Beside what iptables prints as an address of IPv4, what it does not.
TEXTS = ["10.0.0.1", "255.255.255.255", "0.0.0.1", "1.22.199.250", "249.100.9.99"]
ODD_TEXTS = ["", "10.0.0", "10.0.0.1.2", "256.0.0.1", "01.2.3.4", "1.2.3.4 ", "a.b.c.d", "1..2.3"]
ODD_TEXTS += [
    "1.2.3.4/5",
    "1.2.3.4/5.6.7.8",
    "1000.2.3.4",
    "\u0661.2.3.4",
    "300.1.1.1",
    "1.2.3.4\n",
]


@pytest.mark.parametrize("odd", ODD_TEXTS)
def test_many_addresses_are_treated_as_few_are(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for few in (0, 1_000):
        monkeypatch.setattr(addresses, "_FEW", few)
        assert are_hosts(TEXTS, "ip")
        for at in range(len(TEXTS) + 1):
            assert not are_hosts([*TEXTS[:at], odd, *TEXTS[at:]], "ip")
