from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError
from analyzer.kubeproxy.generate import iptables_save, services
from analyzer.model.diagnostics import Diagnostic
from analyzer.parsers import nft_text
from analyzer.parsers import survey as parsers_survey
from analyzer.parsers.iptables_save import parse
from analyzer.parsers.survey import survey, survey_any, well_known_target

#: More chains than are looked at one by one.
_MANY = iptables_save(list(services(30, endpoints=(3,))))


def dump(*rows: str) -> str:
    return "\n".join(
        ["*nat", ":PREROUTING ACCEPT [0:0]", ":A - [0:0]", ":B - [0:0]", *rows, "COMMIT", ""]
    )


def told(*rows: str) -> list[Diagnostic]:
    return list(survey(parse(dump(*rows), "dump")))


@pytest.mark.parametrize(
    ("row", "target"),
    [
        ("-A A -j B", "B"),
        ("-A A -s 10.0.0.0/8 ! -d 10.1.0.1/32 -i eth0 -p tcp -m tcp --dport 80 -j DROP", "DROP"),
        ('-A A -m comment --comment "ns/a:http -j X" -j B', "B"),
        ("-A A -m conntrack --ctstate INVALID,NEW -j DROP", "DROP"),
        ("-A A -m mark ! --mark 0x4000/0x4000 -j RETURN", "RETURN"),
        ("-A A -m addrtype --dst-type LOCAL -j B", "B"),
        ("-A A -j MARK --set-xmark 0x4000/0x4000", "MARK"),
        ("-A A -j MASQUERADE --random-fully", "MASQUERADE"),
        ("[1:60] -A A -j B", "B"),
        ("-A A -j DNAT --to-destination 10.0.0.1:80", "DNAT"),
        ("-A A -p tcp -m tcp --dport 64999 -m nfacct --nfacct-name  localhost -j B", "B"),
        ("-A A -m statistic --mode random --probability 0.50000000000 -j B", "B"),
        (
            "-A A -m recent --rcheck --seconds 10800 --reap --name B --mask 255.255.255.255 "
            "--rsource -j B",
            "B",
        ),
        ("-A A -p udp -j REJECT --reject-with icmp-port-unreachable", "REJECT"),
        ("-A A -m set ! --match-set cali40s:x src,dst -j DROP", "DROP"),
        ("-A A -p tcp -m multiport --dports 80,443,1000:2000 -j DROP", "DROP"),
        ("-A A -m comment --comment cali:x-y -i eth0 -g B", "B"),
        # Not plain: these have to be understood.
        ("-A A -m set --match-set x -j DROP", None),
        ("-A A -m multiport --dports 1:99999 -j DROP", None),
        ("-A A -m tcp --dport 123456 -j DROP", None),
        ("-A A -j MARK --set-xmark 0x4000", None),
        ("-A A -j MASQUERADE --to-ports 1-9", None),
        ("-A A -j DNAT --to-destination 10.0.0.256:80", None),
        ("-A A -j DNAT --to-destination 10.0.0.1:80-90", None),
        ("-A A -j DNAT --to-destination 10.0.0.1:80 --random", None),
        ("-A A -m tcp --dport 65536 -j DROP", None),
        ("-A A -m statistic --mode random --probability 1.5 -j B", None),
        ("-A A -m recent --rcheck --name B --rsource -j B", None),
        ("-A A -p udp -j REJECT --reject-with made-up", None),
        ("-A A -p tcp", None),
        (r'-A A -m comment --comment "a\"b" -j B', None),
    ],
)
def test_the_target_of_a_plain_row_is_told_at_a_glance(row: str, target: str | None) -> None:
    assert well_known_target(row) == target


def test_rules_that_are_understood_give_no_diagnostic() -> None:
    assert (
        told("-A PREROUTING -j A", "-A A -m statistic --mode random --probability 0.5 -j B") == []
    )


@pytest.mark.parametrize(
    ("row", "code", "named"),
    [
        ("-A A -m made-up --x -j DROP", "unknown-extension", "match made-up"),
        ("-A A -j HMARK --hmark-mod 2", "unknown-extension", "target HMARK"),
        ("-A A -j GONE", "missing-chain", "chain GONE of table nat"),
        ("-A A -g GONE", "missing-chain", "chain GONE of table nat"),
        ("-A A -j DNAT [unsupported revision]", "older-iptables", "target DNAT"),
    ],
)
def test_what_is_not_understood_is_told(row: str, code: str, named: str) -> None:
    (found,) = told("-A PREROUTING -j A", row)
    assert (found.code, found.line, found.partial) == (code, 6, True)
    assert found.message.startswith(named)


def test_an_empty_chain_is_told_if_its_program_always_fills_it() -> None:
    assert told("-A A -j B") == []
    ruleset = parse(dump("-A A -j B"), "dump")
    assert [each.code for each in survey(ruleset, filled=("B",))] == ["empty-chain"]
    assert [each.code for each in survey(ruleset, filled=("C",))] == []
    seen = survey_any(ruleset, {"nat": ["A"]}, ("B",))
    assert [each.code for each in seen] == ["empty-chain"]


def test_a_thing_is_told_once_with_its_first_line_and_its_number_of_rules() -> None:
    (found,) = told("-A A -j GONE", "-A A -j B", "-A B -j GONE")
    assert found.line == 5
    assert found.message.endswith("(2 rules)")


def test_of_very_many_missing_chains_a_few_are_named() -> None:
    assert len(told(*[f"-A A -j GONE{n}" for n in range(12)])) == 12
    found = told(*[f"-A A -j GONE{n}" for n in range(13)])
    assert len(found) == 4
    assert found[-1].message.startswith("10 more chains of table nat")
    assert found[-1].message.endswith("(10 rules)")


def test_only_the_chains_that_are_asked_for_are_looked_at() -> None:
    ruleset = parse(dump("-A A -j GONE", "-A B -j LOST"), "dump")
    assert [each.line for each in survey(ruleset, {"nat": ["B"]})] == [6]
    assert [each.line for each in survey(ruleset, {"nat": None, "filter": []})] == [5, 6]
    assert [each.line for each in survey_any(ruleset, {"nat": ["A"]})] == [5]


def test_a_ruleset_of_nft_is_looked_at_too() -> None:
    text = "table ip t {\n\tchain c {\n\t\tjump gone\n\t}\n}\n"
    ruleset = nft_text.parse(text, "dump")
    assert [each.code for each in survey_any(ruleset, {"ip t": ["c"]})] == ["missing-chain"]
    assert list(survey_any(ruleset, {"ip t": []})) == []


@given(st.randoms(use_true_random=False))
def test_of_many_chains_the_same_is_told(chance: random.Random) -> None:
    """Whether all is known is asked of them together first."""
    lines = _MANY.split("\n")
    for _ in range(chance.randint(0, 2)):
        at = chance.randrange(len(lines))
        match chance.randrange(5):
            case 0:
                lines[at] = lines[at].replace("-j KUBE-", "-j MISSING-")
            case 1:
                lines[at] = lines[at].replace(" -p tcp", " -m strange --x")
            case 2:
                del lines[at]
            case 3:
                lines[at] = lines[at].replace("0.5", '"0.5')
            case _:
                place = chance.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:place] + chance.choice('"!- \\x') + lines[at][place:]
    text = "\n".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsers_survey, "_MANY_CHAINS", 10**9)
        apart = found(text)
    assert found(text) == apart


def found(text: str) -> list[Diagnostic] | str:
    """Return what is told of a dump, or what is wrong with it."""
    try:
        return list(survey(parse(text, "dump")))
    except AnalyzerError as error:
        return str(error)
