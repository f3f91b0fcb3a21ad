"""Rows without headers are told apart by table as the whole dump has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.parsers.iptables_save import parse
from tests.support.captures import ROOT
from tests.support.commands import Command

NOISE = ROOT / "fixtures" / "noise"
KNOWN = "--objects", str(NOISE / "objects.json"), "--node", "worker1"
FILES = sorted(NOISE.glob("*.txt"))
NAT = "-A PREROUTING -j N\n-A N -j DNAT --to-destination 10.0.0.1:80\n"


def rows_of(file: Path) -> str:
    return "".join(
        line for line in file.read_text().splitlines(keepends=True) if line.startswith("-A")
    )


def rows(text: str) -> dict[str, dict[str, list[str]]]:
    """The rows of each chain that has any, by table, but for what ends a chain that may go on."""
    tables = parse(text, "dump").tables
    found = {
        name: {
            chain: told
            for chain, held in table.chains.items()
            if (told := [rule.raw for rule in held.rules if rule.raw.startswith("-A")])
        }
        for name, table in tables.items()
    }
    return {name: chains for name, chains in found.items() if chains}


@pytest.mark.alike
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_rows_that_some_table_alone_accepts_are_in_it(file: Path) -> None:
    whole, parted = rows(file.read_text()), rows(rows_of(file))
    assert {"filter", "nat"} <= parted.keys()
    # Rows that several tables accept stay in nat.
    for name in parted.keys() - {"nat"}:
        assert parted[name] == whole[name]
    for chain, told in whole["nat"].items():
        kept = iter(parted["nat"][chain])
        assert all(row in kept for row in told), chain


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        (f"-A PREROUTING -p udp -j NOTRACK\n{NAT}", ["raw", "nat"]),
        (f"-A PREROUTING -j X\n-A X -j DROP\n{NAT}", ["raw", "nat"]),
        (f"-A INPUT -j X\n-A X -j DROP\n{NAT}", ["filter", "nat"]),
        (f"-A PREROUTING -j TOS --set-tos 0x10/0xff\n{NAT}", ["mangle", "nat"]),
        (f"-A PREROUTING -j X\n-A FORWARD -j X\n-A X -j RETURN\n{NAT}", ["mangle", "nat"]),
        (f"{NAT}-A FORWARD -j X\n-A X -j REJECT\n", ["nat", "filter"]),
        (f"-A PREROUTING -j X\n-A X -j RETURN\n{NAT}", ["nat"]),
        (NAT, ["nat"]),
        ("-A FORWARD -j X\n-A X -j REJECT\n", ["filter"]),
    ],
)
def test_the_table_follows_from_chains_and_targets(text: str, tables: list[str]) -> None:
    assert [*rows(text)] == tables


def test_rows_that_cannot_be_told_apart_may_do_anything(command: Command) -> None:
    text = rows_of(NOISE / "base.txt")
    mixed = f"{text}-A PREROUTING -j X\n-A X -j REJECT\n-A X -j DNAT --to-destination 10.0.0.1\n"
    for given, warns, worst in (
        (text, "rows without their tables are taken for those of filter, nat", "50.0 to 100.0%"),
        (mixed, "rows of several tables that cannot be told apart", "0.0 to 100.0%"),
    ):
        file = command.file("rows.txt", given)
        asked = *KNOWN, "--service", "app", "--dead-node", "master"
        done = command("loss", file, *asked)
        assert f"rows.txt:1: warning: {warns}" in done.err
        assert f"Worst: default/app loses {worst} of new flows" in done.out
        assert command("loss", file, *asked, "--max-loss", "99%").status == 1


@pytest.mark.alike
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_bounds_of_rows_contain_the_loss_of_the_whole(file: Path, command: Command) -> None:
    asked = *KNOWN, "--service", "app", "--dead-node", "master", "-o", "tsv"
    told = []
    for given in (file.read_text(), rows_of(file)):
        lines = command("loss", command.file("dump.txt", given), *asked).out.splitlines()
        names = lines[0].split("\t")
        each = [dict(zip(names, line.split("\t"), strict=True)) for line in lines[1:]]
        told.append({(e["frontend"], e["from"]): e for e in each})
    whole, cut = told
    assert whole
    for way in whole.keys() & cut.keys():
        low, high = (float(cut[way][name]) for name in ("lower", "upper"))
        assert low <= float(whole[way]["lower"]), way
        assert float(whole[way]["upper"]) <= high, way
