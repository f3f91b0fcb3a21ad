"""What is assumed about a node beyond its rules, and which assumptions an answer used.

Theory of operation
===================

Some matches depend on facts that no dump contains: the node's routes, its bridges, its sockets, the
traffic. Each row of `ASSUMPTIONS` has the default for one such fact (``--assume NAME=VALUE``
changes it), and the sentence by which an answer says that it depends on it. Code that evaluates a
match asks `Assumed` for the row by name; the names are recorded, so that an answer lists exactly
what it depends on. With nothing assumed (``--assume-nothing``) the match is unknown, and the
results are bounds, which hold whatever is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: The value, for any assumption, of assuming nothing.
UNKNOWN: Final = "unknown"

ADDRESS_TYPE: Final = "address-type"
REVERSE_PATH: Final = "reverse-path"
SEGMENT_SIZE: Final = "segment-size"
BRIDGE_PORT: Final = "bridge-port"
CLUSTER_IP: Final = "cluster-ip"
LIMITS: Final = "limits"
OUTSIDE_INTERFACE: Final = "outside-interface"
POLICY: Final = "policy"
POD_INTERFACE: Final = "pod-interface"
SOCKET: Final = "socket"
SOURCE_PORT: Final = "source-port"


@value
class Assumption:
    """One fact that the dump does not contain.

    Attributes:
        sentences: by value, what an answer that depends on it says; the first is the default.
        any_sentence: what it says for any other value; None if there are no others.
    """

    name: str
    sentences: Mapping[str, str]
    any_sentence: Callable[[str], str] | None = None

    @property
    def default(self) -> str:
        """The default value."""
        return next(iter(self.sentences))

    def sentence(self, of: str) -> str:
        """Return what an answer that depends on a value says."""
        if self.any_sentence is not None and of not in self.sentences:
            return self.any_sentence(of)
        return self.sentences[of]

    @property
    def values(self) -> tuple[str, ...]:
        """All values that can be assumed, including `UNKNOWN`."""
        return (*self.sentences, UNKNOWN)


def _pods_devices(patterns: str) -> str:
    names = ", ".join(patterns.split())
    return f"pods of this node, and nothing else, are behind devices {names}"


#: All assumptions, in the order in which answers print them.
ASSUMPTIONS: Final = (
    Assumption(
        REVERSE_PATH,
        {
            "pass": "the reverse-path check passes (-m rpfilter, fib saddr . iif oif)",
            "fail": "the reverse-path check fails (-m rpfilter, fib saddr . iif oif)",
        },
    ),
    Assumption(
        BRIDGE_PORT,
        {"none": "flows from outside do not arrive by a bridge port (-m physdev)"},
    ),
    Assumption(
        POD_INTERFACE,
        {
            "usual": "pods of this node, and nothing else, are behind devices that their network "
            "plugin names (cali+, lxc+, cni0, veth+, eni+, ...)"
        },
        _pods_devices,
    ),
    Assumption(
        OUTSIDE_INTERFACE,
        {
            "uplink": "flows from outside do not arrive by bridges of containers or virtual "
            "machines on the node (docker0, br-+, virbr+, lxdbr+, podman+)"
        },
    ),
    Assumption(
        CLUSTER_IP,
        {"not-local": "no ClusterIP is an address of the node (addrtype LOCAL, fib daddr type)"},
    ),
    Assumption(
        ADDRESS_TYPE,
        {
            "unicast": "addresses of other hosts and pods are unicast, not broadcast "
            "(addrtype UNICAST, BROADCAST, fib daddr type, pkttype)"
        },
    ),
    Assumption(
        LIMITS,
        {
            "under": "the traffic is within the limits of limit, hashlimit, connlimit and recent",
            "over": "the traffic is beyond the limits of limit, hashlimit, connlimit and recent",
        },
    ),
    Assumption(POLICY, {"none": "no IPsec policy applies to the packet (-m policy, ipsec)"}),
    Assumption(SOCKET, {"none": "no socket on the node matches the packet (-m socket, socket)"}),
    Assumption(
        SOURCE_PORT,
        {"ephemeral": "new flows come from ephemeral ports, 32768 and above (--sport, th sport)"},
    ),
    Assumption(
        SEGMENT_SIZE,
        {"usual": "hosts open connections with an MSS of 536 or more (-m tcpmss, maxseg)"},
    ),
)
#: The same, by name.
BY_NAME: Final[Mapping[str, Assumption]] = {each.name: each for each in ASSUMPTIONS}
#: The default values.
DEFAULTS: Final[Mapping[str, str]] = {each.name: each.default for each in ASSUMPTIONS}
#: No assumptions at all.
NOTHING: Final[Mapping[str, str]] = {}


class Assumed:
    """What is assumed of one node, by name, and which of it was used so far.

    Attributes:
        values: what is assumed; a missing or unknown name is not known.
        used: names that decided a match.
        wanted: names that would have decided one for other packets than those evaluated.
    """

    def __init__(self, values: Mapping[str, str] = NOTHING) -> None:
        self.values = {name: of for name, of in values.items() if of != UNKNOWN}
        self.used: set[str] = set()
        self.wanted: set[str] = set()

    def take(self, name: str) -> str | None:
        """Return what is assumed, and record that it was used; None if nothing is."""
        found = self.values.get(name)
        if found is not None:
            self.used.add(name)
        return found

    def sentences(self) -> tuple[str, ...]:
        """Return what answers so far depend on, in words."""
        return told(self.used, self.values)


def told(used: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return, in words, what an answer that used the assumptions of these names depends on."""
    names = set(used)
    return tuple(each.sentence(values[each.name]) for each in ASSUMPTIONS if each.name in names)
