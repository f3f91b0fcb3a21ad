"""Clients that open connections: what each does when one is not answered.

A new one takes a row of CONNECTORS. Measured ones were compared with a program on a kernel
(tests/lab/test_client_plans.py); for the others only the source is known.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from analyzer.clients.plan import Time
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@enum.unique
class To(enum.Enum):
    """What a client connects to.

    SERVICE: a frontend, where the rules draw. PODS: the endpoints themselves, one after the other
    in an order that is drawn once.
    """

    SERVICE = "service"
    PODS = "pods"


#: By how much of itself a kernel's timer may be late. Source: Linux, kernel/time/timer.c; measured:
#: 133 to 135 s in place of 131.
_LATE: Final = Fraction(1, 8)
#: What a kernel waits until it gives a connection up, its SYNs all sent: after 1, 2, 4, ... 64 s;
#: or from 6.5 on four more, a second each, before those. Source: Linux,
#: Documentation/networking/ip-sysctl.rst, tcp_syn_retries (6), tcp_syn_linear_timeouts (4).
SYNS: Final = Time(Fraction(127), 131 * (1 + _LATE))
#: What it waits for an acknowledgement of data. Source: the same, tcp_retries2 (15): 924.6 s or
#: more; 16 waits of at most TCP_RTO_MAX, 120 s.
DATA: Final = Time(Fraction(9246, 10), 16 * 120 * (1 + _LATE))


@value(kw_only=True)
class Connector:
    """How a client opens connections.

    Attributes:
        says: what is meant by its name.
        source: where it is to be read.
        measured: whether it was compared with a program of its kind.
        timeout: seconds for each try, the last of these for all further ones; none: the kernel's.
        tries: at most; 0: one for each endpoint.
        pauses: seconds before each further try.
        goes_on: whether it tries again where it was refused or unreachable.
        is_open: whether it has a connection from before the failure.
        pinned: whether session affinity holds it to one endpoint, whatever the Service says.
        around: whether it begins again with the first endpoint behind the last one.
    """

    name: str
    says: str
    source: str
    measured: bool
    to: To = To.SERVICE
    timeout: tuple[Fraction, ...] = ()
    tries: int = 1
    pauses: tuple[Fraction, ...] = ()
    goes_on: bool = False
    is_open: bool = False
    pinned: bool = False
    around: bool = False


_CURL: Final = (Fraction(1), Fraction(2), Fraction(4))

_EVERY: Final = (
    Connector(
        name="tcp",
        says="one connect(2), as by nc, Python or Node.js",
        source="tcp(7); Linux, Documentation/networking/ip-sysctl.rst, tcp_syn_retries",
        measured=True,
    ),
    Connector(
        name="http-retry",
        says="curl --connect-timeout 3 --retry 3: retries after a time-out, not after a refusal",
        source="curl(1) 7.88, --retry: waits 1 s, then twice as long each time",
        measured=True,
        timeout=(Fraction(3),),
        tries=4,
        pauses=_CURL,
    ),
    Connector(
        name="keep-alive",
        says="an HTTP request on a connection that was open before the failure (Go's net/http)",
        source="Go 1.19, src/net/http/transport.go, shouldRetryRequest(): once more on a new "
        "connection, for 30 s; Linux, ip-sysctl.rst, tcp_retries2",
        measured=False,
        timeout=(Fraction(30),),
        is_open=True,
    ),
    Connector(
        name="affinity",
        says="http-retry of a client that session affinity pins to one endpoint",
        source="kubernetes, pkg/proxy/iptables/proxier.go, -m recent --rcheck --seconds; "
        "pkg/proxy/nftables/proxier.go, update @affinity-...",
        measured=False,
        timeout=(Fraction(3),),
        tries=4,
        pauses=_CURL,
        pinned=True,
    ),
    Connector(
        name="userspace-proxy",
        says="one connection through kube-proxy's userspace mode, with the same endpoints",
        source="kubernetes 1.20, pkg/proxy/userspace/proxysocket.go, TryConnectEndpoints(): 250 "
        "ms, 500 ms, 1 s, 2 s, each to the next endpoint; roundrobin.go, ShuffleStrings()",
        measured=False,
        to=To.PODS,
        timeout=(Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2)),
        tries=4,
        goes_on=True,
        around=True,
    ),
    Connector(
        name="proxy-by-pod-ip",
        says="a request through ingress-nginx, which sends to pods itself",
        source="ingress-nginx, proxy-connect-timeout 5 s, proxy-next-upstream error timeout, "
        "proxy-next-upstream-tries 3",
        measured=False,
        to=To.PODS,
        timeout=(Fraction(5),),
        tries=3,
        goes_on=True,
    ),
    Connector(
        name="proxy-by-service-ip",
        says="a request through ingress-nginx with service-upstream, which sends to the ClusterIP",
        source="ingress-nginx, annotation service-upstream, proxy-connect-timeout 5 s; nginx, "
        "ngx_http_upstream_round_robin.c: a single server is tried once",
        measured=False,
        timeout=(Fraction(5),),
    ),
    Connector(
        name="headless",
        says=(
            "a client that has all addresses of a headless Service and tries them one after another"
        ),
        source="getaddrinfo(3): try each address in turn; tcp(7)",
        measured=False,
        to=To.PODS,
        tries=0,
        goes_on=True,
    ),
)

#: By name.
CONNECTORS: Final[Mapping[str, Connector]] = MappingProxyType({each.name: each for each in _EVERY})
