"""Rulesets of nft that somebody has damaged are answered or refused, and nothing else."""

from __future__ import annotations

import copy
import json
import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.model.cluster import Cluster
from analyzer.parsers import nft_json, nft_text
from tests.support.captures import FIXTURES, ROOT
from tests.support.effort import examples

OLD = FIXTURES / "1.30.3-nftables/two-node/nft-list-ruleset.json"
NEW = ROOT / "fixtures/nft/1.36.2-nftables/seed-dns/nft-list-ruleset.json"
TEXT = FIXTURES / "1.36.2-nftables/two-node@worker1/nft-list-ruleset.txt"
SAMPLES = [json.loads(path.read_text()) for path in (OLD, NEW)]
ODD: list[Any] = [None, 0, -1, 1 << 70, "", "x", "@no", "10.0.0.0/8", [], {}, True, ["x"], {"a": 1}]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return each list or object with each key or index in it."""
    found: list[tuple[Any, Any]] = []
    rest = [value]
    while rest:
        each = rest.pop()
        keys = range(len(each)) if isinstance(each, list) else list(each)
        for key in keys:
            found.append((each, key))
            if isinstance(each[key], list | dict):
                rest.append(each[key])
    return found


def look(read: Any, text: str) -> None:
    """Ask for all that a report may ask for; rows and walks say the same of it."""
    with suppress(AnalyzerError):
        ruleset = read(text, "dump")
        views = []
        for plainly in (True, False):
            recogniser = NftRecogniser(ruleset, Cluster(), plainly=plainly)
            view = recogniser.view()
            views.append(view)
            for service in view.services:
                for route in service.routes:
                    recogniser.tree(service, route)
                for frontend in service.frontends:
                    service.state(frontend)
        assert views[0].services == views[1].services


@examples(4, 200)  # each takes long
@given(st.sampled_from(range(len(SAMPLES))), st.integers(0, 1 << 32), st.integers(1, 4))
@example(0, 39916800, 2)  # the expressions of a rule are no list
@example(0, 1000762, 3)  # the target of a jump is no chain's name
@example(0, 9001188, 1)  # a port is true
@example(1, 9000605, 2)  # an element of a set of addresses is larger than any
def test_damaged_json(sample: int, seed: int, faults: int) -> None:
    chance = random.Random(seed)  # no secret
    given = copy.deepcopy(SAMPLES[sample])
    for _ in range(faults):
        found = places(given)
        if not found:
            break
        holder, key = chance.choice(found)
        match chance.randrange(3):
            case 0:
                del holder[key]
            case 1:
                holder[key] = copy.deepcopy(chance.choice(ODD))
            case _:
                other, at = chance.choice(found)
                holder[key] = copy.deepcopy(other[at])
    look(nft_json.parse, json.dumps(given))


@examples(10, 200)  # each takes long
@given(st.integers(0, 1 << 32), st.integers(1, 4))
def test_damaged_text(seed: int, faults: int) -> None:
    chance = random.Random(seed)  # no secret
    lines = TEXT.read_text().split("\n")
    for _ in range(faults):
        at = chance.randrange(len(lines))
        words = lines[at].split(" ")
        match chance.randrange(4):
            case 0:
                del lines[at]
            case 1:
                lines.insert(chance.randrange(len(lines)), lines[at])
            case 2:
                del words[chance.randrange(len(words))]
                lines[at] = " ".join(words)
            case _:
                words[chance.randrange(len(words))] = chance.choice(
                    ["x", "{", "}", "@x", "0", '"', "10.0.0.1", "goto", "numgen", "1-5", "::1"]
                )
                lines[at] = " ".join(words)
    look(nft_text.parse, "\n".join(lines))


@pytest.mark.parametrize("text", ["table ip x {\n}\n", "table inet x {\n\tchain y {\n\t}\n}\n"])
def test_a_ruleset_without_services(text: str) -> None:
    look(nft_text.parse, text)
