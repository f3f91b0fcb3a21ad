from __future__ import annotations

import pytest

from analyzer.errors import InputError
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.nft import expressions as e
from analyzer.model.nft.ruleset import Chain, NftRuleset, Table
from analyzer.parsers.nft_text import parse, sniff

BASE = "type filter hook input priority 0; policy accept;"


def table(*blocks: str, head: str = "table ip t") -> Table:
    (found,) = ruleset(*blocks, head=head).tables.values()
    return found


def ruleset(*blocks: str, head: str = "table ip t") -> NftRuleset:
    return parse(f"{head} {{\n{''.join(blocks)}}}\n", "dump")


def chain(*lines: str, name: str = "c") -> str:
    rows = "".join(f"\t\t{line}\n" for line in lines)
    return f"\tchain {name} {{\n{rows}\t}}\n"


def only(*lines: str, head: str = "table ip t") -> Chain:
    return table(chain(*lines), head=head).chains["c"]


def codes(found: NftRuleset) -> list[str]:
    return [each.code for each in found.diagnostics]


@pytest.mark.parametrize(
    ("text", "is_nft"),
    [
        ("table ip nat {\n}\n", True),
        ("table nat {\n", True),
        ("$ nft list ruleset\n  table inet fw {\n", True),
        ("table socket {\n", True),
        ("*nat\n", False),
        ("tables are here {\n", False),
        ('{"nftables": []}', False),
    ],
)
def test_a_line_that_begins_a_table_tells_the_format(text: str, is_nft: bool) -> None:
    assert sniff(text) is is_nft


def test_a_base_chain_says_type_hook_priority_and_policy() -> None:
    found = only("type nat hook prerouting priority dstnat - 10; policy drop;", "accept")
    assert (found.type, found.hook) == ("nat", "prerouting")
    assert (found.priority, found.policy) == (-110, "drop")
    assert [rule.statements for rule in found.rules] == [(e.Accept(),)]


def test_a_base_chain_without_a_policy_accepts() -> None:
    assert only("type filter hook input priority 0;").policy == "accept"
    assert only("accept").policy is None


@pytest.mark.parametrize(
    ("devices", "want"),
    [('device "eth0"', ("eth0",)), ('devices = { "eth0", "eth1" }', ("eth0", "eth1"))],
)
def test_an_ingress_hook_names_its_devices(devices: str, want: tuple[str, ...]) -> None:
    found = only(
        f"type filter hook ingress {devices} priority filter; policy accept;",
        head="table netdev t",
    )
    assert (found.devices, found.priority) == (want, 0)


def test_a_priority_that_is_not_known_is_told() -> None:
    found = ruleset(chain("type filter hook input priority later; policy accept;"))
    assert [(each.code, each.line) for each in found.diagnostics] == [("unknown-priority", 3)]
    assert found.tables["ip", "t"].chains["c"].priority is None


def test_a_hook_that_is_not_understood_is_told() -> None:
    assert codes(ruleset(chain("type filter hook input at 5;"))) == ["unknown-hook"]


def test_a_rule_keeps_its_line_its_text_and_its_place() -> None:
    (first, second) = only(BASE, "tcp dport 80 accept", 'drop comment "why"').rules
    assert (first.location.line, second.location.line) == (4, 5)
    assert (first.location.table, first.chain) == ("ip t", "c")
    assert first.raw == "tcp dport 80 accept"
    assert (second.statements, second.comment) == ((e.Drop(),), "why")


def test_rules_are_counted_without_being_understood() -> None:
    found = only(BASE, "nonsense here", "accept")
    assert len(found.rules) == 2
    assert isinstance(found.rules[0].statements[0], e.Unknown)


def test_what_iptables_nft_wrote_may_hold_what_nft_cannot_print() -> None:
    of_iptables = only("tcp dport 80 ", head="table ip nat")
    own = only("tcp dport 80 ", head="table inet own")
    assert len(of_iptables.rules[0].statements) == 2
    assert len(own.rules[0].statements) == 1


def test_a_set_that_is_not_understood_may_hold_anything() -> None:
    block = "\tset s {\n\t\ttype ipv4_addr\n\t\tcolour green\n\t}\n"
    (element,) = table(block).sets["s"].elements
    assert isinstance(element.key, e.Unknown)


def test_sets_maps_and_objects_are_read() -> None:
    found = table(
        "\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 10.0.0.1 }\n\t}\n",
        "\tmap m {\n\t\ttype ipv4_addr : verdict\n\t}\n",
        "\tcounter hits {\n\t\tpackets 3 bytes 180\n\t}\n",
        "\tct timeout odd {\n\t\tprotocol tcp;\n\t}\n",
        "\tflowtable f {\n\t\thook ingress priority filter\n\t\tdevices = { eth0 }\n\t}\n",
    )
    assert found.sets.keys() == {"s", "m"}
    assert found.sets["m"].value == ("verdict",)
    assert found.objects["counter", "hits"].properties == (("packets", 3), ("bytes", 180))
    assert found.objects["ct timeout", "odd"].properties == (("text", "protocol tcp"),)
    assert found.flowtables["f"].devices == ("eth0",)


def test_flags_and_comment_of_a_table_are_read() -> None:
    found = table('\tcomment "mine"\n', "\tflags dormant,owner\n")
    assert (found.comment, found.flags) == ("mine", ("dormant", "owner"))


def test_of_what_is_declared_twice_the_first_is_read() -> None:
    found = ruleset(chain("accept"), chain("drop"))
    assert codes(found) == ["declared-twice"]
    (rule,) = found.tables["ip", "t"].chains["c"].rules
    assert rule.statements == (e.Accept(),)


def test_a_block_of_no_known_kind_is_told() -> None:
    assert codes(ruleset("\twidget w {\n\t\tx\n\t}\n")) == ["unknown-block"]


def test_a_table_that_comes_twice_is_read_once() -> None:
    one = f"table ip t {{\n{chain('accept')}}}\n"
    found = parse(one + one.replace("accept", "drop"), "dump")
    assert codes(found) == ["two-dumps"]
    assert found.rules == 1


def test_a_table_that_is_cut_off_is_told_and_not_complete() -> None:
    found = parse(f"table ip t {{\n{chain('accept')}", "dump")
    told: Diagnostic
    (told,) = found.diagnostics
    assert (told.code, told.line, told.partial) == ("cut-off", 1, True)
    assert not found.tables["ip", "t"].complete


def test_lines_that_belong_to_no_table_are_told_once() -> None:
    found = parse(
        f"$ nft list ruleset\n# a comment\ntable ip t {{\n{chain('accept')}}}\n$\n", "dump"
    )
    (told,) = found.diagnostics
    assert (told.code, told.line) == ("noise", 1)
    assert told.message.endswith("(and 1 more)")


def test_text_without_a_table_is_refused() -> None:
    with pytest.raises(InputError, match=r"^dump: it contains no nft table"):
        parse("# nothing\n", "dump")
