"""The output of ``ipset save``: each line is read, or named with its place."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError, InputError, ParseError
from analyzer.model.ipsets import IpsetEntry, Opaque, PortKey
from analyzer.parsers.ipset_save import parse_ipsets

SAVED = """\
create np hash:net,port family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x0ba66a5f
add np 10.0.0.0/8,tcp:81 comment "web, of \\"all\\"" packets 7 bytes 9
add np 10.1.0.0/16,udp:53 nomatch
add np 1.2.3.4,vrrp:0 timeout 12
create six hash:net family inet6 hashsize 1024 maxelem 65536 skbinfo
add six ::1 skbmark 0x12/0xff
create list list:set size 8
add list np
"""


def test_each_entry_is_read_with_what_it_holds() -> None:
    sets = parse_ipsets(SAVED.encode(), "sets")
    ten, web = (0x0A000000, 0x0AFFFFFF), PortKey("tcp", 81)
    assert [*sets] == ["np", "six", "list"]
    assert sets["np"].entries == (
        IpsetEntry((ten, web), (8,)),
        IpsetEntry(((0x0A010000, 0x0A01FFFF), PortKey("udp", 53)), (16,), nomatch=True),
        IpsetEntry(((0x01020304, 0x01020304), Opaque("vrrp:0")), (32,), fades=True),
    )
    assert sets["six"].version == 6
    assert sets["six"].entries == (IpsetEntry(((1, 1),), (128,)),)
    assert sets["list"].entries == (IpsetEntry(("np",)),)


def test_a_set_of_a_type_that_is_not_known_is_kept_and_not_understood() -> None:
    for head in ("create x hash:ip,colour", "create x hash:ip shiny 7"):
        sets = parse_ipsets(f"{head}\nadd x whatever\n".encode(), "sets")
        assert not sets["x"].understood
        assert sets["x"].entries == ()


@pytest.mark.parametrize(
    ("line", "column", "said"),
    [
        ("-A x 1", 1, "create or add"),
        ("create a hash:ip", 8, "not created before"),
        ("create", 7, "the name of a set"),
        ("create b ip", 10, "type of a set"),
        ("create b hash:ip family inet7", 25, "inet or inet6"),
        ("create b hash:ip netmask 33", 26, "a value of netmask"),
        ("add b 1.2.3.4", 5, "created before"),
        ("add a", 6, "an entry"),
        ("add a 1.2.3.4,tcp:80", 7, "an entry of hash:ip"),
        ("add a ::1", 7, "an address of IPv4"),
        ("add a 1.2.3.4 shiny", 15, "an option of an entry"),
        ("add a 1.2.3.4 timeout", 22, "what timeout is"),
        ("add p 70000", 7, "a port"),
        ("add p tcp", 7, "a port"),
        ('add a 1.2.3.4 comment "open', 23, "closing quote"),
    ],
)
def test_a_line_that_is_none_is_named_with_its_place(line: str, column: int, said: str) -> None:
    text = f"create a hash:ip\ncreate p bitmap:port range 0-1024\n{line}\n"
    with pytest.raises(ParseError) as error:
        parse_ipsets(text.encode(), "sets")
    assert str(error.value).startswith(f"sets:3:{column}: ")
    assert said in error.value.message


@pytest.mark.parametrize("text", ["", "# nothing\n\n"])
def test_a_file_without_sets_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected the output of `ipset save`"):
        parse_ipsets(text.encode(), "sets")


@given(st.text() | st.lists(st.sampled_from(SAVED.split()), max_size=30).map(" ".join))
def test_whatever_is_given_it_is_read_or_refused(text: str) -> None:
    for start in ("", SAVED):
        with suppress(AnalyzerError):
            assert parse_ipsets((start + text).encode("utf-8", "surrogatepass"), "sets")
