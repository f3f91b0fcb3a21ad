"""The invariants are silent on clean dumps, and name the fault of every kind of broken one."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError
from analyzer.kubeproxy.check.findings import Checked
from analyzer.kubeproxy.check.invariants import INVARIANTS, check
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.model.cluster import Cluster
from analyzer.parsers.api_objects import decode
from analyzer.parsers.services import parse_services
from tests.support.captures import FIXTURES, Capture
from tests.support.check import (
    broken_affinity,
    broken_chains,
    broken_external,
    broken_frontends,
    broken_masquerade,
    broken_names,
    broken_objects,
    broken_reading,
)
from tests.support.check.editing import CHECK, DUAL, OLD, TWO_NODE, Kind
from tests.support.documents import rows
from tests.support.effort import examples
from tests.support.parsed_objects import parse_objects
from tests.support.reading import read_ruleset

KINDS = [
    *broken_reading.KINDS.all,
    *broken_chains.KINDS.all,
    *broken_names.KINDS.all,
    *broken_frontends.KINDS.all,
    *broken_masquerade.KINDS.all,
    *broken_external.KINDS.all,
    *broken_affinity.KINDS.all,
    *broken_objects.KINDS.all,
]
DUMPS = sorted(path for root in (FIXTURES, CHECK) for path in root.glob("*/*/ip*tables-*-save.txt"))
#: Of one node and each version that XLB, EXT or SVL are of.
POLICIES = [
    path
    for path in sorted(FIXTURES.glob("*/policies*/iptables-legacy-save.txt.gz"))
    if "@" not in path.parent.name
]
#: Of a node without the kubelet, whose rule KUBE-MARK-DROP needs; see the test of just that.
NO_KUBELET = {
    "1.20.2-iptables-legacy/dual-stack",
    "1.20.2-iptables-legacy/features",
    "1.20.2-iptables-legacy/features-masq-all",
    "1.20.2-iptables-nft/features",
}


def checked(
    text: str, objects: bytes | None = None, node: str | None = None, file: str = "dump.txt"
) -> Checked:
    ruleset = read_ruleset(text.encode(), file)
    given = [] if objects is None else [("objects.json", objects)]
    cluster = parse_objects(given) if given else Cluster()
    return check(
        ruleset,
        Recogniser(ruleset, cluster).view().mode,
        parse_services(decode(given), 4 if ruleset.family == "ip" else 6),
        node=node,
        zone=cluster.nodes[node].zone if node else None,
    )


def said(found: Checked) -> list[tuple[str, str, int | None]]:
    return [(each.code, each.message, each.line) for each in found.diagnostics]


def expected(capture: str) -> list[str]:
    return ["no-drop-mark"] if capture in NO_KUBELET else []


# --- clean dumps -------------------------------------------------------------


@pytest.mark.parametrize("path", DUMPS, ids=lambda p: "/".join(p.parts[-3:]))
@pytest.mark.parametrize("given", ["nothing", "objects", "objects and node"])
def test_nothing_is_found_in_what_kube_proxy_wrote(path: Path, given: str) -> None:
    capture = Capture(path)
    objects = None if given == "nothing" else capture.objects.read_bytes()
    node = capture.node if given == "objects and node" else None
    found = checked(path.read_text(), objects, node)
    assert [each.code for each in found.diagnostics] == expected(str(capture)), said(found)
    assert found.findings == len(found.diagnostics)


@pytest.mark.parametrize("path", POLICIES, ids=lambda p: "/".join(p.parts[-3:-1]))
def test_nothing_is_found_in_policies_of_any_version(path: Path) -> None:
    found = [each.code for each in checked(Capture(path).text).diagnostics]
    match path.parts[-3].split(".")[1]:
        case "22":  # chains of endpoints that are not ready, which 1.22.4 writes no more
            assert set(found) == {"unreachable-chain", "affinity-only"}
        case "24":
            assert found == ["no-drop-mark"]  # without the kubelet
        case _:
            assert found == []


def test_nothing_is_found_in_any_capture(captures: Path) -> None:
    """Without those of 5,000 and 10,000 Services, which take most of a minute."""
    seen = Counter[bool]()
    for path in sorted(captures.glob("*-iptables-*/*/ip*tables-*-save*.txt*")):
        capture = Capture(path)
        if path.parent.name in {"scale-5000", "scale-10000"}:
            continue
        for objects in (None, capture.objects.read_bytes()):
            ruleset = read_ruleset(path.read_bytes(), path.name)
            found = check(
                ruleset,
                ProxyMode.IPTABLES,
                parse_services(
                    decode([] if objects is None else [("o", objects)]),
                    4 if ruleset.family == "ip" else 6,
                ),
                node=capture.node,
                zone=capture.cluster.nodes[capture.node].zone,
            )
            codes = [each.code for each in found.diagnostics]
            assert codes == expected(str(capture)), (path, said(found))
            seen[not codes] += 1
    assert seen[True] > 100


# --- broken dumps ------------------------------------------------------------


@pytest.mark.alike
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_fault_is_named_and_nothing_else(kind: Kind) -> None:
    text = kind.base.read_text()
    broken = kind.edit(text)
    objects, node = None, None
    if kind.objects is not None:
        capture = Capture(kind.base)
        changed: Any = json.loads(capture.objects.read_bytes())
        kind.objects(changed)
        objects, node = json.dumps(changed).encode(), capture.node
    found = checked(broken, objects, node)
    lines = broken.split("\n")
    wanted = Counter(code for code, _ in kind.found)
    assert Counter(each.code for each in found.diagnostics) == wanted, said(found)
    for code, place in kind.found:
        at = [each.line for each in found.diagnostics if each.code == code]
        if place is None:
            assert at == [None], said(found)
        else:
            assert any(line and place in lines[line - 1] for line in at), (place, said(found))
    messages = "\n".join(each.message for each in found.diagnostics)
    for name in kind.names:
        assert name in messages, messages


def codes() -> set[str]:
    """Return the codes that stand in the sources of the invariants."""
    sources = Path(check.__code__.co_filename).parent.glob("*.py")
    lines = [line for source in sources for line in source.read_text().split("\n")]
    return {code for line in lines if "code=" in line for code in re.findall('"([a-z-]+)"', line)}


def test_there_is_a_broken_dump_for_every_code() -> None:
    """A code without one might never be given, or be given for nothing."""
    assert codes() - {code for kind in KINDS for code, _ in kind.found} == OTHERWISE_TESTED
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 30


def test_the_reference_explains_every_code() -> None:
    assert rows("Findings of `--check`").keys() == codes()


#: Codes that have tests of their own below.
OTHERWISE_TESTED = {
    "not-checked",
    "incomplete",
    "missing-table",
    "no-base-chain",
    "odd-dnat",
    "affinity-only",
}


def test_another_mode_is_not_called_clean() -> None:
    ipvs = "*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-LOAD-BALANCER - [0:0]\nCOMMIT\n"
    (found,) = checked(ipvs).diagnostics
    assert (found.code, found.line) == ("not-checked", None)
    assert "ipvs mode" in found.message
    (found,) = checked("*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n").diagnostics
    assert "no rules of kube-proxy" in found.message


def test_a_dump_without_base_chains_says_what_it_cannot_tell() -> None:
    rows = [line for line in TWO_NODE.read_text().split("\n") if "KUBE-" in line]
    nat = [r for r in rows if not r.startswith(("-A PRE", "-A OUT", "-A POST", "-A INP", "-A FOR"))]
    start = next(at for at, line in enumerate(nat) if line.startswith(":KUBE-MARK-MASQ"))
    found = checked("\n".join(["*nat", *nat[start:], "COMMIT", ""]))
    codes_found = [each.code for each in found.diagnostics]
    assert codes_found == [*["no-base-chain"] * 3, "missing-table"]
    assert "new flows from pods and from outside" in found.diagnostics[0].message


@pytest.mark.alike
@pytest.mark.parametrize("kept", range(100, len(DUAL.read_text().split("\n")) - 3, 7))
def test_of_a_dump_that_is_cut_off_nothing_is_called_lost(kept: int) -> None:
    """Wherever it ends, also in the middle of a row or of a chain."""
    text = "\n".join(DUAL.read_text().split("\n")[:kept])
    for cut in (text, text + "\n"):
        found = checked(cut)
        assert [each.code for each in found.diagnostics] == ["incomplete"], said(found)


def test_a_destination_that_is_no_address_and_port_is_named() -> None:
    text = DUAL.read_text().replace(
        "--to-destination 10.244.1.13:8080", "--to-destination 10.244.1.13-10.244.1.14"
    )
    found = checked(text).diagnostics
    assert [each.code for each in found] == ["odd-dnat"]
    assert "10.96.1.3:80/tcp (ds/ep-3)" in found[0].message


def test_an_endpoint_that_is_only_returned_to_is_named() -> None:
    lines = DUAL.read_text().split("\n")
    last = next(
        each for each in lines if "ds/affinity -> 10.244.2.25" in each and "--rcheck" not in each
    )
    lines.remove(last)
    codes = [each.code for each in checked("\n".join(lines)).diagnostics]
    assert sorted(codes) == ["affinity-only", "no-last-endpoint"]


def test_an_address_of_two_kinds_is_no_doubled_frontend() -> None:
    text = DUAL.read_text()
    external = next(line for line in text.split("\n") if "ds/affinity external IP" in line)
    twice = external.replace("external IP", "loadbalancer IP")
    assert checked(text.replace(external, f"{external}\n{twice}")).findings == 0


def test_many_findings_of_a_kind_are_told_once() -> None:
    text = DUAL.read_text().replace("-j DNAT", "-p udp -j DNAT").replace(" -m tcp -p udp", "")
    broken = text.replace("0.50000000000", "0.40000000000")
    found = checked(broken)
    wrong = [each for each in found.diagnostics if each.code == "wrong-probability"]
    assert len(wrong) == 1
    assert "more like it" in wrong[0].message
    assert found.findings > len(found.diagnostics)


@pytest.mark.parametrize(
    ("printed", "codes"),
    [
        ("0.33333333349", {"lost-draw"}),  # a third, of ten digits
        ("0.33332999982", {"lost-draw"}),  # a third, of five digits, as 1.14 wrote it
        ("0.33333", {"lost-draw"}),  # the same before iptables has read it
        ("0.33333200000", {"wrong-probability"}),
        ("0.50000000000", set()),
    ],
)
def test_a_probability_is_read_as_its_version_wrote_it(printed: str, codes: set[str]) -> None:
    text = OLD.read_text()
    assert "0.50000000000" in text
    broken = text.replace("0.50000000000", printed)
    assert {each.code for each in checked(broken).diagnostics} == codes


# --- whatever the dump -------------------------------------------------------

_LINES = DUAL.read_text().split("\n")


@examples(5, 60)
@given(st.lists(st.integers(0, len(_LINES) - 1), min_size=1, max_size=4, unique=True),
       st.integers(0, 2**32))  # fmt: skip
def test_no_edit_makes_the_check_fail(places: list[int], seed: int) -> None:
    """Lines lost, doubled, cut or mixed up: there is an answer, or an error with a place."""
    lines, drawn = list(_LINES), random.Random(seed)  # no secrets here
    for place in places:
        line = lines[place]
        lines[place] = drawn.choice(
            [
                "",
                f"{line}\n{line}",
                line[: drawn.randrange(len(line) + 1)],
                drawn.choice(_LINES),
                " ".join(drawn.sample(line.split(" "), len(line.split(" ")))),
            ]
        )
    try:
        found = checked("\n".join(lines))
    except AnalyzerError:
        return
    assert found.findings >= len(found.diagnostics)
    for each in found.diagnostics:
        assert each.message
        assert each.line is None or 1 <= each.line <= len(lines) + len(places)


def test_no_public_dump_makes_the_check_fail(corpus: Path) -> None:
    clean = set()
    for path in sorted(corpus.glob("*.ip*tables-save.txt")):
        try:
            ruleset = read_ruleset(path.read_bytes(), path.name)
            mode = Recogniser(ruleset, Cluster()).view().mode
            if not check(ruleset, mode).findings:
                clean.add(path.name[:3])
        except AnalyzerError:
            continue
    # Whole nodes of kubeadm and EKS, and a table of kube-proxy's own tests.
    assert {"007", "020", "070"} <= clean


def test_every_rule_is_missed_when_it_is_lost_but_for_these() -> None:
    unnoticed = []
    for at, line in enumerate(_LINES):
        text = "\n".join(_LINES[:at] + _LINES[at + 1 :])
        if (
            line.startswith("-A ")
            and not check(read_ruleset(text.encode(), "x"), ProxyMode.IPTABLES).findings
        ):
            unnoticed.append(line.partition(" -m ")[0] + " ... " + line.rpartition(" -j ")[2])
    assert unnoticed == [
        # Nothing stands in the chain that they lead to.
        "-A INPUT ... KUBE-EXTERNAL-SERVICES",
        "-A FORWARD ... KUBE-EXTERNAL-SERVICES",
        # The kubelet's, and what not every version and configuration writes.
        "-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 ... DROP",
        "-A KUBE-FORWARD ... DROP",
        "-A KUBE-FORWARD ... ACCEPT",
        # Rules of which nothing else speaks: the objects do, of the second.
        "-A KUBE-NODEPORTS -p tcp ... ACCEPT",
        "-A KUBE-SERVICES -d 10.96.2.9/32 -p tcp ... REJECT --reject-with icmp-port-unreachable",
        # They count, no more.
        "-A KUBE-FW-GN2YQJ2XERCX5Q77 ... -A KUBE-FW-GN2YQJ2XERCX5Q77 -m comment --comment "
        '"other traffic to ds/lb-local will be dropped by KUBE-PROXY-FIREWALL"',
        "-A KUBE-NODEPORTS -d 127.0.0.0/8 -p tcp ... KUBE-EXT-EMDR7L2MNAG3KY74",
        "-A KUBE-NODEPORTS -d 127.0.0.0/8 -p tcp ... KUBE-EXT-GN2YQJ2XERCX5Q77",
        # The first draw of an endpoint that the local policy draws too: the objects tell.
        "-A KUBE-SVC-GN2YQJ2XERCX5Q77 ... KUBE-SEP-QTHWXF5CCNQL4M53",
    ]


def test_every_invariant_has_a_line_in_the_table() -> None:
    folder = Path(check.__code__.co_filename).parent
    support = {"__init__", "facts", "findings", "invariants"}
    support |= {"probabilities", "settled", "usual"}
    assert {path.stem for path in folder.glob("*.py")} - support == set(INVARIANTS)
