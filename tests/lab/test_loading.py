"""Dumps that do not load as they stand: too many rules at once, rules that nobody knows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError
from analyzer.parsers.iptables_save import parse
from netns_lab.wanted import WantedRules
from tests.support.captures import ROOT
from tests.support.lab.ordinary import ordinary_user
from tests.support.lab.running import NFT_CASES, case, kubeodds, lab_run

EXAMPLE = ROOT / "examples/dump.txt"


@pytest.mark.deep
@pytest.mark.lab
def test_an_ordinary_user_loads_more_rules_than_one_message_holds() -> None:
    """iptables-nft sends a table as one message, and an ordinary user's socket has little room."""
    prefix = ordinary_user()
    given = case("1.36.2-iptables-nft/seed-dns")
    more = "".join(
        f"-A KUBE-SEP-{at % 7}MORE -s 10.9.{at // 250}.{at % 250}/32 "
        f'-m comment --comment "number {at}" -j KUBE-MARK-MASQ\n'
        for at in range(1500)
    )
    chains = "".join(f":KUBE-SEP-{at}MORE - [0:0]\n" for at in range(7))
    text = Path(given.dump).read_text()
    head, sign, nat = text.partition("*nat\n")
    nat = chains + nat.replace("COMMIT\n", more + "COMMIT\n", 1)
    words = ["-", "--service", "kube-dns:dns", "--dead", "10.1.0.1", "--flows", "500"]
    words += ["--format", "json"]
    done = kubeodds("lab", "run", *words, prefix=prefix, stdin=head + sign + nat)
    assert done.returncode == 0, done.stderr
    (measured,) = json.loads(done.stdout)["measurements"]
    assert (measured["unaccounted"], measured["counter_difference"]) == (0, 0)


@pytest.mark.lab
def test_what_cannot_be_loaded_is_named_and_left_out_only_when_asked(tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    odd = tmp_path / "odd.txt"
    odd.write_text(
        text.replace(
            "-A KUBE-SERVICES ",
            "-A KUBE-SERVICES -m nosuch --x 1 -j RETURN\n"
            "-A KUBE-SERVICES -d 192.0.2.9/32 -j KUBE-NOWHERE\n"
            # Understood, and nothing that any kernel takes: nat has no such target.
            "-A KUBE-SERVICES -d 192.0.2.9/32 -j REJECT --reject-with icmp-port-unreachable\n"
            "-A KUBE-SERVICES ",
            1,
        )
    )
    words = ["--objects", str(ROOT / "examples/objects.json"), "--node", "worker1"]
    words += ["--service", "default/app", "--flows", "500"]
    with pytest.raises(AnalyzerError, match="--lenient leaves such rules out, and names them"):
        WantedRules(parse(odd.read_text(), "dump"))
    status, found, errors = lab_run(str(odd), *words, "--lenient", "--strict", "--trace")
    assert (status, found["agrees"]) == (3, True), errors
    told = {each["code"]: each for each in found["diagnostics"]}
    line = odd.read_text().splitlines().index("-A KUBE-SERVICES -m nosuch --x 1 -j RETURN") + 1
    left_out = [e for e in found["diagnostics"] if e["code"] == "rule-left-out"]
    assert [each["line"] for each in left_out] == [line, line + 2]
    assert "'-m nosuch --x 1' is not understood" in left_out[0]["message"]
    assert "KUBE-NOWHERE" in told["missing-chain"]["message"]
    # The kernel numbers the rules that it holds.
    (trace,) = found["traces"]
    assert any("default/app cluster IP" in rule for rule in trace["matched"])


@pytest.mark.lab
def test_what_is_not_understood_of_nft_is_left_out_only_when_asked(tmp_path: Path) -> None:
    given = next(each for each in NFT_CASES if each.directory.match("*-nftables/*"))
    text = Path(given.dump).read_text()
    at = text.index("ct state", text.index("chain filter-forward"))
    odd = tmp_path / "odd.nft"
    unread, drops = "meta nosuch 1 drop", "meta l4proto udp drop"
    odd.write_text(f"{text[:at]}{unread}\n\t\t{drops}\n\t\t{text[at:]}")
    words = [str(odd), *given.given[1:], "--service", "kube-dns:dns", "--flows", "40"]
    done = kubeodds("lab", "run", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"and not '{unread}'; --lenient leaves such rules out" in done.stderr
    status, found, errors = lab_run(*words, "--lenient", "--trace")
    assert (status, found["agrees"]) == (0, True), (errors, found["traces"])
    assert f"this rule is not loaded: '{unread}' is not understood" in errors
    for each in found["measurements"]:
        assert (each["unaccounted"], each["ended_at"]) == (
            40,
            f"ip kube-proxy filter-forward: {drops}",
        )
    for trace in found["traces"]:
        assert trace["matched"][-1] == f"ip kube-proxy filter-forward: {drops}"


@pytest.mark.lab
def test_rules_of_other_programs_are_loaded_beside_and_predicted(tmp_path: Path) -> None:
    other = tmp_path / "other.nft"
    other.write_text(
        "table ip cni {\n\tchain f {\n"
        "\t\ttype filter hook forward priority filter; policy accept;\n"
        "\t\tip daddr 10.244.1.9 drop\n\t}\n}\n"
    )
    words = [str(EXAMPLE), "--objects", str(ROOT / "examples/objects.json"), "--node", "worker1"]
    words += ["--service", "default/app", "--flows", "1000"]
    status, found, errors = lab_run(*words, "--other-rules", str(other))
    assert (status, found["agrees"]) == (0, True), errors
    (measured,) = found["measurements"]
    gone = next(e for e in measured["endpoints"] if e["address"] == "10.244.1.9")
    assert (gone["landed"], gone["predicted"]["upper"]["value"]) == (0, 0.0)
    assert measured["unaccounted"] == gone["counted"] > 400


_ROWS = [row for row in EXAMPLE.read_text().splitlines() if row.startswith("-A ")]


@settings(max_examples=20)
@given(st.lists(st.sampled_from(sorted(set(_ROWS))), min_size=1, max_size=6, unique=True))
def test_the_line_that_is_refused_is_the_rule_that_is_left_out(rows: list[str]) -> None:
    """Naive: the text without these lines, the first of each."""
    wanted = WantedRules(parse(EXAMPLE.read_text(), "dump"))
    expected = wanted.text.split("\n")
    for row in rows:
        at = expected.index(row)
        assert wanted.leave_out(at + 1, "refused")
        del expected[at]
        assert wanted.text == "\n".join(expected)
    numbers = [rule.location.line for rule, _ in wanted.left_out]
    lines = EXAMPLE.read_text().split("\n")
    assert [lines[number - 1] for number in numbers] == rows
    sockaddrs = {row for row in wanted.text.split("\n") if "-j DNAT" in row}
    assert len(wanted.destinations) == len(sockaddrs)
    heads = [at for at, line in enumerate(expected, 1) if not line.startswith("-A")]
    assert not any(wanted.leave_out(at, "no rule") for at in heads)


def test_a_chain_that_rules_lead_to_and_nobody_has_is_made() -> None:
    text = EXAMPLE.read_text().replace("-j KUBE-MARK-MASQ", "-j KUBE-NOBODY")
    wanted = WantedRules(parse(text, "dump"))
    assert wanted.missing == {"nat": ["KUBE-NOBODY"]}
    assert len(re.findall(r"^:KUBE-NOBODY - ", wanted.text, re.MULTILINE)) == 1
    assert not WantedRules(parse(EXAMPLE.read_text(), "dump")).missing
