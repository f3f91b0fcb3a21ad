"""What neither dump decides is the same in both only if rules of other programs are."""

from __future__ import annotations

import pytest

from analyzer.kubeproxy.diff.difference import Conclusion
from analyzer.kubeproxy.diff.others import of_others
from analyzer.parsers.formats import read_ruleset
from tests.support.comparing import compared
from tests.support.dumps import FILTER, dump, two_endpoints

PLAIN = dump(*two_endpoints())
IN_SET = "-A FORWARD -m set --match-set {} src -j "


def with_rules(*rules: str, head: str = ":FORWARD ACCEPT [0:0]") -> str:
    rows = "".join(f"{each}\n" for each in rules)
    return PLAIN + FILTER.replace(":FORWARD ACCEPT [0:0]\n", f"{head}\n{rows}")


@pytest.mark.parametrize(
    "rules",
    [
        [f"{IN_SET}DROP"],
        [f"{IN_SET}ACCEPT", "-A FORWARD -j DROP"],
        [f"{IN_SET}OTHERS", "-A OTHERS -j DROP"],
    ],
)
def test_dumps_that_ask_different_sets_may_differ(rules: list[str]) -> None:
    head = ":FORWARD ACCEPT [0:0]\n:OTHERS - [0:0]"
    one, other = (with_rules(*(r.format(s) for r in rules), head=head) for s in ("good", "bad"))
    found = compared(one, one)
    assert (found.alike, found.is_open, found.verdict) == (1, False, Conclusion.SAME)
    found = compared(one, other)
    assert (found.changes, found.alike, found.is_open) == ((), 1, True)
    assert found.verdict is Conclusion.UNKNOWN


def test_other_rules_make_no_difference_where_all_is_known() -> None:
    rule = "-A FORWARD -s 203.0.113.9/32 -j ACCEPT"
    found = compared(with_rules(), with_rules(rule))
    assert (found.alike, found.is_open, found.verdict) == (0, False, Conclusion.SAME)


def test_counters_and_comments_make_no_difference() -> None:
    bare, told = (
        read_ruleset(with_rules(rule).encode(), "dump")
        for rule in (
            "-A FORWARD -p tcp -j DROP",
            '[3:180] -A FORWARD -p tcp -m comment --comment "x" -j DROP',
        )
    )
    assert of_others([bare], "ip") == of_others([told], "ip") != ()
    assert of_others([bare], "ip6") == ()


def test_of_nft_the_tables_of_others_count_and_their_sets() -> None:
    def told(table: str, packets: int = 1, address: str = "192.0.2.1") -> tuple[str, ...]:
        text = f"""table ip {table} {{
            set s {{ type ipv4_addr; elements = {{ {address} }}; }}
            chain c {{ type filter hook forward priority 0; policy accept;
                ip saddr @s counter packets {packets} bytes 60 drop
            }}
        }}
        """
        return of_others([read_ruleset(text.encode(), "dump")], "ip")

    assert told("kube-proxy") == ()
    assert told("mine") == told("mine", packets=2)
    assert told("mine") != told("mine", address="192.0.2.2")
