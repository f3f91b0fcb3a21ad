"""A proxy that connects to pod IPs and retries: kube-proxy's rules select no endpoint for it."""

from __future__ import annotations

from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject
from analyzer.advice.objects import is_usable, slices_of
from analyzer.model.value import replace
from analyzer.parsers.api_objects import elements

_CLIENT = "proxy-by-pod-ip"


def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
    """Return a situation in which clients use that proxy, with the objects unchanged."""
    slices = slices_of(situation.items, key)
    if not any(is_usable(end) for each in slices for end in elements(each, "endpoints")):
        return Refused("it has no ready endpoints")
    return replace(situation, client=_CLIENT)


MEASURE = Measure(
    name="pod-ips",
    says="a proxy that tries up to 3 pods",
    subject=Subject.SERVICE,
    change=change,
    unsaid=("whether clients go through a proxy that keeps its own list of pods (ingress)",),
)
