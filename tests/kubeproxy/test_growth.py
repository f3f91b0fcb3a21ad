"""The work to answer a dump grows with it, whatever its shape: steps are counted, not seconds."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Network
from typing import Final

import pytest

from analyzer.semantics import effort
from tests.support.shapes import CLUSTER_IP, endpoint, kube_sep, service
from tests.support.steps import services, steps, traced, view

#: Text of a size.
Shape = Callable[[int], str]


def in_front(*rules: str) -> Shape:
    """Each of the rules n times, of which nobody knows whether they match."""
    return lambda n: service(
        20,
        before=[
            f"-A PREROUTING -m set --match-set s{at} src {rule.format(at=at, bit=1 << at % 32)}"
            for at in range(n)
            for rule in rules
        ],
    )


def chains(n: int, rule: str, times: int = 1) -> str:
    """Chains each of which leads into the next, and so often."""
    rows = [
        f"-A {'PREROUTING' if at == 0 else f'c{at}'} {rule} -j c{at + 1}"
        for at in range(n)
        for _ in range(times)
    ]
    return service(5, before=[*rows, f"-A c{n} -m comment --comment end"])


def asked(n: int) -> str:
    """Unknown rules that set a bit of eight, and rules that match on them."""
    marks = [f"{1 << at % 8:#x}/{1 << at % 8:#x}" for at in range(n)]
    rows = [
        f"-A PREROUTING -m set --match-set s{at} src -j MARK --set-xmark {mark}"
        for at, mark in enumerate(marks)
    ]
    return service(
        5, before=[*rows, *[f"-A PREROUTING -m mark --mark {mark} -j RETURN" for mark in marks]]
    )


def own(row: str) -> Shape:
    """Chains of endpoints with a row that kube-proxy does not write."""
    return lambda n: service(n, own=lambda at: [row, *kube_sep(at)])


def other_protocol(n: int) -> str:
    def rows(at: int) -> list[str]:
        return [row.replace("tcp", "udp") if at % 2 else row for row in kube_sep(at)]

    return service(n, own=rows)


def left_marked(n: int) -> str:
    """Chains that an endpoint's own flows may leave with their mark."""

    def rows(at: int) -> list[str]:
        marks, sends = kube_sep(at)
        return [marks, "-m set --match-set x src -j RETURN", sends]

    return service(n, own=rows)


def cut(n: int) -> str:
    """A dump that ends in the middle of its rows."""
    return service(n).rpartition("-A KUBE-SEP")[0]


def rows_only(n: int) -> str:
    """No line but rules."""
    return "".join(line for line in service(n).splitlines(keepends=True) if line[0] == "-")


def numgen(n: int) -> str:
    return f"""table ip kube-proxy {{
    map service-ips {{
        type ipv4_addr . inet_proto . inet_service : verdict
        elements = {{ {CLUSTER_IP} . tcp . 80 : goto service-1 }}
    }}
    chain nat-prerouting {{
        type nat hook prerouting priority dstnat; policy accept;
        ip daddr . meta l4proto . th dport vmap @service-ips
    }}
    chain service-1 {{
        meta l4proto tcp dnat ip to numgen random mod {1 << n} map {{ 0 : {endpoint(0)} . 80 }}
    }}
}}
"""


def odd(n: int) -> str:
    """Chains that send half of what comes to them back, from two rules."""
    rows = [
        f"-A {'PREROUTING' if at == 0 else f'c{at}'} -j c{at + 1}"
        for at in range(n)
        for _ in range(2)
    ]
    last = f"-A c{n} -m statistic --mode random --probability 0.5 -j DROP"
    return service(5, before=[*rows, last])


def networks(n: int) -> list[str]:
    """Networks of clients, none beside another."""
    return [str(IPv4Network(((11 << 24) + 512 * at, 24))) for at in range(n)]


def dropped_one_by_one(n: int) -> str:
    """A blocklist behind nat, a row for each network."""
    rows = [f"-A FORWARD -s {each} -j DROP" for each in networks(n)]
    return service(3) + "\n".join(["*filter", ":FORWARD ACCEPT [0:0]", *rows, "COMMIT", ""])


def dropped_as_a_set(n: int) -> str:
    """The same as a set of nft."""
    return f"""{numgen(1)}table inet blocklist {{
    set blocked {{
        type ipv4_addr
        flags interval
        elements = {{ {", ".join(networks(n))} }}
    }}
    chain forward {{
        type filter hook forward priority filter; policy accept;
        ip saddr @blocked drop
    }}
}}
"""


SHAPES: Final[dict[str, tuple[Shape, int]]] = {
    "endpoints": (service, 20),
    "endpoints with a row of others": (own("-d 10.0.0.0/8 -j ACCEPT"), 20),
    "endpoints with an unknown row of others": (own("-m set --match-set x src -j RETURN"), 20),
    # Of so many it is not told for each which others' flows are masqueraded.
    "endpoints of another protocol": (other_protocol, 150),
    "endpoints that may leave their chains marked": (left_marked, 110),
    "a cut dump": (cut, 20),
    "rows only": (rows_only, 20),
    "unknown drops in front": (in_front("-j DROP"), 20),
    "unknown jumps in front": (in_front("-j KUBE-SERVICES"), 20),
    "unknown marks in front": (in_front("-j MARK --set-xmark {bit:#x}/{bit:#x}"), 16),
    "unknown marks that rules match on": (asked, 16),
    "unknown draws in front": (
        in_front("-m statistic --mode random --probability 0.5 -j DROP"),
        20,
    ),
    "nested chains": (lambda n: chains(n, "-p tcp"), 100),
    "nested chains, not known of whom": (lambda n: chains(n, "-m set --match-set x src"), 100),
    "chains that fan out": (lambda n: chains(n, "-p tcp", 2), 6),
    "chains that fan out, not known of whom": (
        lambda n: chains(n, "-m set --match-set x src", 2),
        20,
    ),
    "numbers to draw from": (numgen, 16),
    "networks that are dropped one by one": (dropped_one_by_one, 100),
    "networks that are dropped as a set": (dropped_as_a_set, 200),
}


@pytest.mark.alike
@pytest.mark.parametrize("asked_for", [services, traced])
@pytest.mark.parametrize("name", SHAPES)
def test_twice_the_rules_take_twice_the_steps(name: str, asked_for: Callable[[str], None]) -> None:
    shape, size = SHAPES[name]
    once, twice = shape(size), shape(2 * size)
    asked_for(shape(2))  # what is made once is made
    few, many = (steps(lambda text=text: asked_for(text)) for text in (once, twice))  # type: ignore[misc]  # a lambda
    assert many <= 2.3 * few


def test_endpoints_that_may_leave_their_chains_marked_take_no_walk_each() -> None:
    """Each is a source of its own, and so the answers grow with the square; walks do not."""
    services(left_marked(40))  # what is made once is made
    few, many = (steps(lambda n=n: services(left_marked(n))) for n in (20, 40))  # type: ignore[misc]  # a lambda
    assert many <= 2.5 * few


@pytest.mark.parametrize("asked_for", [services, traced])
def test_what_grows_with_the_ways_is_cut_off(
    asked_for: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "MOST_BRANCHES", 5_000)  # ten times less to wait for
    deep, deeper = odd(16), odd(20)
    asked_for(odd(2))  # what is made once is made
    few, many = (steps(lambda text=text: asked_for(text)) for text in (deep, deeper))  # type: ignore[misc]  # a lambda
    assert many <= 1.5 * few
    assert "bounded-work" in {each.code for each in view(deep).diagnostics}
