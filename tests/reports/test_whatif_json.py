"""Losses in JSON are exact, or bounds that contain them."""

from __future__ import annotations

import json
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.whatif import WhatIfOptions
from analyzer.kubeproxy.generate import iptables_save, services
from analyzer.model.cluster import Cluster
from analyzer.model.probability import Dyadic
from analyzer.reports import whatif_json
from analyzer.reports.answers import WhatIfAnswer
from tests.support.answers import RICH, whatif_answer
from tests.support.json_reader import fraction


def written(answer: WhatIfAnswer) -> str:
    return "".join(whatif_json.render(answer))


def test_what_is_not_known_of_a_failure_is_a_range() -> None:
    document = json.loads(written(whatif_answer(RICH)))
    by_name = {tuple(each["nodes"]): each for each in document["failures"]}
    one = by_name["n2",]["worst_loss"]
    assert fraction(one["lower"]) < fraction(one["upper"])
    (told,) = document["services"]
    assert told["zones"]["survives"] == 0
    assert document["no_endpoints"] == ["ns/empty:dns"]


@given(st.integers(1, 40), st.integers(1, 40))
def test_long_numbers_are_rounded_outwards(first: int, second: int) -> None:
    exact = Dyadic.of(3**first * 2**1200 + 3**second, 2_000)
    truth = exact.as_fraction()
    lower, upper = (whatif_json.rounded(exact, up=up) for up in (False, True))
    assert lower.as_fraction() < truth < upper.as_fraction()
    assert upper.as_fraction() - lower.as_fraction() == Fraction(1, 2**64)
    short = Dyadic.of(3**first, 64)
    assert whatif_json.rounded(short) == whatif_json.rounded(short, up=True) == short


def test_of_many_endpoints_the_document_stays_small() -> None:
    (only,) = services(1, endpoints=(400,), nodes=400)
    network = [(f"{address}/32", f"n{at:03}") for at, (address, _) in enumerate(only.endpoints)]
    cluster = Cluster().with_networks(
        [(__import__("ipaddress").ip_network(cidr), name) for cidr, name in network]
    )
    asked = WhatIfOptions(depth=1)
    answer = whatif_answer(iptables_save([only]), cluster, asked, max_loss=None, min_survives=None)
    text = written(answer)
    assert len(text) < 400 * 800
    for each in json.loads(text)["failures"]:
        loss = each["worst_loss"]
        assert fraction(loss["lower"]) <= Fraction(1, 400) + Fraction(1, 10**6)
        assert fraction(loss["upper"]) > 0
