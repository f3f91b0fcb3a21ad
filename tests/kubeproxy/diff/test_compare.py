"""What differs for new flows, one thing at a time."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.diff.changes import Change, EndpointChange
from analyzer.kubeproxy.diff.difference import Conclusion
from analyzer.kubeproxy.generate import iptables_save, services
from analyzer.model.probability import ALWAYS, Bounds, Dyadic
from tests.support.comparing import by_route, compared, only_change
from tests.support.dumps import FILTER, at, chance, cluster_ip, dump, endpoint, two_endpoints
from tests.support.effort import examples

TWO = dump(*two_endpoints()) + FILTER
HALF = Bounds(Dyadic.of(1, 1), Dyadic.of(1, 1))
ALL = Bounds(ALWAYS, ALWAYS)
#: The same Service with its first endpoint alone.
ONE_ENDPOINT = endpoint("KUBE-SEP-1", "10.0.0.1:80")
ONE = dump(cluster_ip(), "-A KUBE-SVC-A -j KUBE-SEP-1", ONE_ENDPOINT) + FILTER
#: And with none.
REFUSED = dump() + (
    "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
    ":KUBE-SERVICES - [0:0]\n"
    "-A INPUT -j KUBE-SERVICES\n-A FORWARD -j KUBE-SERVICES\n-A OUTPUT -j KUBE-SERVICES\n"
    "-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "
    '"ns/a:http has no endpoints" -m tcp --dport 80 -j REJECT\nCOMMIT\n'
)


def the_change(a: str, b: str) -> Change:
    """Return the one change that is the same on all routes."""
    (each,) = only_change(compared(a, b)).routes
    return each.change


def test_nothing_differs_from_itself() -> None:
    for text in (TWO, ONE, REFUSED):
        found = compared(text, text)
        assert (found.changes, found.beside, found.verdict) == ((), (), Conclusion.SAME)


def test_an_endpoint_is_gone_and_what_is_left_takes_more() -> None:
    change = the_change(TWO, ONE)
    assert change == Change(endpoints=(EndpointChange(at("10.0.0.2"), HALF, None),), each=(2, 1))


def test_an_endpoint_is_added() -> None:
    change = the_change(ONE, TWO)
    assert change == Change(endpoints=(EndpointChange(at("10.0.0.2"), None, HALF),), each=(1, 2))


def test_an_endpoint_that_has_another_address_is_gone_and_added() -> None:
    other = TWO.replace("10.0.0.2:80", "10.0.0.9:80")
    assert the_change(TWO, other) == Change(
        endpoints=(
            EndpointChange(at("10.0.0.2"), HALF, None),
            EndpointChange(at("10.0.0.9"), None, HALF),
        )
    )


def test_the_order_of_draws_is_no_difference() -> None:
    turned = dump(*two_endpoints("10.0.0.2:80", "10.0.0.1:80")) + FILTER
    assert compared(TWO, turned).changes == ()


def test_shares_move() -> None:
    uneven = TWO.replace("0.50000000000", "0.25000000000")
    quarter, rest = Dyadic.of(1, 2), Dyadic.of(3, 2)
    assert the_change(TWO, uneven) == Change(
        endpoints=(
            EndpointChange(at("10.0.0.1"), HALF, Bounds(quarter, quarter)),
            EndpointChange(at("10.0.0.2"), HALF, Bounds(rest, rest)),
        )
    )


@pytest.mark.parametrize(("threshold", "moves"), [(1, False), (2, False), (3, True)])
def test_a_share_has_moved_where_it_is_off_by_more_than_the_bias(
    threshold: int, moves: bool
) -> None:
    """2**-30 are two of the steps in which the kernel draws."""
    off = f"{0.5 + threshold / 2**31:.11f}"
    found = compared(TWO, TWO.replace("0.50000000000", off))
    assert bool(found.changes) is moves


def test_a_service_that_loses_all_endpoints_is_refused() -> None:
    routes = dict(by_route(only_change(compared(ONE, REFUSED))))
    assert {source for _, _, source in routes} == {"pod", "pod-elsewhere", "node", "external"}
    for change in routes.values():
        assert change.endpoints == (EndpointChange(at("10.0.0.1"), ALL, None),)
        assert change.otherwise == ((), (("reject", ALL),))


def test_a_refusal_that_becomes_silence_is_told() -> None:
    assert the_change(REFUSED, REFUSED.replace("-j REJECT", "-j DROP")) == Change(
        otherwise=((("reject", ALL),), (("drop", ALL),))
    )


def test_another_affinity_is_told_with_its_timeouts() -> None:
    def sticky(seconds: int) -> str:
        rule = (
            f"-A KUBE-SVC-A -m recent --rcheck --seconds {seconds} --reap --name KUBE-SEP-1 "
            "--mask 255.255.255.255 --rsource -j KUBE-SEP-1"
        )
        first = chance("0.50000000000", "KUBE-SEP-1")
        return TWO.replace(first, f"{rule}\n{first}")

    assert only_change(compared(TWO, sticky(600))).affinity == (None, 600)
    assert only_change(compared(sticky(600), sticky(10_800))).affinity == (600, 10_800)
    assert compared(sticky(600), sticky(600)).changes == ()
    # A Service without endpoints has no rules that could tell.
    assert only_change(compared(sticky(600), REFUSED)).affinity is None


MASQUERADING = (
    "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
    "-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE",
)


def test_another_source_address_is_told_for_those_that_get_it() -> None:
    plain = dump(*two_endpoints(), *MASQUERADING)
    marks = "-A KUBE-SVC-A ! -s 10.0.0.0/8 -d 10.96.0.1/32 -j KUBE-MARK-MASQ"
    marked = plain.replace(
        chance("0.50000000000", "KUBE-SEP-1"), f"{marks}\n{chance('0.50000000000', 'KUBE-SEP-1')}"
    )
    change = only_change(compared(plain, marked))
    routes = dict(by_route(change))
    assert {source for _, _, source in routes} >= {"external"}
    assert "pod" not in {source for _, _, source in routes}
    outside = routes["ClusterIP", "10.96.0.1:80", "external"]
    assert {(m.endpoint, m.a, m.b) for m in outside.masquerade} == {
        (at("10.0.0.1"), False, True),
        (at("10.0.0.2"), False, True),
    }
    assert outside.endpoints == ()


def test_what_cannot_be_read_in_one_dump_cannot_be_told() -> None:
    odd = TWO.replace(
        "-m statistic --mode random --probability 0.50000000000", "-m nonesuch --of it"
    )
    found = compared(TWO, odd)
    assert found.verdict is Conclusion.UNKNOWN
    assert {c.unknown for _, c in by_route(only_change(found))} == {("shares",)}


def test_what_cannot_be_read_in_either_is_told_as_alike() -> None:
    odd = TWO.replace(
        "-m statistic --mode random --probability 0.50000000000", "-m nonesuch --of it"
    )
    found = compared(odd, odd)
    assert (found.changes, found.alike, found.verdict) == ((), 1, Conclusion.SAME)


def test_what_is_certain_is_told_beside_what_is_not() -> None:
    odd = TWO.replace(
        "-m statistic --mode random --probability 0.50000000000", "-m nonesuch --of it"
    )
    change = only_change(compared(odd, odd.replace("10.0.0.2:80", "10.0.0.9:80")))
    assert not change.is_certain  # the second may get none of the flows
    third = TWO.replace("-A KUBE-SVC-A -j KUBE-SEP-2", "-A KUBE-SVC-A -m nonesuch -j KUBE-SEP-2")
    certain = only_change(compared(TWO, third.replace("0.50000000000", "0.25000000000")))
    assert certain.is_certain
    (at_cluster_ip,) = {c.unknown for (_, _, source), c in by_route(certain) if source == "pod"}
    assert at_cluster_ip == ("shares", "otherwise")


def test_a_service_in_the_middle_of_a_sync_cannot_be_told() -> None:
    empty = dump(cluster_ip()) + FILTER
    found = compared(TWO, empty)
    assert found.verdict is Conclusion.UNKNOWN
    assert compared(empty, empty).verdict is Conclusion.SAME


def test_other_rules_that_take_a_source_are_told_with_its_network() -> None:
    first = "-A KUBE-SVC-A -s 198.18.0.0/15 -j KUBE-SEP-2"
    ranged = TWO.replace(
        chance("0.50000000000", "KUBE-SEP-1"), f"{first}\n{chance('0.50000000000', 'KUBE-SEP-1')}"
    )
    routes = dict(by_route(only_change(compared(TWO, ranged))))
    assert routes.pop(("ClusterIP", "10.96.0.1:80", "external 198.18.0.0/15")) == Change(
        endpoints=(EndpointChange(at("10.0.0.1"), HALF, None),), each=(2, 1)
    )
    # Where pods have their addresses nobody says: it may be there.
    assert {source for _, _, source in routes} == {"pod", "pod-elsewhere"}
    assert {change.unknown for change in routes.values()} == {("shares",)}


def test_no_share_is_no_endpoint() -> None:
    never = TWO.replace("0.50000000000", "0.00000000000")
    change = the_change(TWO, never)
    assert change.endpoints[0] == EndpointChange(at("10.0.0.1"), HALF, None)


# --- plain ServicePorts that fare alike are looked at once ---

#: What an edit of a row puts in place of what it finds.
EDITS: Final = (
    (r"! -s \S+ ", ""),
    (r"! -s \S+ ", "! -s 10.0.0.0/16 "),
    (r"--dport \d+", "--dport 81"),
    (r"\.\d+:8080", ".9:8080"),
    (r"--probability 0\.\d", "--probability 0.4"),
    (r"-j KUBE-MARK-MASQ", "-j RETURN"),
)
COMPARER: Final = "analyzer.kubeproxy.diff.compare._Comparer"
PLAIN: Final = iptables_save(list(services(4, endpoints=(1, 2, 3, 2))))


def edited(chosen: list[tuple[int, tuple[str, str]]]) -> str:
    """Return the plain dump with an edit of some of the rows that it fits."""
    rows = PLAIN.split("\n")
    for number, (pattern, text) in chosen:
        fitting = [at for at, row in enumerate(rows) if re.search(pattern, row)]
        if fitting:
            place = fitting[number % len(fitting)]
            rows[place] = re.sub(pattern, text, rows[place], count=1)
    return "\n".join(rows)


@examples(15, 300)
@given(*[st.lists(st.tuples(st.integers(0, 40), st.sampled_from(EDITS)), max_size=3)] * 2)
def test_plain_service_ports_that_fare_alike_are_as_every_one_looked_at(
    of_a: list[tuple[int, tuple[str, str]]], of_b: list[tuple[int, tuple[str, str]]]
) -> None:
    a, b = edited(of_a), edited(of_b)
    found = compared(a, b)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(f"{COMPARER}._after_by_source", lambda *_: (None, None))
        assert compared(a, b) == found
