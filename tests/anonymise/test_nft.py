"""Rulesets of nft: whatever they hold reads back, with none of the names that it had."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.anonymise import nft
from analyzer.anonymise.naming import Naming
from analyzer.anonymise.nft_names import chain_name, set_name
from analyzer.anonymise.nft_values import UNKNOWN, TableOf, renamed_statement
from analyzer.kubeproxy.names import nft_endpoint_name, nft_service_name
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.value import replace
from analyzer.parsers import nft_json, nft_text
from analyzer.parsers.nft import statements
from tests.support.effort import examples
from tests.support.strategies.nft_rules import STATEMENTS, rulesets

SALT = b"s" * 16


@given(rulesets(), st.booleans())
@examples(40, 2000)
def test_a_ruleset_reads_back_with_as_many_chains_and_rules(
    ruleset: NftRuleset, as_json: bool
) -> None:
    naming = Naming(SALT)
    given_ruleset = replace(ruleset, input_format="nft-json" if as_json else "nft")
    text = nft.renamed(naming, given_ruleset)
    found = (nft_json if as_json else nft_text).parse(text, "made")
    assert len(found.tables) == len(ruleset.tables)
    assert found.rules == ruleset.rules
    pairs = zip(ruleset.tables.values(), found.tables.values(), strict=True)
    for old, new in pairs:
        assert (len(old.chains), len(old.sets)) == (len(new.chains), len(new.sets))
        assert sorted(str(each.hook) for each in old.chains.values()) == sorted(
            str(each.hook) for each in new.chains.values()
        )
        assert old.complete == new.complete


@given(rulesets())
@examples(40, 2000)
def test_no_long_name_is_left(ruleset: NftRuleset) -> None:
    naming = Naming(SALT)
    text = nft.renamed(naming, ruleset)
    words = set(re.findall(r"[\w/.-]+", text))
    names = {name for _, name in ruleset.tables if len(name) > 6}
    for table in ruleset.tables.values():
        names |= {name for name in (*table.chains, *table.sets) if len(name) > 6}
    usual = {"filter", "postrouting", "prerouting", "forward", "mangle"}
    assert not (names - usual) & words


@pytest.mark.parametrize("kind", list(STATEMENTS), ids=lambda k: k.__name__)
@given(data=st.data())
@examples(6, 300)
def test_a_statement_stays_of_its_kind_or_is_not_understood(kind: type, data: Any) -> None:
    value = data.draw(STATEMENTS[kind])
    made = renamed_statement(Naming(SALT), TableOf("inet", "t"), value)
    assert isinstance(made, kind) or made == UNKNOWN
    found, _ = statements.from_text(statements.write(made), "inet")
    assert found == (made,)


def test_an_object_that_is_not_understood_is_one_that_is_not() -> None:
    source = "table ip t {\n\tcounter acme {\n\t\tacme 0 bytes 0\n\t}\n}\n"
    made = nft.renamed(Naming(SALT), nft_text.parse(source, "made"))
    (table,) = nft_text.parse(made, "made").tables.values()
    (found,) = table.objects.values()
    assert found.kind == "counter"
    assert found.properties == (("text", "-removed"),)


def test_names_of_kube_proxy_are_hashed_anew() -> None:
    naming = Naming(SALT)
    service = naming.names.service_port("shop/web:http")
    place = naming.names.endpoint_text("10.0.0.7:80")
    assert service is not None
    assert place is not None
    old, new = nft_service_name("shop/web:http", "tcp"), nft_service_name(service, "tcp")
    for kind in ("service", "external", "firewall", "local"):
        assert chain_name(naming, "kube-proxy", f"{kind}-{old}") == f"{kind}-{new}"
    end = nft_endpoint_name("shop/web:http", "tcp", "10.0.0.7:80")
    assert set_name(naming, "kube-proxy", f"affinity-{end}") == "affinity-" + nft_endpoint_name(
        service, "tcp", place
    )
    assert chain_name(naming, "kube-proxy", "nat-output") == "nat-output"


def test_ipv6_endpoints_too() -> None:
    naming = Naming(SALT)
    service, place = naming.names.service_port("a/b"), naming.names.endpoint_text("[fd00::7]:80")
    assert service is not None
    assert place is not None
    old = "endpoint-" + nft_endpoint_name("a/b", "tcp", "[fd00::7]:80")
    assert chain_name(naming, "kube-proxy", old) == "endpoint-" + nft_endpoint_name(
        service, "tcp", place
    )


def test_a_wrong_hash_stays_one() -> None:
    naming = Naming(SALT)
    new = chain_name(naming, "kube-proxy", "service-AAAAAAAA-shop/web/tcp/")
    service = naming.names.service_port("shop/web")
    assert service is not None
    assert new != "service-" + nft_service_name(service, "tcp")
    assert new.partition("-")[2].partition("-")[2] == nft_service_name(service, "tcp")[9:]


@pytest.mark.parametrize("name", ["acme", "service-acme", "endpoint-AAAAAAAA-a/b/tcp/x__acme/80"])
def test_what_kube_proxy_would_not_write_goes(name: str) -> None:
    assert "acme" not in chain_name(Naming(SALT), "kube-proxy", name)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("ip saddr 10.0.0.0-10.0.0.2 drop", "ip saddr {"),
        ("ip saddr & 255.255.255.0 == 10.0.0.0 drop", "ip saddr & 255.255.255.0 =="),
        ("@nh,96,32 167772161 drop", "@nh,96,32"),
        ('iifname "acme0" drop', 'meta iifname "ac'),
        ("ip saddr > 10.0.0.1 drop", "-removed"),
        ("@ll,0,48 167772161 drop", "-removed"),
        ('log prefix "acme " drop', 'log prefix "text-'),
        ('meta skuid "acme" drop', 'meta skuid "user-'),
        ("dnat to 10.0.0.1-10.0.0.4", "-removed"),
    ],
)
def test_rules_by_example(text: str, left: str) -> None:
    source = f"table ip t {{\n\tchain c {{\n\t\t{text}\n\t}}\n}}\n"
    made = nft.renamed(Naming(SALT), nft_text.parse(source, "made"))
    (line,) = [each for each in made.split("\n") if each.startswith("\t\t")]
    assert line.strip().startswith(left)
    assert "acme" not in line
    assert "10.0.0" not in line
    assert "167772161" not in line
