"""Rules of others that tell sources apart, before Services' chains, in them and behind them."""

from __future__ import annotations

import pytest

from analyzer.kubeproxy.view import Route
from tests.support.defects import app, text_of, told, view_of

BASE = text_of("nomangle.txt")
HALVES = {"10.244.0.7:8080": 0.5, "10.244.1.9:8080": 0.5}
SEP_OF_1_9 = "KUBE-SEP-S5UX5RFD5X5TSEPT"


def shares(route: Route) -> dict[str, float]:
    assert route.is_exact
    return {str(share.endpoint): float(share.share.lower) for share in route.shares}


def masks(route: Route) -> set[bool | None]:
    return {share.masquerade for share in route.shares}


def with_row(row: str, before: str = "-A PREROUTING ") -> str:
    """Return the dump with a row before the first one of nat that begins with `before`."""
    head, star, nat = BASE.partition("*nat")
    at = nat.index(before)
    return f"{head}{star}{nat[:at]}{row}\n{nat[at:]}"


def raw(*rows: str, policy: str = "ACCEPT") -> str:
    bases = (f":PREROUTING {policy} [0:0]", ":OUTPUT ACCEPT [0:0]")
    return "\n".join(["*raw", *bases, *rows, "COMMIT", ""])


@pytest.mark.parametrize("name", ["with-raw.txt", "with-raw.nft"])
def test_rules_of_another_file_tell_sources_apart(name: str) -> None:
    routes = told(app(view_of(BASE, text_of(name))))
    assert shares(routes["external", "192.0.2.0/24"]) == {}
    assert shares(routes["external", None]) == HALVES
    if name == "with-raw.txt":
        assert shares(routes["pod", "10.244.1.0/25"]) == {}


def test_what_one_file_says_two_files_say_alike() -> None:
    both = view_of(text_of("with-both.txt"))
    assert view_of(BASE, text_of("with-raw.txt")).services == both.services


@pytest.mark.parametrize("table", ["raw", "mangle"])
@pytest.mark.parametrize("plainly", [True, False])
def test_nothing_passes_a_policy_of_drop(table: str, *, plainly: bool) -> None:
    dump = BASE + raw(policy="DROP").replace("*raw", f"*{table}")
    routes = told(app(view_of(dump, plainly=plainly)))
    assert [shares(routes[source, None]) for source in ("pod", "pod-elsewhere", "external")] == [
        {},
        {},
        {},
    ]
    assert shares(routes["node", None]) == HALVES
    assert app(view_of(text_of("d1-policy.txt"))).routes[0].shares == ()


@pytest.mark.parametrize("plainly", [True, False])
def test_snat_behind_a_service_is_for_its_sources_only(*, plainly: bool) -> None:
    routes = told(app(view_of(text_of("egress.txt"), plainly=plainly)))
    assert masks(routes["pod", "10.244.1.64/26"]) == {True}
    assert masks(routes["pod", None]) == {False}
    assert shares(routes["pod", "10.244.1.64/26"]) == shares(routes["pod", None]) == HALVES


@pytest.mark.parametrize("plainly", [True, False])
def test_who_is_accepted_behind_a_service_keeps_his_address(*, plainly: bool) -> None:
    routes = told(app(view_of(text_of("postsrc.txt"), plainly=plainly)))
    assert masks(routes["external", "192.0.2.0/24"]) == {False}
    assert masks(routes["external", None]) == {True}


def test_rules_behind_a_service_in_another_file_tell_sources_apart() -> None:
    post = (
        "table ip x {\n\tchain post {\n\t\ttype nat hook postrouting priority srcnat - 5; "
        "policy accept;\n\t\tip saddr 10.244.1.64/26 snat to 192.168.0.200\n\t}\n}\n"
    )
    routes = told(app(view_of(BASE, post)))
    assert masks(routes["pod", "10.244.1.64/26"]) == {True}
    assert masks(routes["pod", None]) == {False}


@pytest.mark.parametrize(
    "match", ["-s 192.0.2.0/24", "-m iprange --src-range 192.0.2.0-192.0.2.255"]
)
@pytest.mark.parametrize("chain", ["PREROUTING", "KUBE-SERVICES", "KUBE-SVC-NZGXMBVUFMQ6OBBQ"])
def test_sources_are_told_apart_wherever_a_rule_stands(match: str, chain: str) -> None:
    dump = with_row(f"-A {chain} {match} -j ACCEPT", before=f"-A {chain} ")
    routes = told(app(view_of(dump)))
    assert shares(routes["external", "192.0.2.0/24"]) == {}
    assert shares(routes["external", None]) == HALVES


def test_chains_of_others_are_followed_from_everywhere() -> None:
    dump = with_row("-A KUBE-SERVICES -j MINE", before="-A KUBE-SERVICES ").replace(
        ":KUBE-MARK-MASQ -", ":MINE - [0:0]\n:KUBE-MARK-MASQ -"
    )
    dump = dump.replace("\n-A KUBE-SVC-E", "\n-A MINE -s 192.0.2.0/24 -j ACCEPT\n-A KUBE-SVC-E", 1)
    routes = told(app(view_of(dump)))
    assert shares(routes["external", "192.0.2.0/24"]) == {}


def test_rows_of_others_in_the_chain_of_an_endpoint_are_for_their_sources() -> None:
    row = f"-A {SEP_OF_1_9} -s 192.0.2.0/24 -j ACCEPT"
    routes = told(app(view_of(with_row(row, before=f"-A {SEP_OF_1_9} "))))
    assert shares(routes["external", "192.0.2.0/24"]) == {"10.244.0.7:8080": 0.5}
    assert shares(routes["external", None]) == HALVES


@pytest.mark.parametrize("before", [f"-A {SEP_OF_1_9} -s", f"-A {SEP_OF_1_9} -p"])
def test_an_endpoint_that_is_sent_back_from_its_chain_never_reaches_itself(before: str) -> None:
    row = f"-A {SEP_OF_1_9} -s 10.244.1.9/32 -j RETURN"
    routes = told(app(view_of(with_row(row, before=before))))
    assert shares(routes["hairpin", None]) == {"10.244.0.7:8080": 0.5}
    assert shares(routes["pod", None]) == HALVES
    # Nobody but the endpoint is in that network, and for it the same holds.
    assert shares(routes["pod", "10.244.1.9/32"]) == {"10.244.0.7:8080": 0.5}


def test_a_rule_for_one_endpoint_is_for_its_flows_to_all_services() -> None:
    routes = told(app(view_of(BASE + raw("-A PREROUTING -s 10.244.1.4/32 -j DROP"))))
    assert shares(routes["pod", "10.244.1.4/32"]) == {}
    assert shares(routes["pod", None]) == HALVES


def test_a_question_that_no_network_says_leaves_sources_open() -> None:
    odd = (
        "table ip x {\n\tchain pre {\n\t\ttype filter hook prerouting priority raw; "
        "policy accept;\n\t\tip saddr & 0.0.0.1 == 0.0.0.1 drop\n\t}\n}\n"
    )
    routes = told(app(view_of(BASE, odd)))
    assert not routes["external", None].is_exact
    assert {float(s.share.upper) for s in routes["external", None].shares} == {0.5}


def test_a_rule_of_others_in_kube_mark_masq_may_end_what_comes_back() -> None:
    dump = with_row("-A KUBE-MARK-MASQ -i eth0 -j ACCEPT", "-A KUBE-MARK-MASQ ")
    route = told(app(view_of(dump)))["hairpin", None]
    bounds = {str(s.endpoint): (float(s.share.lower), float(s.share.upper)) for s in route.shares}
    # Those that come in by eth0 are accepted before they are translated.
    assert bounds["10.244.0.7:8080"] == (0, 0.5)


@pytest.mark.parametrize("row", ["-j RETURN", "-g MINE"])
def test_an_endpoint_that_leaves_its_chain_marked_is_told_apart(row: str) -> None:
    first = "-A KUBE-SEP-J2W2PM2EJNGL7DWU "
    text = with_row(f"{first}-s 10.244.0.0/24 {row}", f"{first}-p tcp")
    if "MINE" in row:
        text = text.replace(":KUBE-MARK-MASQ", ":MINE - [0:0]\n:KUBE-MARK-MASQ")
    routes = told(app(view_of(text)))
    itself = routes["pod-elsewhere", "10.244.0.7/32"]
    (other,) = (share for share in itself.shares if str(share.endpoint) == "10.244.1.9:8080")
    assert other.masquerade is not False
