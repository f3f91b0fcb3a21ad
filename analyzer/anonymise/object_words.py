"""Words of the Kubernetes API, and its well-known labels, taints and annotations.

Source: Kubernetes API reference; "Well-Known Labels, Annotations and Taints".
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.anonymise.words import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: What fields of objects may say that are no names.
WORDS: Final = frozenset(
    listed("""
    v1 discovery.k8s.io/v1 discovery.k8s.io/v1beta1 coordination.k8s.io/v1 networking.k8s.io/v1
    networking.k8s.io/v1beta1 networking.k8s.io/v1alpha1 apps/v1
    ClusterIP NodePort LoadBalancer ExternalName None ClientIP Cluster Local TCP UDP SCTP
    IPv4 IPv6 FQDN SingleStack PreferDualStack RequireDualStack Proxy VIP Auto Disabled
    PreferClose PreferSameZone PreferSameNode InternalIP ExternalIP Hostname InternalDNS
    ExternalDNS Pending Running Succeeded Failed Unknown True False Ready MemoryPressure
    DiskPressure PIDPressure NetworkUnavailable NoSchedule PreferNoSchedule NoExecute Exists Equal
    DoNotSchedule ScheduleAnyway ReplicaSet StatefulSet DaemonSet Deployment Job CronJob Node Pod
    ReplicationController Service Bound Available linux windows amd64 arm64 arm s390x ppc64le
    """)
)
#: Labels and taints of Kubernetes' own: their keys stay. Values are words, or names of this kind.
LABELS: Final[Mapping[str, str]] = {
    "kubernetes.io/hostname": "node",
    "kubernetes.io/os": "word",
    "kubernetes.io/arch": "word",
    "beta.kubernetes.io/os": "word",
    "beta.kubernetes.io/arch": "word",
    "topology.kubernetes.io/zone": "zone",
    "topology.kubernetes.io/region": "region",
    "failure-domain.beta.kubernetes.io/zone": "zone",
    "failure-domain.beta.kubernetes.io/region": "region",
    "kubernetes.io/service-name": "service",
    "node-role.kubernetes.io/control-plane": "word",
    "node-role.kubernetes.io/master": "word",
    "node-role.kubernetes.io/etcd": "word",
    "node-role.kubernetes.io/worker": "word",
    "node.kubernetes.io/exclude-disruption": "word",
    "node.kubernetes.io/not-ready": "word",
    "node.kubernetes.io/unreachable": "word",
    "node.kubernetes.io/unschedulable": "word",
    "node.kubernetes.io/disk-pressure": "word",
    "node.kubernetes.io/memory-pressure": "word",
    "node.kubernetes.io/pid-pressure": "word",
    "node.kubernetes.io/network-unavailable": "word",
    "node.cloudprovider.kubernetes.io/uninitialized": "word",
    "node.cloudprovider.kubernetes.io/shutdown": "word",
    "node.kubernetes.io/exclude-from-external-load-balancers": "word",
    "service.kubernetes.io/service-proxy-name": "label",
    "service.kubernetes.io/headless": "word",
    "endpointslice.kubernetes.io/managed-by": "manager",
    "component": "component",
    "tier": "component",
}
MANAGERS: Final = frozenset(
    ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
)
COMPONENTS: Final = frozenset(
    ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "control-plane")
)
ANNOTATIONS: Final = frozenset(
    (
        *("service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"),
        "service.alpha.kubernetes.io/tolerate-unready-endpoints",
    )
)
MODES: Final = frozenset(("Auto", "auto", "Disabled", "disabled", "true", "false"))
