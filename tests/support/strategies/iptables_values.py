"""Hypothesis strategies for what options of iptables take, so that it survives printing."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network
from typing import Any, TypeVar

from hypothesis import strategies as st

from analyzer.model.iptables import options as o
from analyzer.parsers.xt.matches.tcp import FLAGS

V = TypeVar("V")

#: Any one line that a comment may hold: quotes, backslashes, other alphabets, bytes that are
#: no UTF-8 (which surrogates carry), and text that looks like options.
comments = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"), max_size=30),
    st.binary(max_size=30).map(
        lambda data: re.sub(rb"[\0\n]", b"", data).decode("utf-8", "surrogateescape")
    ),
    st.lists(
        st.sampled_from([" -j ", "DROP", '"', "\\", "'", "!", "-m", " ", "\t", "; ", "é", "\u2028"])
    ).map("".join),
)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,14}", fullmatch=True)
interfaces = st.from_regex(r"[a-z][a-z0-9.@-]{0,10}\+?", fullmatch=True)
bits32 = st.integers(0, 0xFFFFFFFF)
ports = st.integers(0, 0xFFFF)
addresses = st.ip_addresses()
networks_v4 = st.builds(
    lambda a, n: IPv4Network((a, n), strict=False), st.ip_addresses(v=4), st.integers(0, 32)
)
networks_v6 = st.builds(
    lambda a, n: IPv6Network((a, n), strict=False), st.ip_addresses(v=6), st.integers(0, 128)
)
networks = networks_v4 | networks_v6


def ranges(most: int) -> st.SearchStrategy[o.Range]:
    ends = st.tuples(st.integers(0, most), st.integers(0, most))
    return ends.map(lambda pair: o.Range(min(pair), max(pair)))


port_ranges = ranges(0xFFFF)
masked = st.builds(o.Masked, bits32, bits32 | st.just(0xFFFFFFFF))
port_lists = st.lists(port_ranges, min_size=1, max_size=3).map(tuple)
octets = st.integers(0, 255)
codes = st.none() | octets


@st.composite
def _address_ranges(draw: st.DrawFn) -> o.AddressRange:
    ends = draw(st.sampled_from([st.ip_addresses(v=4), st.ip_addresses(v=6)]))
    return o.AddressRange(*sorted(draw(st.tuples(ends, ends))))


address_ranges = _address_ranges()
flag_sets = st.frozensets(st.sampled_from(FLAGS))


def option(values: st.SearchStrategy[V]) -> st.SearchStrategy[o.Option[V] | None]:
    return st.none() | st.builds(o.Option, values, st.booleans())


def flag() -> st.SearchStrategy[o.Option[bool] | None]:
    return option(st.just(True))


def some(words: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    """Some of these words, in the order in which iptables-save prints them."""
    chosen = st.sets(st.sampled_from(words), min_size=1, max_size=3)
    return chosen.map(lambda some: tuple(word for word in words if word in some))


def given_something(kind: type[V], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[V]:
    """Values of `kind` other than the one without any option."""
    return st.builds(kind, **fields).filter(lambda value: value != kind())


_plain_words = st.lists(st.sampled_from(["--x", "1", '"a b"', "0x0=0x1", "dst,src"]), max_size=3)


def unread(option: str, known: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Text of extensions that nobody reads: ``OPTION NAME`` and words of theirs."""
    head = st.sampled_from(known).map(lambda name: f"{option} {name}")
    return st.builds(lambda name, words: " ".join([name, *words]), head, _plain_words)
