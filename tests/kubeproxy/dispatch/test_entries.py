"""A row of a known shape names the frontend that its rule names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy import names
from analyzer.kubeproxy.dispatch.entries import affinity, entries, every_entry
from analyzer.kubeproxy.generate import (
    FLAGS,
    mixed,
    node_name,
    proxy_config,
    render_rules,
    service_ports,
)
from analyzer.kubeproxy.rows.plain import PlainTable
from analyzer.model.iptables.rules import Table
from analyzer.parsers.iptables_save import parse
from analyzer.parsers.rows import RuleRows
from tests.support.effort import examples
from tests.support.layouts import PROMISED


def table_of(text: str) -> Table:
    return parse(text, "dump").tables["nat"]


def rules_of(table: Table, name: str) -> RuleRows:
    rules = table.chains[name].rules
    assert isinstance(rules, RuleRows)
    return rules


@st.composite
def tables(draw: st.DrawFn) -> Table:
    layout = draw(st.sampled_from(PROMISED))
    items = mixed(draw(st.integers(1, 12)), 2, (1, 2, 3))
    config = proxy_config(items, FLAGS, node=node_name(0), layout=layout, family=4)
    text = render_rules(service_ports(items, layout, 4), config)
    # What another program may have written into a row, or left out.
    old, new = draw(
        st.sampled_from(
            [
                ("", ""),
                (' cluster IP"', '"'),
                (" -m comment --comment", " -m wild --comment"),
                ("-A KUBE-SERVICES -d", "-A KUBE-SERVICES ! -d"),
                ("-m tcp --dport 80 ", "-m tcp --dport 80:81 "),
                ("-m tcp --dport 80 -j KUBE-SVC", "-m tcp --dport 80 -g KUBE-SVC"),
                ("/32 -p tcp", "/31 -p tcp"),
            ]
        )
    )
    return table_of(text.replace(old, new) if old else text)


@examples(20, 600)
@given(tables())
def test_a_row_is_read_as_its_rule_is(table: Table) -> None:
    rules = rules_of(table, names.SERVICES)
    found = 0
    for at, row in PlainTable(table).entries.items():
        assert [*every_entry(names.SERVICES, [row])] == [*entries(names.SERVICES, [rules[at]])]
        found += 1
    assert found <= len(rules)


@examples(20, 600)
@given(tables())
def test_affinity_is_told_by_rows_as_by_rules(table: Table) -> None:
    """Rules that were understood before are no rows: each is asked."""
    chains = {
        name: type(chain)(name, tuple(chain.rules), chain.policy)
        for name, chain in table.chains.items()
    }
    understood = Table(table.family, table.name, chains)
    for name in table.chains:
        if name.startswith(names.SERVICE_PREFIXES):
            assert affinity(table, name) == affinity(understood, name)


def test_most_rows_of_services_of_all_kinds_are_of_that_shape() -> None:
    items = mixed(60, 4, (1, 2, 3))
    config = proxy_config(items, FLAGS, node=node_name(0), layout=PROMISED[-1], family=4)
    table = table_of(render_rules(service_ports(items, PROMISED[-1], 4), config))
    rows = PlainTable(table).entries
    assert len(rows) == len(rules_of(table, names.SERVICES)) - 1  # but for that of NodePorts


def test_a_second_comment_takes_nothing_from_the_name_in_the_first() -> None:
    items = mixed(4, 2, (1,))
    config = proxy_config(items, FLAGS, node=node_name(0), layout=PROMISED[-1], family=4)
    text = render_rules(service_ports(items, PROMISED[-1], 4), config)
    more = text.replace(" -j KUBE-SVC", ' -m comment --comment "seen by ops" -j KUBE-SVC')
    found = [rules_of(table_of(each), names.SERVICES) for each in (text, more)]
    plain, doubled = ([*entries(names.SERVICES, rules)] for rules in found)
    assert plain == doubled
    assert plain
