from __future__ import annotations

import json
from ipaddress import ip_address

import pytest

from analyzer.kubeproxy.view import Frontend, FrontendKind
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.parsers.iptables_save import parse
from analyzer.reports import json_values as j
from tests.support.dumps import dump as nat
from tests.support.dumps import only_service, two_endpoints

THIRD = Dyadic.of(0x55555555, 32)
FRONTEND = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.1"), 80)


def test_a_document_names_its_schema_first() -> None:
    text = "".join(j.document("loss", {"services": [], "node": "null"}))
    assert list(json.loads(text).items()) == [
        ("schema", "kubeodds/loss/2"),
        ("services", []),
        ("node", None),
    ]
    assert text.endswith("}\n")


def test_a_list_has_a_line_for_each_entry() -> None:
    text = "".join(j.document("loss", {"services": iter(['{"name":"a"}', '{"name":"b"}'])}))
    assert text.splitlines()[1:] == ['"services":[', '{"name":"a"},', '{"name":"b"}', "]", "}"]


def test_a_list_may_hold_what_entries_before_have_left() -> None:
    left: list[str] = []

    def entry(text: str) -> str:
        left.append(text)
        return text

    entries = map(entry, ("1", "2"))
    told = json.loads("".join(j.document("loss", {"entries": entries, "left": left})))
    assert told["left"] == told["entries"] == [1, 2]


def test_nothing_of_a_dump_reaches_a_terminal_as_a_control_character() -> None:
    text = j.encode({"name": "\x1b[2J\u202eé"})
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["name"] == "\x1b[2J\u202eé"


@pytest.mark.parametrize("value", [NEVER, ALWAYS, THIRD, Dyadic.of(1, 3_000)])
def test_a_probability_can_be_computed_again_exactly(value: Dyadic) -> None:
    told = json.loads(json.dumps(j.probability(value)))
    assert Dyadic.of(int(told["numerator"], 16), told["exponent"]) == value
    assert told["value"] == float(value)


def test_bounds_have_two_ends() -> None:
    told = j.bounds(Bounds(NEVER, THIRD))
    assert (told["lower"]["numerator"], told["upper"]["numerator"]) == ("0x0", "0x55555555")


def test_a_node_port_has_no_address() -> None:
    node_port = Frontend(FrontendKind.NODE_PORT, None, 30080)
    assert j.frontend(node_port) == {"kind": "NodePort", "address": None, "port": 30080}
    assert j.frontend(FRONTEND)["address"] == "10.96.0.1"


def test_a_service_port_is_named_in_parts() -> None:
    assert j.name(only_service(nat(*two_endpoints()))) == {
        "name": "ns/a:http",
        "namespace": "ns",
        "service": "a",
        "port_name": "http",
        "protocol": "tcp",
        "family": "ip",
    }


@pytest.mark.parametrize(("version", "family"), [(4, "ip"), (6, "ip6"), (None, None)])
def test_a_family_is_named_as_nft_names_it(version: int | None, family: str | None) -> None:
    assert j.family(version) == family


def test_a_rule_is_written_once_however_often_it_is_met() -> None:
    (table,) = parse(nat(*two_endpoints()), "dump.txt").tables.values()
    first, last = table.chains["KUBE-SVC-A"].rules
    numbers = j.RuleNumbers()
    assert [numbers.of([last]), numbers.of([first, last])] == [[0], [1, 0]]
    told = [json.loads(text) for text in numbers.written()]
    assert [each["text"] for each in told] == [last.raw, first.raw]
    assert {(each["table"], each["chain"]) for each in told} == {("nat", "KUBE-SVC-A")}


def test_a_diagnostic_keeps_its_place() -> None:
    given = Diagnostic(
        severity=Severity.WARNING, code="no-commit", message="x", file="dump", line=7, partial=True
    )
    assert [json.loads(text) for text in j.diagnostics([given])] == [
        {
            "severity": "warning",
            "code": "no-commit",
            "message": "x",
            "file": "dump",
            "line": 7,
            "column": None,
        }
    ]
