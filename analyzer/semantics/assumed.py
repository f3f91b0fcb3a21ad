"""What is assumed about a node beyond its rules, and which assumptions an answer used.

Theory of operation
===================

Some matches ask for what no dump holds: the node's routes, its bridges, its sockets, how much
traffic there is. Each row of `ASSUMPTIONS` says what is taken for one such fact where nobody says
otherwise (``--assume NAME=VALUE``), and in which words an answer tells that it rests on it. Where
a match is judged it asks `Assumed` by the name of the row; what was asked is kept, so that an
answer prints just what it rests on. With nothing assumed (``--assume-nothing``) the match is
unknown, and what follows from it is bounds, which hold whatever is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: The value of every assumption that assumes nothing.
UNKNOWN: Final = "unknown"

REVERSE_PATH: Final = "reverse-path"
BRIDGE_PORT: Final = "bridge-port"
CLUSTER_IP: Final = "cluster-ip"
LIMITS: Final = "limits"
POLICY: Final = "policy"
POD_INTERFACE: Final = "pod-interface"
SOCKET: Final = "socket"
SOURCE_PORT: Final = "source-port"


@value
class Assumption:
    """One fact that the dump does not tell.

    Attributes:
        sentences: by each value what an answer that rests on it says; the first is the default.
        any_sentence: what it says of any other value; None: there are no others.
    """

    name: str
    sentences: Mapping[str, str]
    any_sentence: Callable[[str], str] | None = None

    @property
    def default(self) -> str:
        """What is assumed where nobody says otherwise."""
        return next(iter(self.sentences))

    def sentence(self, of: str) -> str:
        """Return what an answer that rests on a value says."""
        if self.any_sentence is not None and of not in self.sentences:
            return self.any_sentence(of)
        return self.sentences[of]

    @property
    def values(self) -> tuple[str, ...]:
        """All that can be assumed, and nothing."""
        return (*self.sentences, UNKNOWN)


def _pods_devices(patterns: str) -> str:
    names = ", ".join(patterns.split())
    return f"pods of this node, and nothing else, are behind devices {names}"


#: All there are, in the order in which answers print them.
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
        CLUSTER_IP,
        {"not-local": "no ClusterIP is an address of the node (addrtype LOCAL, fib daddr type)"},
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
)
#: The same, by name.
BY_NAME: Final[Mapping[str, Assumption]] = {each.name: each for each in ASSUMPTIONS}
#: What is assumed where nobody says otherwise.
DEFAULTS: Final[Mapping[str, str]] = {each.name: each.default for each in ASSUMPTIONS}
#: Nothing: what an answer that assumes nothing is given.
NOTHING: Final[Mapping[str, str]] = {}


class Assumed:
    """What is assumed of one node, by name, and what of it was asked for so far.

    Attributes:
        values: what is assumed; a name that is missing, or unknown, is not known.
        used: names that decided a match.
        wanted: names that would have, of another packet than those that were walked.
    """

    def __init__(self, values: Mapping[str, str] = NOTHING) -> None:
        self.values = {name: of for name, of in values.items() if of != UNKNOWN}
        self.used: set[str] = set()
        self.wanted: set[str] = set()

    def take(self, name: str) -> str | None:
        """Return what is assumed, which what is judged by it then rests on; None: nothing."""
        found = self.values.get(name)
        if found is not None:
            self.used.add(name)
        return found

    def sentences(self) -> tuple[str, ...]:
        """Return what answers so far rest on, in words."""
        return told(self.used, self.values)


def told(used: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return what an answer rests on that used the assumptions of these names, in words."""
    names = set(used)
    return tuple(each.sentence(values[each.name]) for each in ASSUMPTIONS if each.name in names)
