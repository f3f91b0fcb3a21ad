"""The addresses of pods in API objects, or their ports on their nodes' addresses.

Source: Kubernetes API reference: core/v1 Pod, Endpoints; discovery.k8s.io/v1 EndpointSlice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.parsers.api_objects import Object, addresses, at, elements, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_ENDED: Final = ("Succeeded", "Failed")


def pod_addresses(items: Sequence[Object]) -> dict[str, tuple[str, ...]]:
    """Return for each pod, by ``ns/name``, what dies with it: ``IP`` or ``IP:PORT``.

    A pod in its node's network shares the address with others: only the ports are returned at which
    EndpointSlices or Endpoints list it, and there may be none. A pod that has ended has none
    either, since another pod may have its address by now.
    """
    listed: dict[str, list[str]] = {}
    for pod, place in _places(items):
        listed.setdefault(pod, []).append(place)
    found: dict[str, tuple[str, ...]] = {}
    for item in items:
        name = _name(item)
        if item.get("kind") != "Pod" or name is None:
            continue
        if at(item, "status", "phase") in _ENDED:
            found[name] = ()
        elif at(item, "spec", "hostNetwork") is True:
            found[name] = tuple(dict.fromkeys(listed.get(name, ())))
        else:
            ips = [at(each, "ip") for each in elements(item, "status", "podIPs")]
            own = addresses(ips or [at(item, "status", "podIP")])
            found[name] = tuple(map(str, own)) or tuple(dict.fromkeys(listed.get(name, ())))
    # Without pods among the objects, EndpointSlices name them. They do not say which network a pod
    # uses, so only the listed ports count.
    for pod, places in listed.items():
        found.setdefault(pod, tuple(dict.fromkeys(places)))
    return found


def _name(item: object) -> str | None:
    namespace, name = text(at(item, "metadata", "namespace")), text(at(item, "metadata", "name"))
    return None if namespace is None or name is None else f"{namespace}/{name}"


def _places(items: Sequence[Object]) -> Iterator[tuple[str, str]]:
    """Yield each pod that is listed as an endpoint, with address and port."""
    for item in items:
        own = text(at(item, "metadata", "namespace"))
        if item.get("kind") == "EndpointSlice":
            ports = [at(each, "port") for each in elements(item, "ports")]
            for endpoint in elements(item, "endpoints"):
                listed = elements(endpoint, "addresses")
                yield from _of(at(endpoint, "targetRef"), own, listed, ports)
        elif item.get("kind") == "Endpoints":
            for subset in elements(item, "subsets"):
                ports = [at(each, "port") for each in elements(subset, "ports")]
                for key in ("addresses", "notReadyAddresses"):
                    for entry in elements(subset, key):
                        yield from _of(at(entry, "targetRef"), own, [at(entry, "ip")], ports)


def _of(
    reference: object, own: str | None, listed: Sequence[object], ports: Sequence[object]
) -> Iterator[tuple[str, str]]:
    name = text(at(reference, "name"))
    namespace = text(at(reference, "namespace")) or own
    if at(reference, "kind") != "Pod" or name is None or namespace is None:
        return
    for address in addresses(listed):
        host = f"[{address}]" if ":" in str(address) else str(address)
        for port in ports:
            if isinstance(port, int):
                yield f"{namespace}/{name}", f"{host}:{port}"
