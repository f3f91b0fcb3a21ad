"""What pages are asked of, and the JSON document that says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer import cli
from tests.support.captures import FIXTURES, ROOT

SMALL = FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1"


def given(capture: Path) -> list[str]:
    """Return the words that name a dump and its objects, and whose dump it is."""
    (dump,) = [*capture.glob("*-save.txt"), *capture.glob("nft-list-ruleset.*")][:1]
    node = capture.name.partition("@")[2]
    paths = [str(path.relative_to(ROOT)) for path in (dump, capture / "objects.json")]
    return [paths[0], "--objects", paths[1], *(["--node", node] if node else [])]


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Return the JSON document that a command prints."""
    capsys.readouterr()
    assert cli.main([*words, "--format", "json"]) in {0, 1}
    return json.loads(capsys.readouterr().out)
