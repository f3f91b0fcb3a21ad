"""How long each step of healing takes, from a dead node to rules without its endpoints.

Theory of operation
===================

Each duration is a `TimeBounds`: the least and the greatest number of seconds; a step that waits for
the next iteration of a loop may wait for all of its period or not at all. Bounds add up, so that an
answer is a pair of bounds and never a time that is only likely.

A node's last heartbeat that a controller saw was sent at most one renewal of its lease before the
node's death, and was seen at the controller's next iteration. One grace period after it was seen,
at the iteration after that, the node's condition becomes unknown and its pods are not ready; the
EndpointSlice controller removes their endpoints, and each kube-proxy rewrites its rules. The
taint that evicts pods comes an iteration later, node by node at the rate of its zone.

Source: Kubernetes, pkg/controller/nodelifecycle/node_lifecycle_controller.go,
``monitorNodeHealth``, ``tryUpdateNodeHealth``, ``doNoExecuteTaintingPass``; the durations' own
sources are in `DURATIONS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_ZERO: Final = Fraction(0)


@value
class TimeBounds:
    """When something happens, in seconds: not before `earliest`, and by `latest` for certain.

    Attributes:
        earliest: None: never.
        latest: None: it may never.
    """

    earliest: Fraction | None
    latest: Fraction | None

    def __add__(self, other: TimeBounds) -> TimeBounds:
        return TimeBounds(_sum(self.earliest, other.earliest), _sum(self.latest, other.latest))

    def __or__(self, other: TimeBounds) -> TimeBounds:
        """Return when it happens if it is not known which of both it is."""
        never = self.latest is None or other.latest is None
        return TimeBounds(
            least(self.earliest, other.earliest),
            None if never else max(self.latest or _ZERO, other.latest or _ZERO),
        )

    def perhaps(self) -> TimeBounds:
        """Return the same time for an event that may also never happen."""
        return TimeBounds(self.earliest, None)


def least(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    """Return the earlier of two times; None is never."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _sum(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else one + other


NEVER: Final = TimeBounds(None, None)
AT_ONCE: Final = TimeBounds(_ZERO, _ZERO)
#: For durations that are not known.
ANY_TIME: Final = TimeBounds(_ZERO, None)


def within(most: Fraction) -> TimeBounds:
    """Return a time known only by its maximum."""
    return TimeBounds(_ZERO, most)


@value(kw_only=True)
class Duration:
    """A duration that the timeline is based on.

    Attributes:
        option: which says another.
        default: seconds; a range where that is not one number.
        says: what it is.
        source: where the default stands; empty: it is a guess of ours, and said to be one.
    """

    option: str
    default: TimeBounds
    says: str
    source: str


def _exactly(seconds: int) -> TimeBounds:
    return TimeBounds(Fraction(seconds), Fraction(seconds))


#: By the name of the option.
DURATIONS: Final[Mapping[str, Duration]] = {
    each.option: each
    for each in (
        Duration(
            option="node-monitor-grace-period",
            default=TimeBounds(Fraction(40), Fraction(50)),
            says="how long a node is silent before it is not ready: 40s up to 1.31, 50s since",
            source="pkg/controller/nodelifecycle/config/v1alpha1/defaults.go; "
            "kubernetes/kubernetes#126287",
        ),
        Duration(
            option="node-monitor-period",
            default=_exactly(5),
            says="how often the controller checks all nodes",
            source="staging/src/k8s.io/cloud-provider/config/v1alpha1/defaults.go",
        ),
        Duration(
            option="lease-renewal",
            default=_exactly(10),
            says="how often a kubelet renews its lease, up to 4% later",
            source="pkg/kubelet/kubelet.go, nodeLeaseRenewIntervalFraction; "
            "staging/src/k8s.io/component-helpers/apimachinery/lease/controller.go, Run",
        ),
        Duration(
            option="latency",
            default=TimeBounds(_ZERO, Fraction(1)),
            says="how long a watch and a controller's work take, each time",
            source="",
        ),
        Duration(
            option="min-sync-period",
            default=_exactly(1),
            says="the shortest time between two syncs of kube-proxy",
            source="pkg/proxy/apis/config/v1alpha1/defaults.go",
        ),
        Duration(
            option="toleration",
            default=_exactly(300),
            says="how long pods without their own toleration stay on an unreachable node",
            source="plugin/pkg/admission/defaulttolerationseconds/admission.go",
        ),
        Duration(
            option="start-up",
            default=ANY_TIME,
            says="how long until a replacement pod is placed, started and ready",
            source="",
        ),
        Duration(
            option="leader-elect-lease-duration",
            default=_exactly(15),
            says="how long a dead leader keeps its lease",
            source="staging/src/k8s.io/component-base/config/v1alpha1/defaults.go",
        ),
        Duration(
            option="leader-elect-retry-period",
            default=_exactly(2),
            says="how often the others check the lease, up to 120% later",
            source="staging/src/k8s.io/component-base/config/v1alpha1/defaults.go; "
            "staging/src/k8s.io/client-go/tools/leaderelection/leaderelection.go, JitterFactor",
        ),
        Duration(
            option="dead-connection",
            default=TimeBounds(_ZERO, Fraction(45)),
            says="how long a connection to an API server on a dead node is kept",
            source="staging/src/k8s.io/apimachinery/pkg/util/net/http.go, "
            "readIdleTimeoutSeconds, pingTimeoutSeconds; kubernetes/kubernetes#121793",
        ),
        Duration(
            option="settle",
            default=TimeBounds(_ZERO, Fraction(60)),
            says="how long until living nodes that could not reach the API are ready again",
            source="",
        ),
        Duration(
            option="api-lease",
            default=_exactly(15),
            says="how long an API server stays an endpoint of default/kubernetes",
            source="pkg/controlplane/instance.go, DefaultEndpointReconcilerTTL",
        ),
        Duration(
            option="api-reconcile",
            default=_exactly(10),
            says="how often API servers renew that, and check the others'",
            source="pkg/controlplane/instance.go, DefaultEndpointReconcilerInterval",
        ),
    )
}
#: By how much more than its period a loop may wait, besides what its work takes: that of the
#: kubelet's lease, and that of candidates; the other loops of these durations have none.
#: Source: staging/src/k8s.io/apimachinery/pkg/util/wait/backoff.go, ``JitterUntil``.
_LEASE_JITTER: Final = Fraction(4, 100)
_RETRY_JITTER: Final = Fraction(12, 10)
#: kube-controller-manager has 50 s since; a kubelet is not newer than the API server, and during an
#: update that may be newer than the controller manager by one.
_GRACE_OF_50: Final = (1, 33)
#: etcd grants and revokes leases in whole seconds, and looks for expired ones every half second.
_ETCD_SLACK: Final = Fraction(2)


@value(kw_only=True)
class Clocks:
    """The durations of an outage, by the names of `DURATIONS`; given or by default."""

    said: Mapping[str, TimeBounds]
    newest_kubelet: tuple[int, int] | None = None

    def of(self, option: str) -> TimeBounds:
        """Return one duration."""
        if option in self.said:
            return self.said[option]
        if (
            option == "node-monitor-grace-period"
            and (self.newest_kubelet or (0, 0)) >= _GRACE_OF_50
        ):
            return _exactly(50)
        return DURATIONS[option].default

    @property
    def reaches_rules(self) -> TimeBounds:
        """From a pod's condition to rules on a node: the slice's controller, then kube-proxy."""
        latency, sync = self.of("latency"), self.of("min-sync-period")
        return latency + latency + replace(sync, earliest=_ZERO)

    @property
    def election(self) -> TimeBounds:
        """From the death of the active controller until another is active."""
        lease, retry = self.of("leader-elect-lease-duration"), "leader-elect-retry-period"
        # The dead one renewed up to a period ago; another saw that at its next look, and looks
        # again when the lease has expired.
        look = self._look(retry, _RETRY_JITTER)
        return _no_less(lease, self._look(retry).latest) + look + look + self.of("latency")

    def not_ready(self, *, may_elect: bool = False, is_stuck: bool = False) -> TimeBounds:
        """From a node's death until its pods are NotReady.

        `may_elect`: the controller may have to be elected first. A new one has seen no node yet,
        and begins to count when it starts. `is_stuck`: a part of the control plane may be waited
        for that is dead.
        """
        look = self._look("node-monitor-period")
        slack = look + look + TimeBounds(_ZERO, self.of("latency").latest)
        counted = self.of("node-monitor-grace-period") + slack
        found = _no_less(counted, self._look("lease-renewal", _LEASE_JITTER).latest)
        election = self.election
        if is_stuck:
            found = self._held(found, look)
            again = self._look("leader-elect-retry-period", _RETRY_JITTER)
            election = self._held(election, again)
        return found | election + counted if may_elect else found

    def after_outage(self) -> TimeBounds:
        """From the return of the API until pods of a node that died meanwhile are NotReady.

        A controller that lived on has long seen enough; one that starts, or is elected, has not.
        """
        grace, look = self.of("node-monitor-grace-period"), self._look("node-monitor-period")
        return TimeBounds(_ZERO, (self.election + grace + look + look + self.of("latency")).latest)

    def tainted(self, waits: TimeBounds) -> TimeBounds:
        """From pods being NotReady until their node gets the taint, which is rate-limited."""
        return self._look("node-monitor-period") + within(Fraction(1, 10)) + waits

    def api_removed(self, *, is_stuck: bool = False) -> TimeBounds:
        """From an API server's death until its endpoint is in no rules."""
        lease, look = self.of("api-lease"), self._look("api-reconcile")
        found = _no_less(lease, look.latest) + look + within(_ETCD_SLACK)
        return (self._held(found, look) if is_stuck else found) + self.reaches_rules

    def unsettled(self) -> TimeBounds | None:
        """When living nodes may count as NotReady, from and to; None if they never do.

        Their kubelets keep a connection to an API server whose node is dead, and renew no lease.
        """
        kept, grace = self.of("dead-connection"), self.of("node-monitor-grace-period").earliest
        silent = (kept + self._look("lease-renewal", _LEASE_JITTER) + self.of("latency")).latest
        if silent is not None and grace is not None and silent < grace:
            return None
        return TimeBounds(self.not_ready().earliest, (kept + self.of("settle")).latest)

    def _look(self, option: str, jitter: Fraction = _ZERO) -> TimeBounds:
        """Return how long something waits for a loop's next look: a period, and its own work."""
        period = self.of(option).latest
        late = None if period is None else period * (1 + jitter)
        return TimeBounds(_ZERO, late) + TimeBounds(_ZERO, self.of("latency").latest)

    def _held(self, span: TimeBounds, again: TimeBounds) -> TimeBounds:
        """Return the span if a dead connection may delay it, with a retry after that."""
        kept = self.of("dead-connection").latest
        if span.latest is None or kept is None or again.latest is None:
            return span.perhaps()
        return TimeBounds(span.earliest, max(span.latest, kept) + again.latest)


def _no_less(span: TimeBounds, late: Fraction | None) -> TimeBounds:
    """Return a span that began up to `late` seconds before now; None if that is not known."""
    if span.earliest is None:
        return span
    earliest = _ZERO if late is None else max(_ZERO, span.earliest - late)
    return TimeBounds(earliest, span.latest)
