"""The names of pods' devices in the lab, chosen such that the rules recognise them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzer.kubeproxy.matched.devices import asked_devices
from analyzer.model.devices import Side, covers
from analyzer.semantics.assumed import POD_INTERFACE, UNKNOWN
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.devices import USUALLY, NodeDevices


def pod_device(rulesets: Sequence[Rules], assumed: Mapping[str, str]) -> str:
    """Return a pattern of names, or the name of a bridge, as the prediction assumes it.

    If rules name pods' devices singly, as Calico's do, all pods are behind the first of these,
    because packets of unknown devices are dropped. If nothing is assumed, the usual names are used;
    the bounds then cover any device.
    """
    patterns = assumed.get(POD_INTERFACE, UNKNOWN)
    devices = NodeDevices(lambda: asked_devices(rulesets))
    given = USUALLY if patterns == UNKNOWN else patterns
    found = devices.of(Side.POD, given, leaving=False).patterns
    single = (name for name in sorted(devices.named) if not name.endswith("+"))
    return next((name for name in single if any(covers(each, name) for each in found)), found[0])
