"""Rulesets of nft in a namespace: what is loaded is what the dump says, and it is counted."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab.running import ROOT, in_lab

pytestmark = pytest.mark.lab

FIXTURES = sorted((ROOT / "fixtures" / "nft").glob("*-nftables/*/nft-*list-ruleset.*"))
READ = """
import json, sys
from pathlib import Path
from analyzer.parsers import nft_json, nft_text
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace, leave_host
from netns_lab.nft import Nft
from netns_lab.nft_rules import Nftables
leave_host()
def read(text, file):
    return (nft_json if text[0] == "{" else nft_text).parse(text, file)
def load(text):
    held = Namespace("node")
    try:
        return held, Nftables(held, read(text, "dump"))
    except LabError as error:
        print(json.dumps(str(error)))
        sys.exit()
"""
LOAD = """
held, backend = load(Path(sys.argv[1]).read_text())
print(json.dumps([Nft(held).run("list ruleset"), sorted(backend.counters().items())]))
"""


def loaded(path: Path) -> Any:
    return json.loads(in_lab(READ + LOAD, str(path)))


def words(text: str) -> list[str]:
    """Return the words in no order, as elements of a set have none."""
    return sorted(word.strip(",") for word in text.split())


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: "-".join(p.parts[-3:]))
def test_captured_rulesets_load_from_text_and_json(path: Path) -> None:
    listed, counted = loaded(path)
    text = path.with_name("nft-list-ruleset.txt").read_text()
    held, _, _ = listed.partition("table inet kubeodds-lab {")
    assert words(held) == words(re.sub(r'\s*comment "[^"]*"', "", text))
    assert held != listed
    assert counted == []


def test_a_thousand_services_load(captures: Path) -> None:
    path = captures / "1.36.2-nftables/scale-1000/nft-list-ruleset.txt.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    program = LOAD.replace("Path(sys.argv[1]).read_text()", "gzip.open(sys.argv[1], 'rt').read()")
    listed, _ = json.loads(in_lab(f"import gzip\n{READ}{program}", str(path)))
    assert listed.count("goto service-") == text.count("goto service-") > 1000


@pytest.mark.parametrize(
    "rule",
    [
        'iif "cni0" drop',
        'iif { "cni0", "wg0" } counter packets 5 bytes 600',
        'iif "lo" accept',
        "ip saddr @held update @held { ip saddr }",
    ],
)
def test_what_no_namespace_has_is_put_there(tmp_path: Path, rule: str) -> None:
    dump = tmp_path / "dump"
    dump.write_text(
        "table ip t {\nset held {\ntype ipv4_addr\nflags dynamic,timeout\ntimeout 3h\n"
        "elements = { 10.1.0.5 expires 1h2m, 10.1.0.6 timeout 2h expires 5s }\n}\n"
        f"chain c {{\ntype filter hook input priority 0; policy accept;\n{rule}\n}}\n}}\n"
    )
    listed, _ = loaded(dump)
    assert f"\t\t{rule}\n" in listed
    assert re.search(r"10\.1\.0\.5 expires 1h[12]m", listed)
    assert re.search(r"10\.1\.0\.6 timeout 2h expires [45]s", listed)


def test_a_set_whose_elements_were_merged_into_one_is_loaded_as_that(tmp_path: Path) -> None:
    """nft lists it in braces, and loads a set of one element as a comparison."""
    dump = tmp_path / "dump"
    rule = "ip saddr != { 192.0.2.0/24 } drop"
    dump.write_text(f"table ip t {{\nchain c {{\n{rule}\n}}\n}}\n")
    listed, _ = loaded(dump)
    assert "\t\tip saddr != 192.0.2.0/24 drop\n" in listed


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("jump nowhere", "nftables in node: Error: .*jump nowhere"),
        ('xt match "socket" accept', "dump:4: the lab loads only what it understands"),
    ],
)
def test_what_cannot_be_loaded_is_said(tmp_path: Path, rule: str, says: str) -> None:
    dump = tmp_path / "dump"
    head = "type filter hook input priority 0; policy accept;"
    dump.write_text(f"table ip t {{\nchain c {{\n{head}\n{rule}\n}}\n}}\n")
    said = loaded(dump)
    assert re.match(says, said), said


COUNT = """
import collections
from tests.support.lab.nodes import Asked, SOURCES, Wired
from tests.support.lab.random_rules import SERVICE
node = Wired()
backend = Nftables(node.namespace, read(sys.argv[1], "dump"))
seen = collections.Counter()
for device, source in SOURCES[4].items():
    for number in range(600):
        node.emit(Asked(device, source, SERVICE, (53, 80)[number % 2], ("udp", "tcp")[number % 2]))
        (out,) = node.seen()
        seen[str(out.destination), out.port] += 1
counted = {(str(ip_address(address)), port): n for (address, port), n in backend.counters().items()}
print(json.dumps([sorted(seen.items()), sorted(counted.items())]))
"""
SPREAD = """
table ip t {
    chain pre {
        type nat hook prerouting priority -100; policy accept;
        goto spread
    }
    chain out {
        type nat hook output priority -100; policy accept;
        goto spread
    }
    chain spread {
        th dport 80 return
        meta l4proto udp dnat ip to numgen random mod 3 map { 0 : 10.1.0.9 . 53, %s }
    }
}
"""


def test_each_new_flow_that_is_sent_elsewhere_is_counted_once() -> None:
    dump = SPREAD % "1 : 10.1.0.8 . 5353, 2 : 172.16.0.1 . 53"
    found = in_lab(f"from ipaddress import ip_address\n{READ}{COUNT}", dump)
    seen, counted = ({tuple(at): n for at, n in each} for each in json.loads(found))
    assert seen.pop(("10.2.3.4", 80)) == 900  # not sent elsewhere
    assert seen == counted
    assert len(counted) == 3
    assert sum(counted.values()) == 900
