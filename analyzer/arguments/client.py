"""The options and the help of ``client``."""

from __future__ import annotations

from argparse import ArgumentTypeError
from ipaddress import IPv4Address

from analyzer.arguments.parser import percentage, several, time_of
from analyzer.clients.connectors import CONNECTORS
from analyzer.clients.resolvers import RESOLVERS
from analyzer.clients.responses import RESPONSES_OF_THE_DEAD, FlowResponse
from analyzer.errors import suggestion
from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import address_from_text, packet_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.model.addresses import Address

CLIENTS: Final = (*RESOLVERS, *CONNECTORS)
_MOST_TRIES: Final = 20
_BROADCAST: Final = IPv4Address(0xFFFFFFFF)
_SOURCES: Final = {
    each.value: each for each in (Source.POD, Source.POD_ELSEWHERE, Source.NODE, Source.EXTERNAL)
}


def _client(name: str) -> str:
    if name not in CLIENTS:
        raise ArgumentTypeError(f"no client {name!r}{suggestion(name, CLIENTS)}")
    return name


def _fate(text: str) -> tuple[str, FlowResponse]:
    name, sign, fate = text.rpartition("=")
    known = {each.value: each for each in RESPONSES_OF_THE_DEAD}
    if not sign or not name or fate not in known:
        raise ArgumentTypeError(
            f"{text!r} is not NAME=FATE, where FATE is one of {', '.join(known)}; for example "
            "worker1=refused"
        )
    return name, known[fate]


def _tries(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= _MOST_TRIES):
        raise ArgumentTypeError(f"{text!r} is not a number of tries from 1 to {_MOST_TRIES}")
    return int(text)


def _caller(text: str) -> tuple[str, str]:
    namespace, sign, selector = text.partition("/")
    if not (namespace and sign and selector):
        raise ArgumentTypeError(
            f"{text!r} is not NAMESPACE/POD, for example shop/web-* or shop/app=web"
        )
    return namespace, selector


def _source(text: str) -> Source | Address:
    if text in _SOURCES:
        return _SOURCES[text]
    address = address_from_text(text)
    if address is None:
        raise ArgumentTypeError(
            f"{text!r} is no IP address, and no kind of source{suggestion(text, _SOURCES)}"
        )
    found = packet_address(address)
    if found.is_unspecified or found.is_multicast or found == _BROADCAST:
        raise ArgumentTypeError(f"{text} is no address of a client")
    return found


OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--client": {
        "metavar": "NAME",
        **several(_client),
        "help": f"which clients (default: all of them): {', '.join(CLIENTS)}",
    },
    "--lookup": {
        "metavar": "NAME",
        "help": (
            "the name to look up; with a final dot there is no search (default: kubernetes.default)"
        ),
    },
    "--resolv-conf": {
        "metavar": "FILE",
        "help": "a pod's resolv.conf (default: that of dnsPolicy ClusterFirst, with ndots:5)",
    },
    "--requires": {
        "metavar": "FILE",
        "help": "journeys, in TOML: look-ups and connections that must succeed one after another",
    },
    "--from": {
        "dest": "source",
        "metavar": "SOURCE",
        "type": _source,
        "help": (
            "where clients are: pod, pod-elsewhere, node, external, or a client's IP address, if "
            "rules single it out (default: pod; with --balancer external)"
        ),
    },
    "--fate": {
        "metavar": "NAME=FATE",
        **several(_fate),
        "help": (
            "how a dead node or endpoint behaves: silent, refused or unreachable (default: silent)"
        ),
    },
    "--caller": {
        "metavar": "NS/POD",
        "type": _caller,
        "help": "the pods that call, by a name such as shop/web-* or by labels (shop/app=web): "
        "those on dead nodes are dead too (needs pods in --objects)",
    },
    "--balancer": {
        "metavar": "uniform|FILE",
        "help": (
            "a load balancer in front of NodePorts draws a node first, dead or alive: uniform, "
            "or by weights in TOML (worker1 = 3); give a dump for each node"
        ),
    },
    "--timeout": {
        "metavar": "TIME",
        "type": time_of,
        "help": "give up each connection attempt after this time (default: each client's own)",
    },
    "--tries": {
        "metavar": "N",
        "type": _tries,
        "help": "at most this many connection attempts (default: each client's own)",
    },
    "--max-failure": {
        "metavar": "PERCENT",
        "type": percentage,
        "help": "exit with 1 if an operation may fail more often (for example 10%%), or if rules "
        "single out some of the clients, or a Service (with --service, one of these) is not judged",
    },
    "--all": {"action": "store_true", "help": "also show every way in which an operation may end"},
}
EPILOG: Final = (
    "An operation fails if its user would see an error; the time that it waits before that, or "
    "before it succeeds, is its delay. Without --service, each client that connects goes to the "
    "ServicePort that it fails most often to reach."
)
