"""What still works and what stops when a Kubernetes component is down, with sources.

No objects and no dump are needed for it: each row is what the component's own code does.
"""

from __future__ import annotations

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@value
class Effect:
    """What happens, why, and the source.

    Attributes:
        source: file and function in kubernetes/kubernetes, or a page of documentation.
    """

    what: str
    why: str
    source: str


@value(kw_only=True)
class Component:
    """The effects of a component being down.

    Attributes:
        down: what of it is down; the rest of the cluster is alive.
        works: what still works.
        stops: what stops.
        since: from when on that is felt.
    """

    name: str
    down: str
    works: Effect
    stops: Effect
    since: Effect


_LIFECYCLE: Final = "pkg/controller/nodelifecycle/node_lifecycle_controller.go"
_PROXIER: Final = "pkg/proxy/iptables/proxier.go"
_RECONCILER: Final = "pkg/controlplane/reconcilers/lease.go"
_ELECTION: Final = "staging/src/k8s.io/client-go/tools/leaderelection/leaderelection.go"
_ETCD: Final = "etcd.io/docs, Failure modes"
_SLICES: Final = "pkg/controller/endpointslice/endpointslice_controller.go"

COMPONENTS: Final = (
    Component(
        name="kube-apiserver",
        down="all of them",
        works=Effect(
            "running pods; flows through existing rules to living endpoints",
            "kube-proxy and kubelet keep the last state that they received",
            f"{_PROXIER}, syncProxyRules; pkg/kubelet/kubelet.go, syncLoop",
        ),
        stops=Effect(
            "every change: dead endpoints stay in the rules, and no pod is replaced",
            "controllers, scheduler and kube-proxy learn of changes only from the API",
            f"{_SLICES}, syncService; {_PROXIER}, OnEndpointSliceUpdate",
        ),
        since=Effect(
            "at once; a node that restarts then has no rules and no Services",
            "kube-proxy writes no rules before it has listed Services and EndpointSlices",
            f"{_PROXIER}, isInitialized",
        ),
    ),
    Component(
        name="kube-apiserver",
        down="the process on one node, others alive",
        works=Effect(
            "all Services but default/kubernetes; other endpoints of that node",
            "the node's kubelet renews its lease through another API server, if it can",
            "staging/src/k8s.io/component-helpers/apimachinery/lease/controller.go, sync",
        ),
        stops=Effect(
            "its share of new flows to default/kubernetes",
            "its address stays an endpoint until its lease has expired",
            f"{_RECONCILER}, ReconcileEndpoints",
        ),
        since=Effect(
            "at once, for 5 to 25 s; for good with the old reconciler, master-count",
            "a lease of 15 s, renewed every 10 s, and checked by the others every 10 s",
            "pkg/controlplane/instance.go, DefaultEndpointReconcilerTTL; "
            "pkg/controlplane/reconcilers/instancecount.go",
        ),
    ),
    Component(
        name="etcd",
        down="no quorum: half of the members or more",
        works=Effect(
            "what works without an API; some reads",
            "an API server may answer from its watch cache if the latest state is not required",
            f"{_ETCD}; staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go, GetList",
        ),
        stops=Effect(
            "every write: leases, endpoints, pods",
            "a write needs more than half of all members",
            f"{_ETCD}, Majority failure",
        ),
        since=Effect(
            "at once; the load balancer may then remove the API servers",
            "/readyz checks etcd",
            "staging/src/k8s.io/apiserver/pkg/server/options/etcd.go, addEtcdHealthEndpoint",
        ),
    ),
    Component(
        name="kube-controller-manager",
        down="all of them",
        works=Effect(
            "the API, running pods, scheduling of new pods",
            "none of these needs a controller",
            "pkg/scheduler/schedule_one.go, scheduleOne",
        ),
        stops=Effect(
            "dead endpoints stay in EndpointSlices; pods are not replaced",
            "nothing marks nodes as not ready, and nothing writes EndpointSlices",
            f"{_LIFECYCLE}, monitorNodeHealth; {_SLICES}, syncService",
        ),
        since=Effect(
            "at once; with several, nothing is done for up to 24 s until another is elected",
            "a lease of 15 s, checked every 2 to 4.4 s",
            f"{_ELECTION}, acquire; staging/src/k8s.io/component-base/config/v1alpha1/defaults.go",
        ),
    ),
    Component(
        name="kube-scheduler",
        down="all of them",
        works=Effect(
            "running pods; endpoints that die are removed",
            "endpoints are the job of controllers",
            f"{_LIFECYCLE}, monitorNodeHealth",
        ),
        stops=Effect(
            "new pods stay Pending, including those that replace dead ones",
            "nothing else assigns pods to nodes; static pods need no scheduler",
            "pkg/scheduler/schedule_one.go, scheduleOne",
        ),
        since=Effect(
            "with the first pod to place; with several, up to 24 s until another is elected",
            "a lease of 15 s, checked every 2 to 4.4 s",
            f"{_ELECTION}, acquire",
        ),
    ),
    Component(
        name="cloud-controller-manager",
        down="all of them",
        works=Effect(
            "all flows within the cluster, and load balancers as they are",
            "kube-proxy does not depend on it",
            f"{_PROXIER}, syncProxyRules",
        ),
        stops=Effect(
            "load balancers keep their targets; Nodes of deleted machines stay",
            "it alone updates the cloud's targets, and checks whether nodes' machines still exist",
            "staging/src/k8s.io/cloud-provider/controllers/service/controller.go; "
            "staging/src/k8s.io/cloud-provider/controllers/nodelifecycle/"
            "node_lifecycle_controller.go",
        ),
        since=Effect(
            "with the next change of nodes or Services of type LoadBalancer",
            "what is set up stays as it is; the cloud's own health checks continue",
            "staging/src/k8s.io/cloud-provider/controllers/service/controller.go, syncService",
        ),
    ),
    Component(
        name="kubelet",
        down="that of one node",
        works=Effect(
            "the node's pods, and its rules",
            "containers belong to the runtime, rules to the kernel",
            "pkg/kubelet/kubelet.go, syncLoop",
        ),
        stops=Effect(
            "the node counts as not ready: its living endpoints leave all Services",
            "nothing renews the node's lease",
            f"{_LIFECYCLE}, monitorNodeHealth, MarkPodsNotReady",
        ),
        since=Effect(
            "after --node-monitor-grace-period (40 s, 50 s since 1.32), pods evicted 300 s later",
            "leases are checked every 5 s; pods tolerate an unreachable node for 300 s",
            "pkg/controller/nodelifecycle/config/v1alpha1/defaults.go; "
            "plugin/pkg/admission/defaulttolerationseconds/admission.go",
        ),
    ),
    Component(
        name="kube-proxy",
        down="that of one node",
        works=Effect(
            "the rules that it wrote last, in the kernel",
            "it removes them only with --cleanup",
            f"{_PROXIER}, CleanupLeftovers",
        ),
        stops=Effect(
            "the node's rules become stale: dead endpoints stay, new ones are not drawn",
            "nothing else writes these rules",
            f"{_PROXIER}, syncProxyRules",
        ),
        since=Effect(
            "with the next change of endpoints; after a restart of the node, at once",
            "rules do not survive a restart of the kernel",
            f"{_PROXIER}, syncProxyRules",
        ),
    ),
    Component(
        name="load balancer",
        down="the only one in front of the API servers",
        works=Effect(
            "what works without an API; default/kubernetes from pods",
            "that Service goes to the API servers directly",
            f"{_RECONCILER}, ReconcileEndpoints",
        ),
        stops=Effect(
            "kubelets and kube-proxy are cut off; all nodes behind it count as not ready",
            "their kubeconfig names the load balancer",
            "kubernetes.io/docs, Creating Highly Available Clusters with kubeadm; "
            f"{_LIFECYCLE}, handleDisruption",
        ),
        since=Effect(
            "at once; while no node is ready nothing is evicted, but endpoints are not ready",
            "with every zone fully disrupted the controller removes its taints",
            f"{_LIFECYCLE}, handleDisruption",
        ),
    ),
)
