from __future__ import annotations

import json
from fractions import Fraction

from analyzer.reports import diff_json
from tests.support.answers import AFTER, BEFORE, diff_answer
from tests.support.dumps import cluster_ip, dump, endpoint
from tests.support.json_reader import read

HALF = (Fraction(1, 2), Fraction(1, 2))


def of_many(count: int, *, first: int = 1) -> str:
    """A Service of endpoints in iptables mode, as kube-proxy draws them."""
    numbers = range(first, first + count)
    draws = [
        f"-A KUBE-SVC-A -m statistic --mode random --probability {1 / (count - at):.11f} "
        f"-j KUBE-SEP-{number}"
        for at, number in enumerate(numbers)
        if at < count - 1
    ]
    ends = [endpoint(f"KUBE-SEP-{n}", f"10.0.{n >> 8}.{n & 255}:80") for n in numbers]
    return dump(cluster_ip("ns/a:http"), *draws, f"-A KUBE-SVC-A -j KUBE-SEP-{numbers[-1]}", *ends)


def written(a: str, b: str) -> str:
    return "".join(diff_json.render(diff_answer(a, b)))


def test_each_share_that_differs_is_told_of_both_dumps() -> None:
    service = read(written(of_many(2), of_many(2, first=2)))["services"][0]
    change = service["routes"][0]
    told = {
        each["address"]: (a, b)
        for each, a, b in zip(
            change["shares"]["of"], change["shares"]["a"], change["shares"]["b"], strict=True
        )
    }
    assert told == {"10.0.0.1": (HALF, None), "10.0.0.3": (None, HALF)}
    assert [each["address"] for each in change["endpoints_gone"]] == ["10.0.0.1"]
    assert [each["address"] for each in change["endpoints_added"]] == ["10.0.0.3"]
    assert change["shares_moved"] == []


def test_an_endpoint_is_written_once_and_so_is_a_rule() -> None:
    document = json.loads(written(BEFORE, AFTER))
    service = document["services"][0]
    for parts in (service["endpoints"], document["rules"]):
        assert len({json.dumps(each) for each in parts}) == len(parts)
    assert {each["family"] for each in document["services"]} == {"ip"}


def test_the_document_grows_with_the_endpoints() -> None:
    some, many = (len(written(of_many(n), of_many(n, first=n + 1))) for n in (60, 300))
    assert many < 6 * some
