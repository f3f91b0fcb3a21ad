"""What a measure is, what it changes, and whether it can be evaluated."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from analyzer.kubeproxy.predict.versions import NEWEST
from analyzer.model.value import value
from analyzer.outage.topologies import GivenTopology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.parsers.api_objects import Object

#: A Service: its namespace and its name.
NamespacedName = tuple[str, str]


@value(kw_only=True)
class ClusterState:
    """What measures change: objects and the control plane.

    Attributes:
        items: the API objects, decoded; no measure changes one in place.
        said: what the options say of the control plane, which is in no object.
        client: the client that reaches the Service without kube-proxy; None: by its ClusterIP.
        minor: of the version of kube-proxy, 36 of 1.36: older ones do not look at all policies.
        either: of flows to the Service each is to one of these, and no object says to which; none:
            they are to the Service itself.
    """

    items: Sequence[Object]
    said: GivenTopology = GivenTopology()
    client: str | None = None
    minor: int = NEWEST.minor
    either: tuple[NamespacedName, ...] = ()


@value
class Refused:
    """Why a measure changes nothing, or cannot be evaluated: a clause."""

    why: str


def too_old(situation: ClusterState, since: int, what: str) -> Refused | None:
    """Return why a kube-proxy before 1.`since` does not support what a measure needs."""
    if situation.minor >= since:
        return None
    return Refused(f"kube-proxy 1.{situation.minor} ignores {what}: since 1.{since} it does not")


#: What is changed for a Service, or why it is not.
ChangeObjects = Callable[[ClusterState, NamespacedName], ClusterState | Refused]


@enum.unique
class Subject(enum.Enum):
    """The Services that a measure is for: any with pods, the cluster's DNS, or the API itself."""

    SERVICE = "service"
    DNS = "dns"
    API = "api"


@value(kw_only=True)
class Measure:
    """A measure.

    Attributes:
        says: what it does, in few words.
        unsaid: what the objects do not show, and the answer rests on.
    """

    name: str
    says: str
    subject: Subject
    change: ChangeObjects
    unsaid: tuple[str, ...] = ()


def is_for(measure: Measure, key: NamespacedName) -> bool:
    """Return whether a measure is for a Service at all."""
    match measure.subject:
        case Subject.API:
            return key == API
        case Subject.DNS:
            return is_dns(key)
        case Subject.SERVICE:
            return key != API


def is_dns(key: NamespacedName) -> bool:
    """Return whether a Service is the cluster's DNS, named kube-dns with CoreDNS too."""
    return key == ("kube-system", "kube-dns")


#: The Service that the API servers themselves keep.
API = ("default", "kubernetes")
