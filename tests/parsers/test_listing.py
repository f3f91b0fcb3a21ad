"""Listings of iptables: what they tell is what the rules are, what they do not tell is unknown."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError, InputError
from analyzer.kubeproxy.generate import RulesLayout
from analyzer.model.diagnostics import Severity
from analyzer.model.iptables.matches import (
    MatchComment,
    MatchDestination,
    MatchInInterface,
    MatchMark,
    MatchNot,
    MatchProtocol,
    MatchTcp,
    MatchUnknown,
)
from analyzer.model.iptables.options import Masked, Option, Range
from analyzer.model.iptables.rules import LOST_ROWS, Rule, Ruleset, Table
from analyzer.model.iptables.targets import Dnat, Goto, Jump, NfLog, TargetUnknown
from analyzer.model.value import replace
from analyzer.parsers import iptables_save
from analyzer.parsers.listed_rule import save_row
from analyzer.parsers.listing import parse
from analyzer.parsers.xt.rule import UNREAD
from tests.support.captures import FIXTURES
from tests.support.clusters import GeneratedCluster, clusters
from tests.support.effort import examples
from tests.support.listings import listing_of, rules_of
from tests.support.naive.table import extremes
from tests.support.strategies.iptables_walkable import DEAD, walked_tables

HEAD = " pkts bytes target     prot opt in     out     source               destination         \n"
BASE = "".join(
    f"Chain {name} (policy ACCEPT 0 packets, 0 bytes)\n{HEAD}\n"
    for name in ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING")
)
ANY = "--  *      *       0.0.0.0/0            0.0.0.0/0"


@pytest.mark.parametrize(
    ("printed", "prefix"),
    [
        (r'"\""', '"'),
        (r'"; \' "', "; ' "),
        ("plain-1", "plain-1"),
        (r'"a\" nflog-group 5"', 'a" nflog-group 5'),
    ],
)
def test_the_prefix_of_nflog_is_listed_as_it_is_saved(printed: str, prefix: str) -> None:
    row = f"0 0 NFLOG 0 {ANY} nflog-prefix {printed} nflog-group 7"
    assert rule(row).target == NfLog(prefix=prefix, group=7)


GOOD = listing_of(
    iptables_save.parse(
        (FIXTURES / "1.36.2-iptables-legacy/two-node/iptables-legacy-save.txt").read_text(), "dump"
    ).tables["nat"]
).encode()


def nat(*rows: str, references: int = 0) -> str:
    return BASE + f"Chain X ({references} references)\n{HEAD}" + "".join(f"{r}\n" for r in rows)


def rule(row: str) -> Rule:
    (found,) = parse(nat(row), "listing").tables["nat"].chains["X"].rules
    return found


def codes(ruleset: Ruleset) -> list[str]:
    return [each.code for each in ruleset.diagnostics if each.severity is not Severity.INFO]


def test_columns_and_details_are_those_of_the_rule() -> None:
    found = rule(
        "    3   180 Y          6    --  cali+  *      !10.0.0.0/8           10.1.0.1             "
        "/* a b */ tcp dpt:!53 mark match ! 0x1/0x3"
    )
    assert MatchInInterface("cali+") in found.matches
    assert found.matches[-3:] == (
        MatchComment("a b"),
        MatchTcp(destination_port=Option(Range(53, 53), negated=True)),
        MatchNot(MatchMark(Masked(1, 3))),
    )
    assert MatchProtocol("tcp") in found.matches
    assert any(isinstance(match, MatchDestination) for match in found.matches)
    assert (found.target, found.counters) == (Jump("Y"), (3, 180))


def test_rounded_counters_are_no_counters() -> None:
    assert rule(f" 901K   54M Y          0    {ANY}").counters is None


def test_goto_is_told_from_jump() -> None:
    assert rule(f"    0     0 Y          0    {ANY}            [goto] ").target == Goto("Y")


@pytest.mark.parametrize("protocol", ["tcp  ", "6    "])
def test_protocols_are_told_by_name_and_number(protocol: str) -> None:
    assert rule(f"    0     0 Y          {protocol}{ANY}").matches == (MatchProtocol("tcp"),)


def test_a_row_without_a_target_is_a_counter() -> None:
    assert rule(f"    0     0            0    {ANY}").target is None


@pytest.mark.parametrize(
    "row",
    [
        f"    0     0 Y          0    {ANY}            u32 0x0&0x1=0x1",
        # Who has read "owner GID match 5" alone has taken too few flows.
        f"    0     0 Y          0    {ANY}            owner GID match 5 incl. suppl. groups",
        # The one comment of this rule, or two of them and a match.
        f"    0     0 Y          0    {ANY}            /* a */ mark match 0x1 /* b */",
        "    0     0 Y          tcp  --  *      *       node1                0.0.0.0/0",
        f"    0     0 Y          tcp  {ANY}            tcp dpt:domain",
    ],
)
def test_what_a_listing_does_not_tell_is_unknown_and_is_said(row: str) -> None:
    ruleset = parse(nat(row), "listing")
    (found,) = ruleset.tables["nat"].chains["X"].rules
    assert found.target == Jump("Y")
    assert {type(match) for match in found.matches} <= {MatchUnknown, MatchProtocol}
    assert MatchUnknown in {type(match) for match in found.matches}
    assert codes(ruleset) == ["unread-listing"]


def test_a_target_whose_words_are_lost_is_unknown() -> None:
    found = rule(f"    0     0 TEE        0    {ANY}            TEE gw:10.0.0.1")
    assert isinstance(found.target, TargetUnknown)


def test_where_dnat_sends_to_is_told_behind_what_nobody_reads() -> None:
    found = rule(f"    0     0 DNAT       6    {ANY}            u32 0x0=1 to:10.0.0.1:80")
    assert found.target == DEAD
    assert any(isinstance(match, MatchUnknown) for match in found.matches)


@pytest.mark.parametrize("head", ["target     prot opt source               destination\n", ""])
def test_a_listing_without_devices_is_refused_and_says_why(head: str) -> None:
    text = f"Chain PREROUTING (policy ACCEPT)\n{head or 'num  target prot opt source destination'}"
    with pytest.raises(InputError, match="without -v, which leaves out the devices"):
        parse(f"{text}\n", "listing")


def test_rules_that_are_missing_show_in_the_references() -> None:
    one = f"    0     0 KUBE-SEP-A  0    {ANY}\n"
    text = nat(one.rstrip("\n")) + f"\nChain KUBE-SEP-A (2 references)\n{HEAD}"
    ruleset = parse(text, "listing")
    assert codes(ruleset) == ["incomplete-listing"]
    assert not ruleset.tables["nat"].complete
    # Behind what is shown there may be more.
    assert len(ruleset.tables["nat"].chains["PREROUTING"].rules) == 1


def test_an_endpoint_that_comes_last_without_its_dnat_is_cut_off() -> None:
    row = f"    0     0 KUBE-SEP-A  0    {ANY}"
    last = f"\nChain KUBE-SEP-A (1 references)\n{HEAD}"
    cut = parse(nat(row) + last, "listing").tables["nat"]
    assert len(cut.chains["KUBE-SEP-A"].rules) == 1
    dnat = f"    0     0 DNAT       6    {ANY}            tcp to:10.0.0.1:80\n"
    whole = parse(nat(row) + last + dnat, "listing").tables["nat"]
    (found,) = whole.chains["KUBE-SEP-A"].rules
    assert isinstance(found.target, Dnat)


def test_a_last_line_without_an_end_is_left_out() -> None:
    text = nat(f"    0     0 Y          0    {ANY}")
    ruleset = parse(text.rstrip("\n"), "listing")
    assert "cut-off" in codes(ruleset)
    assert not ruleset.tables["nat"].complete


def test_tables_that_follow_each_other_are_told_apart() -> None:
    row = f"    0     0 X          0    {ANY}"
    filters = "".join(
        f"Chain {name} (policy DROP 0 packets, 0 bytes)\n{HEAD}\n"
        for name in ("INPUT", "FORWARD", "OUTPUT")
    )
    ours = f"Chain X (0 references)\n{HEAD}{row.replace('X', 'Y')}\n\n"
    for text in (nat(row, references=1) + "\n" + filters + ours, filters + ours + nat()):
        found = parse(text, "listing").tables
        assert set(found) == {"nat", "filter"}
        assert found["filter"].chains["INPUT"].policy == "DROP"
        assert found["nat"].chains["INPUT"].policy == "ACCEPT"


def test_the_command_before_a_listing_names_its_table() -> None:
    text = f"$ sudo iptables -t mangle -nvL X\nChain X (0 references)\n{HEAD}"
    assert set(parse(text, "listing").tables) == {"mangle"}


def test_a_count_of_rules_behind_a_listing_tells_whether_it_is_whole() -> None:
    row = f"    0     0 Y          0    {ANY}"
    for count, wanted in ((1, []), (2, ["incomplete-listing"])):
        text = f"{nat(row)}=======\nTotal Number of Rules: {count}\n"
        assert codes(parse(text, "listing")) == wanted


def test_lines_that_are_no_rows_stand_for_rules_that_nobody_knows() -> None:
    ruleset = parse(nat("something else"), "listing")
    assert codes(ruleset) == ["noise"]
    assert len(ruleset.tables["nat"].chains["X"].rules) == 1


def same(listed: Ruleset, dump: Ruleset) -> None:
    """The tables of both have the same rules."""
    for name, table in dump.tables.items():
        assert rules_of(listed.tables[name].chains.values()) == rules_of(table.chains.values())
        assert listed.tables[name].complete


@pytest.mark.parametrize("layout", RulesLayout)
def test_a_listing_of_what_kube_proxy_writes_tells_all_of_it(layout: RulesLayout) -> None:
    @examples(3, 40)
    @given(clusters(layout))
    def told(cluster: GeneratedCluster) -> None:
        dump = iptables_save.parse(cluster.dump, "dump")
        text = "\n".join(listing_of(table) for table in dump.tables.values())
        found = parse(text, "listing")
        assert UNREAD not in "".join(
            each.raw for table in found.tables.values() for c in table.chains.values()
            for each in c.rules
        )  # fmt: skip
        # 1.22.0 to 1.22.3 look up endpoints that are not ready, and then draw none of them: in a
        # listing, which does not say where it ends, that looks like rows that were cut off.
        rules = (r for t in found.tables.values() for c in t.chains.values() for r in c.rules)
        assume(layout is not RulesLayout.V1_22 or not any(LOST_ROWS in rule.raw for rule in rules))
        same(found, dump)

    told()


def test_a_listing_of_a_capture_tells_all_of_it() -> None:
    path = FIXTURES / "1.36.2-iptables-legacy" / "two-node" / "iptables-legacy-save.txt"
    dump = iptables_save.parse(path.read_text(), "dump")
    same(parse("\n".join(map(listing_of, dump.tables.values())), "listing"), dump)


@examples(30, 2_000)
@given(walked_tables())
def test_bounds_of_a_listing_hold_those_of_the_rules(table: Table) -> None:
    """What an adversary can bring about with the rules, he can with the listing of them."""
    chains = {name: replace(chain, policy="ACCEPT") for name, chain in table.chains.items()}
    text = listing_of(replace(table, chains=chains))
    found = parse(text, "listing", "nat").tables["nat"]
    event = lambda end: end.target == DEAD  # noqa: E731  # for two calls
    low, high = extremes(table, "A", event)
    lower, upper = extremes(found, "A", event)
    assert lower <= low <= high <= upper
    unknown = "u32" in text or "TEE" in text
    assert unknown or (lower, upper) == (low, high)


@examples(30, 2_000)
@given(st.data())
def test_any_listing_is_read_or_refused_with_its_place(data: st.DataObject) -> None:
    """Letters of a good one changed, taken out and doubled."""
    text = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(text) - 2))
        text[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b"x", b"!", b" ", b"\n", b'"', b"/*", b"*/", b"9", b"\\", b":"])
        )
    with suppress(AnalyzerError):
        found = parse(text.decode(), "listing")
        for table in found.tables.values():
            for chain in table.chains.values():
                assert len([*chain.rules]) == len(chain.rules)


def test_a_line_of_prose_is_no_row() -> None:
    assert save_row("X", "the rules of this node follow", numbered=False) is None
