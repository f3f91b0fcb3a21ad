"""The options and the help of ``timeline``."""

from __future__ import annotations

from argparse import ArgumentTypeError
from fractions import Fraction

from analyzer.arguments.control_plane import OPTIONS as CONTROL_PLANE
from analyzer.arguments.parser import duration_of, percentage, several, time_of
from analyzer.outage.clocks import DURATIONS, TimeBounds
from analyzer.parsers.durations import durations_from_text, rate_from_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Of a number of nodes.
_COUNT_DIGITS: Final = 9


def _span(text: str) -> TimeBounds:
    found = durations_from_text(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not a duration (for example 40s) or a range (20s-1m)")
    return TimeBounds(*found)


def _rate(text: str) -> Fraction:
    found = rate_from_text(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not a rate (for example 200/s)")
    return found


def _slo(text: str) -> Fraction:
    found = percentage(text)
    if found == 1:
        raise ArgumentTypeError(f"{text!r} leaves no budget for losses (for example 99.9% does)")
    return found


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _COUNT_DIGITS):
        raise ArgumentTypeError(f"{text!r} is not a number of nodes")
    return int(text)


def _seconds(value: Fraction | None) -> str:
    return "" if value is None else f"{float(value):g}s"


def _default(span: TimeBounds) -> str:
    """Return a default as help shows it."""
    if span.latest is None:
        return "not known"
    lower, upper = _seconds(span.earliest), _seconds(span.latest)
    return lower if lower == upper else f"{lower}-{upper}"


#: Options of ``timeline`` for the outage.
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    **CONTROL_PLANE,
    "--frozen": {
        "action": "store_true",
        "help": (
            "the control plane is down: no dead endpoint is removed (default: depends on what is "
            "dead)"
        ),
    },
    "--healing": {
        "action": "store_true",
        "help": (
            "the control plane is up and removes dead endpoints (default: depends on what is dead)"
        ),
    },
    "--api-back-after": {
        "metavar": "TIME",
        "type": time_of,
        "help": (
            "the control plane is back after this time; what is marked dead stays dead, except "
            "API servers (default: never)"
        ),
    },
    "--kube-proxy-dead": {
        "action": "store_true",
        "help": "kube-proxy of the dump's node is dead: its rules stay as they are",
    },
    "--reboots-after": {
        "metavar": "TIME",
        "type": duration_of,
        "help": "the dump's node restarts after this time, and without an API it has no rules",
    },
    "--dies-with-api": {
        "metavar": "IP[:PORT]",
        **several(),
        "help": "endpoints that die when the API is down; or a CIDR, or a pod's ns/name",
    },
    "--endpoint-reconciler-type": {
        "choices": ("lease", "master-count"),
        "default": "lease",
        "help": "of the API servers; with master-count a dead one stays listed (default: lease)",
    },
    "--node-eviction-rate": {
        "metavar": "N/s",
        "type": _rate,
        "default": Fraction(1, 10),
        "help": "nodes of a zone that are tainted per second (default: 0.1)",
    },
    "--secondary-node-eviction-rate": {
        "metavar": "N/s",
        "type": _rate,
        "default": Fraction(1, 100),
        "help": "the same for an unhealthy zone (default: 0.01)",
    },
    "--unhealthy-zone-threshold": {
        "metavar": "PERCENT",
        "type": percentage,
        "default": Fraction(55, 100),
        "help": "a zone is unhealthy if this share of its nodes is (default: 55%%)",
    },
    "--large-cluster-size-threshold": {
        "metavar": "N",
        "type": _count,
        "default": 50,
        "help": "in an unhealthy zone of up to this many nodes none is tainted (default: 50)",
    },
    "--rate": {
        "metavar": "N/s",
        "type": _rate,
        "help": "new flows per second to each ServicePort (default: shares only)",
    },
    "--for": {
        "dest": "until",
        "metavar": "TIME",
        "type": time_of,
        "default": Fraction(3600),
        "help": "how long to simulate (default: 1h)",
    },
    "--slo": {
        "metavar": "PERCENT",
        "type": _slo,
        "help": "the share of flows that must succeed in --slo-window: 99.9%% leaves 43 minutes",
    },
    "--slo-window": {
        "metavar": "TIME",
        "type": time_of,
        "default": Fraction(30 * 86400),
        "help": "default: 30d",
    },
    "--all": {
        "action": "store_true",
        "help": ("show every ServicePort, and the sources of durations"),
    },
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
    "A duration may be a range (20s-1m). Results are bounds: a step that waits for a "
    "controller's next poll waits for its whole period or not at all, and what is not known may "
    "take any time. Lost is the share of new flows that goes to dead endpoints, or is refused "
    "because no endpoint is left, on the route that loses most."
)
