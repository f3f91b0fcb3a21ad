"""The API objects that the gate reads, and the fields that each may have.

What says nothing of where pods are is only looked at as far as its kind goes: map, list, text.

Source: Kubernetes API reference 1.36, apps/v1, core/v1, autoscaling/v2, meta/v1 (LabelSelector,
ObjectMeta); pkg/apis/core/validation/validation.go for the words and numbers that are taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from analyzer.gate.shapes import (
    MalformedError,
    address,
    amount,
    anything,
    boolean,
    expression,
    fields,
    list_of,
    map_,
    map_of,
    name,
    number,
    one_of,
    port,
    text,
)
from analyzer.model.value import value
from analyzer.parsers.api_objects import at
from analyzer.parsers.manifests import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.gate.shapes import ShapeCheck, UnknownFields

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
MOST_REPLICAS: Final = 10_000
_MOST_PORT: Final = 65_535
_MOST_WEIGHT: Final = 100

_PROTOCOL: Final = one_of("TCP", "UDP", "SCTP")
_LABELS: Final = map_of(text)
_MAPS: Final = list_of(map_)
_TEXTS: Final = list_of(text)
_ADDRESSES: Final = list_of(address)
_COUNT: Final = number(0)

_METADATA: Final = fields(
    name=name, generateName=name, namespace=name, labels=_LABELS, annotations=_LABELS,
    selfLink=text, uid=text, resourceVersion=text, generation=_COUNT, creationTimestamp=text,
    deletionTimestamp=text, deletionGracePeriodSeconds=_COUNT, ownerReferences=_MAPS,
    finalizers=_TEXTS, managedFields=_MAPS,
)  # fmt: skip


def _check_named(given: object, path: str, unknown: UnknownFields) -> None:
    """Check the metadata of an object, which has a name, or gets one from the API."""
    _METADATA(given, path, unknown)
    if at(given, "name") is None and at(given, "generateName") is None:
        raise MalformedError(f"{path}.name: missing")


_BY_LABELS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_LABEL_SELECTOR: Final = fields(
    matchLabels=_LABELS, matchExpressions=list_of(expression(*_BY_LABELS))
)
_NODE_EXPRESSIONS: Final = list_of(expression(*_BY_LABELS, "Gt", "Lt"))
_NODE_TERM: Final = fields(matchExpressions=_NODE_EXPRESSIONS, matchFields=_NODE_EXPRESSIONS)
_POD_TERM: Final = fields(
    ("topologyKey",),
    topologyKey=name, labelSelector=_LABEL_SELECTOR, namespaces=_TEXTS,
    namespaceSelector=_LABEL_SELECTOR, matchLabelKeys=_TEXTS, mismatchLabelKeys=_TEXTS,
)  # fmt: skip
_WEIGHT: Final = number(1, _MOST_WEIGHT)
_BESIDE: Final = fields(
    **{
        _REQUIRED: list_of(_POD_TERM),
        _PREFERRED: list_of(
            fields(("weight", "podAffinityTerm"), weight=_WEIGHT, podAffinityTerm=_POD_TERM)
        ),
    }
)
_AFFINITY: Final = fields(
    nodeAffinity=fields(
        **{
            _REQUIRED: fields(("nodeSelectorTerms",), nodeSelectorTerms=list_of(_NODE_TERM)),
            _PREFERRED: list_of(
                fields(("weight", "preference"), weight=_WEIGHT, preference=_NODE_TERM)
            ),
        }
    ),
    podAffinity=_BESIDE,
    podAntiAffinity=_BESIDE,
)
_POLICY: Final = one_of("Honor", "Ignore")
_SPREAD: Final = fields(
    ("maxSkew", "topologyKey", "whenUnsatisfiable"),
    maxSkew=number(1), topologyKey=name, minDomains=number(1), labelSelector=_LABEL_SELECTOR,
    whenUnsatisfiable=one_of("DoNotSchedule", "ScheduleAnyway"), nodeAffinityPolicy=_POLICY,
    nodeTaintsPolicy=_POLICY, matchLabelKeys=_TEXTS,
)  # fmt: skip
_EFFECT: Final = one_of("", "NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION: Final = fields(
    key=text, operator=one_of("", "Exists", "Equal"), value=text, effect=_EFFECT,
    tolerationSeconds=number(-(1 << 63)),
)  # fmt: skip
_AMOUNTS: Final = map_of(amount)
_RESOURCES: Final = fields(limits=_AMOUNTS, requests=_AMOUNTS, claims=_MAPS)
_CONTAINER: Final = fields(
    name=text, image=text, command=_TEXTS, args=_TEXTS, workingDir=text, envFrom=_MAPS, env=_MAPS,
    ports=list_of(
        fields(
            ("containerPort",),
            containerPort=number(1, _MOST_PORT), hostPort=number(0, _MOST_PORT), name=text,
            protocol=_PROTOCOL, hostIP=address,
        )
    ),
    resources=_RESOURCES, resizePolicy=_MAPS, restartPolicy=text, restartPolicyRules=_MAPS,
    volumeMounts=_MAPS, volumeDevices=_MAPS, livenessProbe=map_, readinessProbe=map_,
    startupProbe=map_, lifecycle=map_, terminationMessagePath=text, terminationMessagePolicy=text,
    imagePullPolicy=text, securityContext=map_, stdin=boolean, stdinOnce=boolean, tty=boolean,
)  # fmt: skip
_VOLUME: Final = map_of(anything)
_POD_SPEC: Final = fields(
    ("containers",),
    containers=list_of(_CONTAINER), initContainers=list_of(_CONTAINER), ephemeralContainers=_MAPS,
    volumes=list_of(_VOLUME), restartPolicy=text, terminationGracePeriodSeconds=number(-1),
    activeDeadlineSeconds=_COUNT, dnsPolicy=text, nodeSelector=_LABELS, serviceAccountName=text,
    serviceAccount=text, automountServiceAccountToken=boolean, nodeName=text, hostNetwork=boolean,
    hostPID=boolean, hostIPC=boolean, shareProcessNamespace=boolean, securityContext=map_,
    imagePullSecrets=_MAPS, hostname=text, subdomain=text, affinity=_AFFINITY, schedulerName=text,
    tolerations=list_of(_TOLERATION), hostAliases=_MAPS, priorityClassName=text,
    priority=number(-(1 << 31)), dnsConfig=map_, readinessGates=_MAPS, runtimeClassName=text,
    enableServiceLinks=boolean, preemptionPolicy=text, overhead=_AMOUNTS,
    topologySpreadConstraints=list_of(_SPREAD), setHostnameAsFQDN=boolean, os=map_,
    hostUsers=boolean, schedulingGates=_MAPS, resourceClaims=_MAPS, resources=_RESOURCES,
    hostnameOverride=text, workloadRef=map_, schedulingGroup=map_,
)  # fmt: skip
_TEMPLATE: Final = fields(("spec",), metadata=_METADATA, spec=_POD_SPEC)
_REPLICAS: Final = number(0, MOST_REPLICAS)


def _object(spec: ShapeCheck, *needed: str) -> ShapeCheck:
    """Return the check of an object with such a spec."""
    return fields(
        ("metadata", *needed),
        apiVersion=text,
        kind=text,
        metadata=_check_named,
        spec=spec,
        status=anything,
    )


_SERVICE: Final = fields(
    ports=list_of(
        fields(
            ("port",),
            name=text, protocol=_PROTOCOL, appProtocol=text, port=number(1, _MOST_PORT),
            targetPort=port, nodePort=number(0, _MOST_PORT),
        )
    ),
    selector=_LABELS, clusterIP=address, clusterIPs=_ADDRESSES, externalIPs=_ADDRESSES,
    loadBalancerIP=text,
    type=one_of("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
    sessionAffinity=one_of("None", "ClientIP"), loadBalancerSourceRanges=_TEXTS, externalName=text,
    externalTrafficPolicy=one_of("", "Cluster", "Local"),
    internalTrafficPolicy=one_of("Cluster", "Local"), healthCheckNodePort=number(0, _MOST_PORT),
    publishNotReadyAddresses=boolean,
    sessionAffinityConfig=fields(clientIP=fields(timeoutSeconds=number(1, 86_400))),
    ipFamilies=list_of(one_of("IPv4", "IPv6")),
    ipFamilyPolicy=one_of("SingleStack", "PreferDualStack", "RequireDualStack"),
    allocateLoadBalancerNodePorts=boolean, loadBalancerClass=text,
    trafficDistribution=one_of("PreferClose", "PreferSameZone", "PreferSameNode"),
)  # fmt: skip
_OF_WORKLOAD: Final = {
    "selector": _LABEL_SELECTOR,
    "template": _TEMPLATE,
    "minReadySeconds": _COUNT,
    "revisionHistoryLimit": _COUNT,
}
_ORDINALS: Final = fields(start=_COUNT)

#: By kind: what a manifest of it may be.
MANIFESTS: Final[Mapping[str, ShapeCheck]] = {
    "Deployment": _object(
        fields(
            ("selector", "template"),
            **_OF_WORKLOAD, replicas=_REPLICAS, strategy=map_, paused=boolean,
            progressDeadlineSeconds=_COUNT,
        ),
        "spec",
    ),
    "ReplicaSet": _object(
        fields(("selector", "template"), **_OF_WORKLOAD, replicas=_REPLICAS), "spec"
    ),
    "StatefulSet": _object(
        fields(
            ("selector", "template"),
            **_OF_WORKLOAD, replicas=_REPLICAS, volumeClaimTemplates=_MAPS, serviceName=text,
            podManagementPolicy=text, updateStrategy=map_, ordinals=_ORDINALS,
            persistentVolumeClaimRetentionPolicy=map_,
        ),
        "spec",
    ),
    "DaemonSet": _object(
        fields(("selector", "template"), **_OF_WORKLOAD, updateStrategy=map_), "spec"
    ),
    "Pod": _object(_POD_SPEC, "spec"),
    "Service": _object(_SERVICE, "spec"),
    "HorizontalPodAutoscaler": _object(
        fields(
            ("scaleTargetRef", "maxReplicas"),
            scaleTargetRef=fields(("kind", "name"), apiVersion=text, kind=name, name=name),
            minReplicas=_REPLICAS, maxReplicas=number(1, MOST_REPLICAS), metrics=_MAPS,
            behavior=map_, targetCPUUtilizationPercentage=_COUNT,
        ),
        "spec",
    ),
    "Namespace": _object(map_),
}  # fmt: skip

_CONDITIONS: Final = list_of(fields(type=text, status=text))
#: By kind: what is looked at of objects of a cluster, which an API server has taken before.
OF_CLUSTER: Final[Mapping[str, ShapeCheck]] = {
    "Node": fields(
        metadata=_METADATA,
        spec=fields(
            taints=list_of(fields(key=text, value=text, effect=_EFFECT)), unschedulable=boolean,
            podCIDR=text, podCIDRs=_TEXTS, providerID=text,
        ),
        status=fields(allocatable=_AMOUNTS, conditions=_CONDITIONS, addresses=_MAPS),
    ),
    "Pod": fields(
        metadata=_METADATA, spec=_POD_SPEC, status=fields(phase=text, conditions=_CONDITIONS)
    ),
    "Namespace": fields(metadata=_METADATA),
}  # fmt: skip


@value
class UnknownField:
    """A field of a manifest that the API does not have, or that is newer than this program.

    Attributes:
        path: in the object, such as ``spec.template.spec.affinty``.
        known: the fields that are allowed there.
    """

    manifest: Manifest
    path: str
    known: Collection[str]


def check_manifest(given: Manifest) -> Iterator[UnknownField]:
    """Yield the unknown fields of a manifest.

    Raises:
        ParseError: a value in it is none that the API takes.
    """
    unknown: UnknownFields = []
    try:
        MANIFESTS[given.kind](given.item, "", unknown)
    except MalformedError as error:
        given.fail(explained(str(error), [path for path, _ in unknown]))
    yield from (UnknownField(given, path, known) for path, known in unknown)


def explained(message: str, unknown: Sequence[str]) -> str:
    """Return why a manifest is refused, with an unknown field that may be the cause."""
    return f"{message}; unknown field: {unknown[0]}" if unknown else message


def check_of_cluster(item: object, kind: str) -> None:
    """Check an object of a cluster; kinds that are not read may hold anything.

    Raises:
        MalformedError: a value is none that the API takes.
    """
    check = OF_CLUSTER.get(kind)
    if check is not None:
        check(item, "", [])
