"""Dumps that have lost rows in their middle, as far as the rest betrays it."""

from __future__ import annotations

import re

import pytest

from analyzer.kubeproxy.view import View
from tests.support.capture_objects import text_of as capture_text
from tests.support.captures import FIXTURES, ROOT
from tests.support.defects import DEFECTS, app, names_of, text_of, view_of
from tests.support.dumps import at

WHOLE = text_of("nomangle.txt")
#: In the rows of ds/affinity that go to endpoints.
DRAW = "-A KUBE-SVC-ZSATQLYJBXCZD65D -m comment"
PIECES = names_of(sorted(DEFECTS.glob("frag-bad-4-*.txt")))


def lost(view: View) -> bool:
    return any(each.code == "lost-rows" and each.partial for each in view.diagnostics)


def piece_without(*rows: str) -> str:
    """Return table nat of the dump without the rows that hold all words of one of `rows`."""
    return without(*rows).partition("COMMIT\n")[2]


def without(*rows: str) -> str:
    """Return the dump without the rows that hold all words of one of `rows`."""
    kept = [
        line
        for line in WHOLE.splitlines(keepends=True)
        if not any(all(word in line for word in row.split(" & ")) for row in rows)
    ]
    assert len(kept) < len(WHOLE.splitlines())
    return "".join(kept)


def test_a_whole_dump_has_no_hole() -> None:
    view = view_of(WHOLE)
    assert not lost(view)
    assert all(route.is_exact for service in view.services for route in service.routes)


@pytest.mark.parametrize("name", PIECES)
def test_no_share_of_a_piece_with_a_hole_is_called_exact(name: str) -> None:
    view = view_of(text_of(name))
    assert lost(view)
    assert view.services
    for service in view.services:
        for route in service.routes:
            assert not route.is_exact
            assert all(share.masquerade is None for share in route.shares)
            assert all(float(share.share.upper) >= 0.5 for share in route.shares)


@pytest.mark.parametrize(
    "rows",
    [
        "-A KUBE-SVC-NZGXMBVUFMQ6OBBQ & --probability",  # the first of two draws
        "-A KUBE-SVC-NZGXMBVUFMQ6OBBQ & 10.244.1.9:8080",  # the last
        "-A KUBE-SEP-S5UX5RFD5X5TSEPT",  # an endpoint
        "-A KUBE-SEP-S5UX5RFD5X5TSEPT & DNAT",  # half of it
        "-A KUBE-SVC-NZGXMBVUFMQ6OBBQ",  # the draws
        "-A KUBE-SERVICES & default/kubernetes:https",  # another Service
    ],
)
def test_chains_that_have_no_rows_or_nothing_leads_to_betray_a_hole(rows: str) -> None:
    view = view_of(piece_without(rows))
    routes = [route for route in app(view).routes if route.source.value == "pod"]
    known = {share.endpoint: share.share for share in routes[0].shares}
    for endpoint in (at("10.244.0.7", 8080), at("10.244.1.9", 8080)):
        upper = known[endpoint].upper if endpoint in known else routes[0].unresolved
        assert float(upper) >= 0.5
        assert endpoint not in known or float(known[endpoint].lower) <= 0.5
    assert lost(view) or rows == "-A KUBE-SVC-NZGXMBVUFMQ6OBBQ"


def test_a_whole_dump_is_taken_at_its_word() -> None:
    view = view_of(text_of("nolast.txt"))
    assert lost(view)
    route = app(view).routes[0]
    assert [(str(s.endpoint), float(s.share.lower)) for s in route.shares] == [
        ("10.244.0.7:8080", 0.5)
    ]
    assert route.is_exact


def test_a_whole_dump_may_be_two_files() -> None:
    edited = text_of("nolast.txt")
    start = edited.index("*nat")
    end = edited.index("COMMIT\n", start) + len("COMMIT\n")
    nat, others = edited[start:end], edited[:start] + edited[end:]
    assert "*filter" in others
    view = view_of(nat, others)
    assert lost(view)
    assert view.services == view_of(edited, plainly=False).services
    assert all(route.is_exact for route in app(view).routes)
    for beside in ((), (others.replace("COMMIT", "", 1),)):  # cut off
        assert not all(route.is_exact for route in app(view_of(nat, *beside)).routes)


def test_a_service_that_nothing_leads_to_is_named() -> None:
    view = view_of(without("-A KUBE-SERVICES & default/app"))
    assert lost(view)
    assert view.unled == ("default/app",)
    assert "default/app" not in {service.name.text for service in view.services}
    assert all(route.is_exact for service in view.services for route in service.routes)


def test_the_beginning_of_a_dump_has_no_hole() -> None:
    lines = WHOLE.splitlines(keepends=True)
    end = next(at for at, line in enumerate(lines) if line.startswith("-A KUBE-SVC-TCOU7")) + 1
    view = view_of("".join(lines[:end]))
    assert not lost(view)
    assert app(view).routes[0].is_exact


def test_what_stands_under_no_table_has_no_hole_where_all_is_there() -> None:
    view = view_of(text_of("frag-cur.txt"))
    assert not lost(view)
    assert all(len(service.routes[0].shares) == 2 for service in view.services)


def rows_alone(*but: str) -> str:
    """Return the rows of nat without their table, and without those that hold all words of one."""
    nat = (piece_without(*but) if but else WHOLE.partition("*nat\n")[2]).splitlines(keepends=True)
    return "".join(line for line in nat if line.startswith("-A "))


def test_rows_alone_have_no_hole_where_all_are_there() -> None:
    view = view_of(rows_alone())
    assert not lost(view)
    assert app(view).routes[0].is_exact


@pytest.mark.parametrize(
    "rows",
    [
        ("-A KUBE-SVC-NZGXMBVUFMQ6OBBQ & KUBE-MARK-MASQ", "-A KUBE-SVC-NZG & --probability"),
        ("-A KUBE-SVC-TCOU7JCQXEZGVUNU & KUBE-MARK-MASQ", "-A KUBE-SVC-TCOU & --probability"),
        ("-A KUBE-SEP-S5UX5RFD5X5TSEPT & KUBE-MARK-MASQ",),
    ],
)
def test_rows_alone_may_lack_what_their_chain_begins_with(rows: tuple[str, ...]) -> None:
    """The chain of default/app, the last one of all, and that of an endpoint."""
    view = view_of(rows_alone(*rows))
    assert lost(view)
    assert {service.name.text for service in view.services} >= {"default/app"}
    for service in view.services:
        for route in service.routes:
            assert not route.is_exact
            assert all(float(share.share.lower) <= 0.5 for share in route.shares)
            assert all(share.masquerade is None for share in route.shares)


def test_rows_of_chains_that_are_not_declared_are_of_no_whole_dump() -> None:
    """The kernel has no such chain, so the lines that came before its rows are lost."""
    start, end = ":KUBE-SVC-NZGXMBVUFMQ6OBBQ", "-A KUBE-MARK-MASQ"
    head, star, nat = WHOLE.partition("*nat\n")
    cut = head + star + nat[: nat.index(start)] + nat[nat.index(end) :]
    assert "-A PREROUTING" not in cut.partition("*nat\n")[2]
    view = view_of(cut)
    assert lost(view)
    assert len(view.services) == len(view_of(WHOLE).services)
    for service in view.services:
        for route in service.routes:
            assert not route.is_exact
            assert all(float(share.share.upper) >= 0.5 for share in route.shares)


AFFINITY = ROOT / "fixtures" / "check" / "1.36.2-iptables-legacy" / "dual-stack"


def test_an_endpoint_that_holds_clients_and_is_not_drawn_betrays_a_hole() -> None:
    text = (AFFINITY / "iptables-legacy-save.txt").read_text(encoding="utf-8")
    draw = next(row for row in text.splitlines(keepends=True) if DRAW in row and "--prob" in row)
    assert not lost(view_of(text))
    view = view_of(text.replace(draw, ""))  # which somebody may have deleted from the kernel
    assert lost(view)
    held = {each.name.text: each for each in view.services}["ds/affinity"]
    assert [float(share.share.lower) for share in held.routes[0].shares] == [1.0]
    piece = view_of(text.replace(draw, "").removesuffix("\n").rpartition("COMMIT")[0])
    assert lost(piece)
    held = {each.name.text: each for each in piece.services}["ds/affinity"]
    assert not any(route.is_exact for route in held.routes)


def test_large_dumps_may_hold_stale_chains() -> None:
    stale = [f"KUBE-SEP-STALE{at:010}A" for at in range(1001)]
    declared = "".join(f":{name} - [0:0]\n" for name in stale)
    rows = "".join(
        f"-A {name} -p tcp -m tcp -j DNAT --to-destination 10.9.0.1:1\n" for name in stale
    )
    head, star, nat = WHOLE.partition("*nat\n")
    nat = nat.replace(":KUBE-SERVICES -", f"{declared}:KUBE-SERVICES -")
    nat = nat.replace("-A KUBE-SERVICES", f"{rows}-A KUBE-SERVICES", 1)
    view = view_of(f"{head}{star}{nat}")
    assert not lost(view)
    assert app(view).routes[0].is_exact


def test_a_draw_of_no_chance_is_no_hole() -> None:
    route = app(view_of(text_of("zero.txt"))).routes[0]
    assert [(str(s.endpoint), float(s.share.lower)) for s in route.shares] == [
        ("10.244.1.9:8080", 1.0)
    ]
    assert route.is_exact


@pytest.mark.parametrize("version", ["1.16.0", "1.18.2", "1.21.1", "1.23.4"])
def test_nothing_leads_to_the_local_chain_of_a_service_without_endpoints(version: str) -> None:
    folder = FIXTURES / f"{version}-iptables-legacy/policies+kubelet"
    text = capture_text(folder / "iptables-legacy-save.txt.gz")
    chains = re.findall(r"^:(KUBE-XLB-\S+)", text, re.MULTILINE)
    assert [name for name in chains if f"-j {name}" not in text and f"-A {name} " not in text]
    assert not lost(view_of(text))
    # One that has a chain for all endpoints has rows there, too.
    (row,) = re.findall(r"^-A KUBE-SERVICES .*pol/ext-local-unready.*\n", text, re.MULTILINE)[:1]
    chain = row.split()[-1].replace("SVC", "XLB")
    kept = [r for r in text.splitlines(keepends=True) if chain not in r or r.startswith(":")]
    assert lost(view_of("".join(kept)))


@pytest.mark.parametrize(
    "case",
    [
        "1.20.2-iptables-legacy/dual-stack/iptables-legacy-save.txt",
        "1.36.2-iptables-legacy/dual-stack/ip6tables-legacy-save.txt",
    ],
)
def test_a_local_policy_that_does_not_know_pods_betrays_a_hole(case: str) -> None:
    text = (FIXTURES.parent / "check" / case).read_text()
    assert not lost(view_of(text))
    lacks = re.sub(r"^-A KUBE-(?:EXT|XLB)-\S+ -s \S+ .*\n", "", text, flags=re.MULTILINE)
    assert lacks != text
    assert lost(view_of(lacks))
