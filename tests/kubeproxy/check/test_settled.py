"""What is found is the same whether chains are settled or each of their rows is looked at."""

from __future__ import annotations

import json
import random
import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.check.facts import DumpFacts
from analyzer.kubeproxy.check.findings import Checked
from analyzer.kubeproxy.check.invariants import check
from analyzer.kubeproxy.generate import api_objects, iptables_save, services
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.rows.endpoints import EndpointRows
from analyzer.parsers.api_objects import decode
from analyzer.parsers.iptables_save import parse
from analyzer.parsers.services import parse_services
from tests.support.effort import examples

GIVEN: Final = list(services(5, endpoints=(1, 2, 3, 2)))
PLAIN: Final = iptables_save(GIVEN)
WANTED: Final = parse_services(
    decode([("objects", json.dumps({"items": api_objects(GIVEN)}).encode())]), 4
)
#: What an edit puts in the place of what it finds in a row.
EDITS: Final = (
    (r" -j KUBE-S\S+", " -j {chain}"),
    (r"^-A KUBE-S\S+", "-A {chain}"),
    (r" -j \S+", " -j RETURN"),
    (r'"(\S+):http', '"ns9/other:http'),
    (r"-> \S+:8080", "-> 10.0.0.9:8080"),
    (r"(! )?-s \S+ ", ""),
    (r"-s \S+/32", "-s 10.9.9.9/32"),
    (r"--to-destination \S+", "--to-destination 10.0.0.2:8080"),
    (r"--dport \d+", "--dport 81"),
    (r"--probability 0\.\d", "--probability 0.7"),
    (r"-m statistic --mode random --probability \S+ ", ""),
    (r"-p tcp (.*)-m tcp", r"-p udp \1-m udp"),
    (r' -m comment --comment "[^"]*"', ""),
    (r" -j KUBE-SEP", " -i eth0 -j KUBE-SEP"),
)


def edited(seed: int, edits: list[int]) -> str:
    """Return the plain dump with some edits, each of a row that the seed chooses."""
    draw = random.Random(seed)
    lines = PLAIN.split("\n")
    for number in edits:
        chains = sorted({each for line in lines for each in re.findall(r"KUBE-S\S\S-\S+", line)})
        at = draw.choice([at for at, line in enumerate(lines) if line.startswith("-A ")])
        if number < len(EDITS):
            pattern, text = EDITS[number]
            fitting = [
                a for a, line in enumerate(lines) if re.search(rf"(?=^-A ).*{pattern}", line)
            ]
            at = draw.choice(fitting or [at])
            text = text.replace("{chain}", draw.choice(chains))
            lines[at] = re.sub(pattern, text, lines[at], count=1)
        elif number == len(EDITS):
            del lines[at]
        else:
            lines.insert(draw.choice([at, at + 1]), lines[at])
    return "\n".join(lines)


def found(text: str, *, skims: bool, knows: bool) -> Checked:
    ruleset = parse(text, "dump", skim=EndpointRows.skim if skims else None)
    return check(ruleset, ProxyMode.IPTABLES, WANTED if knows else ())


@examples(40, 600)
@given(
    st.integers(0, 1 << 30),
    st.lists(st.integers(0, len(EDITS) + 1), max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_settled_chains_hide_no_finding(
    seed: int, edits: list[int], skims: bool, knows: bool
) -> None:
    text = edited(seed, edits)
    told = found(text, skims=skims, knows=knows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("analyzer.kubeproxy.check.facts.settled", lambda *_: {})
        assert found(text, skims=skims, knows=knows) == told


@pytest.mark.parametrize("skims", [False, True])
def test_every_chain_of_a_plain_dump_is_settled(skims: bool) -> None:
    skim = EndpointRows.skim if skims else None
    facts = DumpFacts(parse(PLAIN, "dump", skim=skim))
    drawn = {chain: list(ends.values()) for chain, ends in facts.settled.items()}
    chains = [name for name in facts.nat.chains if name.startswith("KUBE-SVC-")]
    assert sorted(drawn) == sorted(chains)
    assert sum(map(len, drawn.values())) == PLAIN.count("--to-destination")
    assert facts.chains("KUBE-SVC-", "KUBE-SEP-") == []


def test_what_is_settled_has_its_rules_all_the_same() -> None:
    facts = DumpFacts(parse(PLAIN, "dump"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("analyzer.kubeproxy.check.facts.settled", lambda *_: {})
        plain = DumpFacts(parse(PLAIN, "dump"))
    assert {name: [row.rule for row in facts.rows(name)] for name in facts.nat.chains} == {
        name: [row.rule for row in plain.rows(name)] for name in plain.nat.chains
    }
    assert facts.destinations == plain.destinations
    assert sum(1 for _ in facts.all_rows()) < sum(1 for _ in plain.all_rows())


def test_an_endpoint_of_two_service_ports_is_looked_at() -> None:
    first, second = (name for name in list(DumpFacts(parse(PLAIN, "d")).settled)[:2])
    (end, *_) = DumpFacts(parse(PLAIN, "d")).settled[first]
    text = re.sub(rf"(-A {second} .*-j )KUBE-SEP-\S+", rf"\1{end}", PLAIN, count=1)
    facts = DumpFacts(parse(text, "d"))
    assert not {first, second} & facts.settled.keys()
    assert end in facts.chains("KUBE-SEP-")
