"""API objects with new names: only the fields that this program reads.

Each kind has a form (`_FORMS`): which fields are kept, and their contents. What no form has is
removed: annotations, images, environments, arguments, uids, managed fields, status of containers.
Labels and selectors match as before: keys of Kubernetes' own stay, and all else gets pseudonyms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from analyzer.anonymise.naming import Naming
from analyzer.anonymise.object_words import (
    ANNOTATIONS,
    COMPONENTS,
    LABELS,
    MANAGERS,
    MODES,
    WORDS,
)
from analyzer.parsers.ages import time_from_text
from analyzer.parsers.api_objects import at, elements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TypeAlias

    #: Returns the new value; None: it is removed. The last argument is the object that it is in.
    Handle: TypeAlias = Callable[[Naming, Any, Mapping[str, Any]], Any]
    #: A handle, fields by name, or of a list what its items are.
    FieldForms: TypeAlias = "Handle | Mapping[str, FieldForms] | list[FieldForms]"

_VERSION: Final = re.compile(r"v\d{1,3}\.\d{1,3}(?:\.\d{1,3})?")


def _word(_: Naming, given: Any, __: Mapping[str, Any]) -> Any:
    return given if isinstance(given, str) and given in WORDS else None


def _number(_: Naming, given: Any, __: Mapping[str, Any]) -> Any:
    return given if isinstance(given, (int, bool)) else None


def _time(_: Naming, given: Any, __: Mapping[str, Any]) -> Any:
    when = time_from_text(given) if isinstance(given, str) else None
    return None if when is None else when.isoformat().replace("+00:00", "Z")


def _version(_: Naming, given: Any, __: Mapping[str, Any]) -> Any:
    found = _VERSION.match(given) if isinstance(given, str) else None
    return None if found is None else found[0]


def _address(naming: Naming, given: Any, _: Mapping[str, Any]) -> Any:
    if given in ("None", ""):  # a headless Service's, and one without
        return given
    return naming.names.address_text(given)


def _node_address(naming: Naming, given: Any, item: Mapping[str, Any]) -> Any:
    """Return an address of a node, or its name if the field contains that."""
    del item
    found = naming.names.address_text(given)
    return naming.names.name("node", given) if found is None and isinstance(given, str) else found


def _named(kind: str) -> Handle:
    def handle(naming: Naming, given: Any, _: Mapping[str, Any]) -> Any:
        return naming.names.name(kind, given) if isinstance(given, str) and given else None

    return handle


def _namespace(naming: Naming, given: Any, _: Mapping[str, Any]) -> Any:
    return naming.names.namespace(given) if isinstance(given, str) and given else None


def _service(naming: Naming, given: Any, item: Mapping[str, Any]) -> Any:
    if not isinstance(given, str) or not given:
        return None
    return naming.names.service(*_key(item, given))


def _key(item: Mapping[str, Any], name: str) -> tuple[str, str]:
    metadata = item.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    return (namespace if isinstance(namespace, str) else ""), name


def _port_name(naming: Naming, given: Any, item: Mapping[str, Any]) -> Any:
    if not isinstance(given, str):
        return None
    return naming.names.port(*_key(item, _owner(item)), given)


def _owner(item: Mapping[str, Any]) -> str:
    """Return the Service that an object belongs to, or is."""
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name")
    if item.get("kind") == "EndpointSlice":
        labels = metadata.get("labels")
        name = labels.get("kubernetes.io/service-name") if isinstance(labels, dict) else ""
    return name if isinstance(name, str) else ""


def _target(naming: Naming, given: Any, _: Mapping[str, Any]) -> Any:
    """Return the reference to a pod; what else an endpoint may be is not asked."""
    if not isinstance(given, dict) or given.get("kind") != "Pod":
        return None
    name, namespace = given.get("name"), given.get("namespace")
    found = {"kind": "Pod"}
    if isinstance(name, str):
        found["name"] = naming.names.name("pod", name)
    if isinstance(namespace, str):
        found["namespace"] = naming.names.namespace(namespace)
    return found


def _labels(naming: Naming, given: Any, item: Mapping[str, Any]) -> Any:
    if not isinstance(given, dict):
        return None
    found = {}
    for key, held in given.items():
        if isinstance(key, str) and (held is None or isinstance(held, str)):
            found[_label(naming, key)] = _label_value(naming, key, held or "", item)
    return found


def _label(naming: Naming, key: str) -> str:
    return key if key in LABELS or not key else naming.names.name("label", key)


def _label_value(naming: Naming, key: str, held: str, item: Mapping[str, Any]) -> str:
    names, kind = naming.names, LABELS.get(key, "label")
    if not held or (kind == "word" and held in WORDS | {"true", "false"}):
        return held
    if kind == "service":
        return names.service(*_key(item, held))
    if kind in {"node", "zone", "region"}:
        return names.name(kind, held)
    if held in {"manager": MANAGERS, "component": COMPONENTS}.get(kind, ()):
        return held
    return names.name("label", held)


def _label_key(naming: Naming, given: Any, _: Mapping[str, Any]) -> Any:
    return _label(naming, given) if isinstance(given, str) else None


def _label_text(naming: Naming, given: Any, _: Mapping[str, Any]) -> Any:
    if not isinstance(given, str):
        return None
    return naming.names.name("label", given) if given else given


def _annotations(_: Naming, given: Any, __: Mapping[str, Any]) -> Any:
    if not isinstance(given, dict):
        return None
    return {key: held for key, held in given.items() if key in ANNOTATIONS and held in MODES}


def _is_there(_: Naming, given: Any, __: Mapping[str, Any]) -> Any:
    """Say that something is there, and not what."""
    return {"removed": True} if given else None


def _are_there(_: Naming, given: Any, __: Mapping[str, Any]) -> Any:
    return [{"removed": True}] if given else None


_METADATA: Final[dict[str, FieldForms]] = {
    "namespace": _namespace,
    "labels": _labels,
    "annotations": _annotations,
    "creationTimestamp": _time,
    "deletionTimestamp": _time,
}
_POD_PLACES: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PORT: Final[dict[str, FieldForms]] = {
    "name": _port_name,
    "protocol": _word,
    "port": _number,
    "targetPort": _number,
    "nodePort": _number,
}
_ENDPOINT_ADDRESS: Final[list[FieldForms]] = [
    {"ip": _address, "nodeName": _named("node"), "targetRef": _target}
]
_FORMS: Final[Mapping[str, Mapping[str, FieldForms]]] = {
    "Service": {
        "metadata": {**_METADATA, "name": _service},
        "spec": {
            "type": _word,
            "clusterIP": _address,
            "clusterIPs": [_address],
            "ipFamilies": [_word],
            "ipFamilyPolicy": _word,
            "externalIPs": [_address],
            "ports": [_PORT],
            "selector": _labels,
            "sessionAffinity": _word,
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": _number}},
            "externalTrafficPolicy": _word,
            "internalTrafficPolicy": _word,
            "trafficDistribution": _word,
            "healthCheckNodePort": _number,
            "loadBalancerSourceRanges": [_address],
            "publishNotReadyAddresses": _number,
        },
        "status": {"loadBalancer": {"ingress": [{"ip": _address, "ipMode": _word}]}},
    },
    "EndpointSlice": {
        "metadata": {**_METADATA, "name": _named("object")},
        "addressType": _word,
        "ports": [_PORT],
        "endpoints": [
            {
                "addresses": [_address],
                "conditions": {"ready": _number, "serving": _number, "terminating": _number},
                "nodeName": _named("node"),
                "zone": _named("zone"),
                "topology": _labels,
                "targetRef": _target,
                "hints": {
                    "forZones": [{"name": _named("zone")}],
                    "forNodes": [{"name": _named("node")}],
                },
            }
        ],
    },
    "Endpoints": {
        "metadata": {**_METADATA, "name": _service},
        "subsets": [
            {
                "addresses": _ENDPOINT_ADDRESS,
                "notReadyAddresses": _ENDPOINT_ADDRESS,
                "ports": [_PORT],
            }
        ],
    },
    "Node": {
        "metadata": {**_METADATA, "name": _named("node")},
        "spec": {
            "podCIDR": _address,
            "podCIDRs": [_address],
            "providerID": _named("object"),
            "unschedulable": _number,
            "taints": [{"key": _label_key, "value": _label_text, "effect": _word}],
        },
        "status": {
            "addresses": [{"type": _word, "address": _node_address}],
            "conditions": [{"type": _word, "status": _word, "lastHeartbeatTime": _time}],
            "nodeInfo": {"kubeletVersion": _version, "kubeProxyVersion": _version},
        },
    },
    "Pod": {
        "metadata": {
            **_METADATA,
            "name": _named("pod"),
            "ownerReferences": [{"kind": _word, "controller": _number}],
        },
        "spec": {
            "nodeName": _named("node"),
            "hostNetwork": _number,
            "nodeSelector": _labels,
            "affinity": {
                kind: {_POD_PLACES: _is_there}
                for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity")
            },
            "topologySpreadConstraints": [{"whenUnsatisfiable": _word}],
            "tolerations": [
                {
                    "key": _label_key,
                    "operator": _word,
                    "value": _label_text,
                    "effect": _word,
                    "tolerationSeconds": _number,
                }
            ],
            "containers": [{"ports": [{"hostPort": _number, "containerPort": _number}]}],
            "volumes": [
                {
                    "persistentVolumeClaim": {"claimName": _named("object")},
                    "ephemeral": _is_there,
                }
            ],
            "resourceClaims": _are_there,
        },
        "status": {
            "phase": _word,
            "podIP": _address,
            "podIPs": [{"ip": _address}],
            "hostIP": _address,
            "hostIPs": [{"ip": _address}],
            "conditions": [{"type": _word, "status": _word}],
        },
    },
    "Lease": {
        "metadata": {"namespace": _namespace, "name": _named("node")},
        "spec": {"renewTime": _time},
    },
    "PersistentVolumeClaim": {
        "metadata": {**_METADATA, "name": _named("object")},
        "spec": {"volumeName": _named("object")},
    },
    "PersistentVolume": {
        "metadata": {"name": _named("object")},
        "spec": {
            "local": _is_there,
            "hostPath": _is_there,
            "nodeAffinity": {"required": {"nodeSelectorTerms": _are_there}},
        },
    },
    "ServiceCIDR": {"metadata": {"name": _named("object")}, "spec": {"cidrs": [_address]}},
}


def learn(naming: Naming, items: Iterable[Mapping[str, Any]]) -> None:
    """Note the names of ServicePorts in objects, and how they write endpoints."""
    for item in items:
        for text in _spelt(item):
            naming.chains.learn_spelling(text)
        if item.get("kind") != "Service":
            continue
        spec = item.get("spec")
        ports = spec.get("ports") if isinstance(spec, dict) else None
        namespace, name = _key(item, _owner(item))
        for port in ports if isinstance(ports, list) else ():
            called = port.get("name") if isinstance(port, dict) else None
            naming.chains.learn(
                f"{namespace}/{name}" + (f":{called}" if isinstance(called, str) and called else "")
            )


def _spelt(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses of the endpoints that an object lists."""
    for endpoint in elements(item, "endpoints"):
        yield from (each for each in elements(endpoint, "addresses") if isinstance(each, str))
    for subset in elements(item, "subsets"):
        for entry in elements(subset, "addresses"):
            if isinstance(found := at(entry, "ip"), str):
                yield found


def renamed(naming: Naming, items: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as a JSON List with new names, in the given order."""
    found = []
    for item in items:
        kind = item.get("kind")
        form = _FORMS.get(kind) if isinstance(kind, str) else None
        if form is None:
            naming.remove("object", str(kind))
            continue
        made = _formed(naming, item, form, item)
        version = _word(naming, item.get("apiVersion"), item)
        found.append({"apiVersion": version or "v1", "kind": kind, **made})
    order = {kind: number for number, kind in enumerate(_FORMS)}
    found.sort(key=lambda each: (order[each["kind"]], _sort_key(each)))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": found}, indent=1) + "\n"


def _sort_key(made: Mapping[str, Any]) -> tuple[str, str]:
    metadata = made.get("metadata") or {}
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _formed(naming: Naming, given: Any, form: FieldForms, item: Mapping[str, Any]) -> Any:
    """Return what a form keeps of a value; None: nothing."""
    if isinstance(form, list):
        if not isinstance(given, list):
            return None
        made = (_formed(naming, each, form[0], item) for each in given)
        return [each for each in made if each is not None]
    if isinstance(form, Mapping):
        if not isinstance(given, dict):
            return None
        found = {}
        for name, inner in form.items():
            if given.get(name) is not None:
                kept = _formed(naming, given[name], inner, item)
                if kept is not None:
                    found[name] = kept
        return found
    return form(naming, given, item)
