"""Lines of `diff` for other programs are those of its document."""

from __future__ import annotations

import csv
import io
import json
from itertools import product

import pytest

from analyzer.kubeproxy.generate import iptables_save, services
from analyzer.model.value import replace
from analyzer.reports import diff_json, diff_tsv
from tests.support.answers import AFTER, BEFORE, RICH, diff_answer


def lines(a: str, b: str) -> list[dict[str, str]]:
    written = "".join(diff_tsv.render(diff_answer(a, b)))
    return list(csv.DictReader(io.StringIO(written), delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize(("a", "b"), [*product((BEFORE, AFTER, RICH), repeat=2)])
def test_every_service_port_that_differs_has_its_lines(a: str, b: str) -> None:
    document = json.loads("".join(diff_json.render(diff_answer(a, b))))
    found = lines(a, b)
    named = {(row["service"], row["protocol"]) for row in found if row["service"]}
    assert named == {(each["name"], each["protocol"]) for each in document["services"]}
    assert sum(not row["service"] for row in found) == len(document["beside"])
    certain = {row["service"] for row in found if row["verdict"] == "certain" and row["service"]}
    assert certain == {e["name"] for e in document["services"] if e["change"] != "unknown"}


def test_each_of_many_endpoints_has_a_line() -> None:
    (whole,) = services(1, endpoints=(30,))
    few = replace(whole, endpoints=whole.endpoints[:10])
    found = lines(iptables_save([whole]), iptables_save([few]))
    gone = {row["change"] for row in found if row["change"].endswith(" gone")}
    assert gone == {f"{address}:{port} gone" for address, port in whole.endpoints[10:]}
    assert {row["b"] for row in found if row["change"].endswith(" gone")} == {"none"}
    assert lines(iptables_save([few]), iptables_save([few])) == []
