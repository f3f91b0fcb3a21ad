"""What files become with one salt, byte for byte: names must not change by chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.captures import FIXTURES, ROOT
from tests.support.commands import Command

EXPECTED = Path(__file__).parent / "anonymised"
INPUTS = {
    "dump.txt": ROOT / "examples" / "dump.txt",
    "objects.json": ROOT / "examples" / "objects.json",
    "ruleset.nft": FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt",
}


@pytest.mark.parametrize("name", INPUTS)
def test_the_same_salt_writes_the_same(command: Command, name: str, update_golden: bool) -> None:
    command.file("salt", "a salt for golden files\n")
    (command.folder / "salt").chmod(0o600)
    done = command("anonymise", str(INPUTS[name]), "--salt-file", "salt")
    assert (done.status, done.err) == (0, "")
    if update_golden:
        EXPECTED.mkdir(exist_ok=True)
        (EXPECTED / name).write_text(done.out)
    assert done.out == (EXPECTED / name).read_text()
