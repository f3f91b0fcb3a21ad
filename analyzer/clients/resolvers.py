"""Libraries and programs that resolve names: what each sends, in which order, from which port.

A new one takes a row of RESOLVERS. Measured ones were compared with the program itself on a kernel
(tests/lab/test_client_plans.py); for the others only the source is known.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@enum.unique
class Port(enum.Enum):
    """The source port of a query that is retried after a silent name server.

    SAME: from the same socket, so that conntrack sends it to the same endpoint. NEW: from another,
    so that the rules draw again. EITHER: not known.
    """

    SAME = "same"
    NEW = "new"
    EITHER = "either"


@enum.unique
class Search(enum.Enum):
    """The next step after a candidate that no server has answered.

    STOP: the look-up fails. AS_IS: the name as it was given, where that was not tried. NEXT: the
    next candidate.
    """

    STOP = "stop"
    AS_IS = "as-is"
    NEXT = "next"


@value(kw_only=True)
class Resolver:
    """How a client resolves names.

    Attributes:
        says: what is meant by its name.
        source: where it is to be read.
        measured: whether it was compared with a program of its kind.
        apart: whether A and AAAA are asked for on sockets of their own.
        parallel: whether all name servers are asked at once, from one socket.
        port: of what is sent again.
        timeout: seconds for each answer; with `parallel` for all attempts.
        attempts: how often each name server is asked; with `together` all of them.
        first: whether all attempts are the first server's, and each other one is asked once.
        fixed: whether it goes by its own timeout and attempts, whatever resolv.conf says.
        most_timeout, most_attempts: beyond which options are cut.
        backoff: least and most parts of the timeout for each round, where they differ.
        hears_refusal: whether a refusal reaches it, which it does on connected sockets.
        hears_unreachable: whether ICMP host unreachable does: only with IP_RECVERR.
        refused_once: whether a server that refused is not asked again.
        searches: whether it tries the domains of `search`.
        search_behind_dots: whether also where the name has `ndots` dots, when it failed as it is.
        others: options of resolv.conf by which it goes otherwise, in a way that is not known here.
        silence: what follows a candidate without any answer, `refusal`: that all refused.
    """

    name: str
    says: str
    source: str
    measured: bool
    apart: bool = False
    parallel: bool = False
    port: Port
    timeout: Fraction = Fraction(5)
    attempts: int = 2
    together: bool = False
    first: bool = False
    fixed: bool = False
    most_timeout: int = 30
    most_attempts: int = 5
    backoff: tuple[tuple[Fraction, Fraction], ...] = ()
    hears_refusal: bool = True
    hears_unreachable: bool = False
    refused_once: bool = False
    searches: bool = True
    search_behind_dots: bool = True
    others: frozenset[str] = frozenset()
    silence: Search
    refusal: Search


def _parts(*parts: tuple[int | Fraction, int | Fraction]) -> tuple[tuple[Fraction, Fraction], ...]:
    return tuple((Fraction(a), Fraction(b)) for a, b in parts)


_EVERY: Final = (
    Resolver(
        name="glibc",
        says="getaddrinfo() of glibc; Python, PHP, Node.js's dns.lookup, curl, wget",
        source="glibc 2.36, resolv/res_send.c, send_dg() and __res_context_send(); "
        "resolv/res_query.c, __res_context_search()",
        measured=True,
        port=Port.SAME,
        hears_unreachable=True,
        others=frozenset(("use-vc", "single-request-reopen", "no-tld-query")),
        silence=Search.AS_IS,
        refusal=Search.STOP,
    ),
    Resolver(
        name="musl",
        says="getaddrinfo() of musl; Alpine images",
        source="musl 1.2.3, src/network/res_msend.c, __res_msend_rc(); "
        "src/network/lookup_name.c, name_from_dns_search()",
        measured=True,
        parallel=True,
        port=Port.SAME,
        most_timeout=60,
        most_attempts=10,
        hears_refusal=False,
        search_behind_dots=False,
        silence=Search.STOP,
        refusal=Search.STOP,
    ),
    Resolver(
        name="go",
        says="Go's own resolver (CGO_ENABLED=0)",
        source="Go 1.19, src/net/dnsclient_unix.go, exchange(), tryOneName() and "
        "goLookupIPCNAMEOrder(); src/net/dnsconfig_unix.go, nameList()",
        measured=True,
        apart=True,
        port=Port.NEW,
        most_timeout=1 << 31,
        most_attempts=1 << 31,
        others=frozenset(("use-vc", "usevc", "tcp", "single-request", "single-request-reopen")),
        silence=Search.NEXT,
        refusal=Search.NEXT,
    ),
    Resolver(
        name="c-ares",
        says="c-ares as used by Node.js's dns.resolve4: the name as it is, A only",
        source="c-ares 1.34, src/lib/ares_process.c, ares_calc_query_timeout(); "
        "src/lib/ares_close_connection.c, ares_check_cleanup_conns(); Node.js 20, lib/dns.js: "
        "4 tries; src/cares_wrap.cc, StartTimer(): looks each second",
        measured=True,
        port=Port.NEW,
        timeout=Fraction(2),
        attempts=4,
        fixed=True,
        # Doubled in each round, less up to half of it at random; seen up to a second later.
        backoff=_parts(
            (1, Fraction(3, 2)), (1, Fraction(5, 2)), (2, Fraction(9, 2)), (4, Fraction(17, 2))
        ),
        searches=False,
        silence=Search.STOP,
        refusal=Search.STOP,
    ),
    Resolver(
        name="systemd-resolved",
        says=(
            "nss-resolve and systemd-resolved, its cache empty: the full name, since it tries "
            "search domains for single labels only"
        ),
        source=(
            "systemd 252, src/resolve/resolved-dns-transaction.c, dns_transaction_emit_udp(), "
            "dns_transaction_limited_retry(), transaction_get_resend_timeout(); resolved-def.h: "
            "120 s for a query, 24 attempts. It keeps its socket while the server stays, but "
            "changes feature levels and to TCP on the way, which may draw anew"
        ),
        measured=False,
        apart=True,
        port=Port.EITHER,
        attempts=24,
        together=True,
        fixed=True,
        refused_once=True,
        searches=False,
        silence=Search.STOP,
        refusal=Search.STOP,
    ),
    Resolver(
        name="dig",
        says="dig: the name as it is, A only",
        source="dig(1), +tries=3 +time=5; BIND 9.18, bin/dig/dighost.c",
        measured=True,
        first=True,
        port=Port.NEW,
        attempts=3,
        fixed=True,
        searches=False,
        silence=Search.STOP,
        refusal=Search.STOP,
    ),
)

#: By name.
RESOLVERS: Final[Mapping[str, Resolver]] = MappingProxyType({each.name: each for each in _EVERY})
