"""What ``timeline`` is told besides the dump and who is dead, and what its help says."""

from __future__ import annotations

from argparse import ArgumentTypeError
from fractions import Fraction

from analyzer.arguments.control_plane import OPTIONS as CONTROL_PLANE
from analyzer.arguments.parser import duration_of, percentage, several, time_of
from analyzer.outage.clocks import DURATIONS, Span
from analyzer.parsers.durations import durations_from_text, rate_from_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Of a number of nodes.
_COUNT_DIGITS: Final = 9


def _span(text: str) -> Span:
    found = durations_from_text(text)
    if found is None:
        raise ArgumentTypeError(
            f"{text!r} is not a duration (for example 40s), nor a range of them (20s-1m)"
        )
    return Span(*found)


def _rate(text: str) -> Fraction:
    found = rate_from_text(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not a rate (for example 200/s)")
    return found


def _slo(text: str) -> Fraction:
    found = percentage(text)
    if found == 1:
        raise ArgumentTypeError(f"{text!r} leaves no time to lose (for example 99.9%)")
    return found


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _COUNT_DIGITS):
        raise ArgumentTypeError(f"{text!r} is not a number of nodes")
    return int(text)


def _seconds(value: Fraction | None) -> str:
    return "" if value is None else f"{float(value):g}s"


def _default(span: Span) -> str:
    """Return a default as help shows it."""
    if span.latest is None:
        return "not known"
    lower, upper = _seconds(span.earliest), _seconds(span.latest)
    return lower if lower == upper else f"{lower}-{upper}"


#: What ``timeline`` is told of the outage.
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    **CONTROL_PLANE,
    "--frozen": {
        "action": "store_true",
        "help": "the control plane is gone: nothing heals (default: by who is dead)",
    },
    "--healing": {
        "action": "store_true",
        "help": "the control plane lives: what it takes away heals (default: by who is dead)",
    },
    "--api-back-after": {
        "metavar": "TIME",
        "type": time_of,
        "help": "the control plane is back then; what is marked dead stays dead, but for API "
        "servers (default: never)",
    },
    "--kube-proxy-dead": {
        "action": "store_true",
        "help": "kube-proxy of the dump's node is dead: its rules stay as they are",
    },
    "--reboots-after": {
        "metavar": "TIME",
        "type": duration_of,
        "help": "the dump's node restarts then, and without an API it has no rules",
    },
    "--dies-with-api": {
        "metavar": "IP[:PORT]",
        **several(),
        "help": "endpoints that die where the API is gone; or a CIDR, or a pod's ns/name",
    },
    "--endpoint-reconciler-type": {
        "choices": ("lease", "master-count"),
        "default": "lease",
        "help": "of the API servers; with master-count a dead one stays (default: lease)",
    },
    "--node-eviction-rate": {
        "metavar": "N/s",
        "type": _rate,
        "default": Fraction(1, 10),
        "help": "nodes of a zone that are given up in a second (default: 0.1)",
    },
    "--secondary-node-eviction-rate": {
        "metavar": "N/s",
        "type": _rate,
        "default": Fraction(1, 100),
        "help": "the same of an unhealthy zone (default: 0.01)",
    },
    "--unhealthy-zone-threshold": {
        "metavar": "PERCENT",
        "type": percentage,
        "default": Fraction(55, 100),
        "help": "a zone is unhealthy where so many of its nodes are (default: 55%%)",
    },
    "--large-cluster-size-threshold": {
        "metavar": "N",
        "type": _count,
        "default": 50,
        "help": "up to so many nodes an unhealthy zone gives up none (default: 50)",
    },
    "--rate": {
        "metavar": "N/s",
        "type": _rate,
        "help": "new flows a second to each ServicePort (default: shares only)",
    },
    "--for": {
        "dest": "until",
        "metavar": "TIME",
        "type": time_of,
        "default": Fraction(3600),
        "help": "play so long (default: 1h)",
    },
    "--slo": {
        "metavar": "PERCENT",
        "type": _slo,
        "help": "the share of flows that has to succeed in --slo-window: 99.9%% leaves 43 minutes",
    },
    "--slo-window": {
        "metavar": "TIME",
        "type": time_of,
        "default": Fraction(30 * 86400),
        "help": "default: 30d",
    },
    "--all": {"action": "store_true", "help": "show every ServicePort, and where durations stand"},
}
#: Each duration; every one may be a range, as ``20s-1m``.
TIMES: Final[dict[str, dict[str, Any]]] = {
    f"--{each.option}": {
        "metavar": "TIME",
        "type": _span,
        "help": f"{each.says.replace('%', '%%')} (default: {_default(each.default)})",
    }
    for each in DURATIONS.values()
}
EPILOG: Final = (
    "A duration may be a range (20s-1m). Answers are bounds: a step that waits for the next look "
    "of a controller waits for all of its period or for nothing, and what nothing tells may take "
    "any time. Lost is the share of new flows that lands on dead endpoints, or is refused since "
    "none is left, on the route that loses most."
)
