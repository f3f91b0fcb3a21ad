"""Chains of Services in nft rules, read as rows: an address that nft would not print is no row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.rows.nft import chains_of
from analyzer.parsers import nft_text

#: Addresses, some of which nft does not print like that.
ODD = ["10.0.0.256", "010.0.0.1", "10.0.0", "1.2.3.4.5", "fd00:::1"]
HOSTS = st.sampled_from(
    ["10.0.0.1", "10.0.0.2", "10.0.0.255", *ODD, "fd00::1", "fd00::2", "::ffff:10.0.0.1"]
)
PORTS = st.sampled_from(["80", "8080", "65535", "65536", "080"])
SERVICES = st.lists(st.lists(st.tuples(HOSTS, PORTS), min_size=1, max_size=3), max_size=5)


def ruleset(services: list[list[tuple[str, str]]]) -> str:
    lines = ["table ip kube-proxy {"]
    for at, ends in enumerate(services):
        drawn = ", ".join(f"{number} : {host} . {port}" for number, (host, port) in enumerate(ends))
        to = f"numgen random mod {len(ends)} map {{ {drawn} }}"
        lines += [f"\tchain service-{at} {{", f"\t\tmeta l4proto tcp dnat ip to {to}", "\t}"]
    return "\n".join([*lines, "}", ""])


def is_written(host: str, port: str) -> bool:
    return host not in ODD and port in {"80", "8080", "65535"}


@given(services=SERVICES)
def test_only_what_nft_prints_is_a_row(services: list[list[tuple[str, str]]]) -> None:
    table = nft_text.parse(ruleset(services), "dump").tables["ip", "kube-proxy"]
    found, hosts = chains_of(table, [f"service-{at}" for at in range(len(services))])
    for at, ends in enumerate(services):
        chain = found.get(f"service-{at}")
        one_family = len({":" in host for host, _ in ends}) == 1
        plain = one_family and all(is_written(*each) for each in ends)
        if len(set(ends)) < len(ends) or not plain:
            assert chain is None, (ends, chain)
            continue
        assert chain is not None
        wanted = [(f"[{host}]" if ":" in host else host, port) for host, port in ends]
        assert chain.texts == tuple(f"{host}:{port}" for host, port in wanted)
        assert {*chain.hosts} == {host for host, _ in wanted} <= hosts
    assert hosts == {host for chain in found.values() for host in chain.hosts}


@given(
    ends=st.lists(
        st.tuples(st.sampled_from(["10.0.0.1", "10.0.0.2", "fd00::1"]), PORTS), min_size=1
    ),
    at=st.integers(0),
    cut=st.integers(0, 3),
    put=st.text("012.:, []", max_size=4),
)
def test_an_edited_map_is_no_row_unless_nft_prints_it_so(
    ends: list[tuple[str, str]], at: int, cut: int, put: str
) -> None:
    text = ruleset([ends])
    first, last = text.index("{ 0 :") + 2, text.rindex(" }\n\t}")
    place = first + at % (last - first)
    edited = text[:place] + put + text[min(place + cut, last) :]
    table = nft_text.parse(edited, "dump").tables["ip", "kube-proxy"]
    for chain in chains_of(table, ["service-0"])[0].values():
        drawn = [text.rpartition(":") for text in chain.texts]
        printed = ruleset([[(host.strip("[]"), port) for host, _, port in drawn]])
        mode = "numgen random mod "
        assert edited.partition(mode)[2] == printed.partition(mode)[2]


@pytest.mark.parametrize(
    "drawn",
    [
        "0 : 10.0.0.1:80, 1 : 10.0.0.2:80",
        "0 : 10.0.0.1 . 80, 1 : 10.0.0.2:80 . 80",
        "0 : 10.0.0.1,10.0.0.2 . 80, 1 : 10.0.0.3 . 80",
        "0, 10.0.0.1 . 80 : 1, 10.0.0.2 . 80",
        "0 . 10.0.0.1 : 80, 1 . 10.0.0.2 : 80",
        "0 : 10.0.0.1 . 80 . 80, 1 : 10.0.0.2:80",
        "0 : [fd00::1 . 80, 1 : fd00::2] . 80",
    ],
)
def test_what_only_looks_like_a_map_is_no_row(drawn: str) -> None:
    text = ruleset([[("10.0.0.1", "80"), ("10.0.0.2", "80")]])
    table = nft_text.parse(
        text.replace("0 : 10.0.0.1 . 80, 1 : 10.0.0.2 . 80", drawn), "dump"
    ).tables["ip", "kube-proxy"]
    assert chains_of(table, ["service-0"]) == ({}, set())


@pytest.mark.parametrize("name", ["service-1", "absent"])
def test_a_chain_that_is_not_there_is_none(name: str) -> None:
    table = nft_text.parse(ruleset([[("10.0.0.1", "80")]]), "dump").tables["ip", "kube-proxy"]
    assert chains_of(table, [name]) == ({}, set())
