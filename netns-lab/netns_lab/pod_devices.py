"""The names that devices of pods have in the lab: those by which the rules know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzer.kubeproxy.matched.devices import asked_devices
from analyzer.model.devices import Side, covers
from analyzer.semantics.assumed import POD_INTERFACE, UNKNOWN
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.devices import USUALLY, NodeDevices


def pod_device(rulesets: Sequence[Rules], assumed: Mapping[str, str]) -> str:
    """Return a pattern of names, or the name of a bridge, as the prediction assumes it.

    Where rules know single pods by their devices, as Calico's do, all stand behind the first of
    these: what is not known drops. Where nothing is assumed it is what would be: any devices are
    within the bounds then.
    """
    patterns = assumed.get(POD_INTERFACE, UNKNOWN)
    devices = NodeDevices(lambda: asked_devices(rulesets))
    given = USUALLY if patterns == UNKNOWN else patterns
    found = devices.of(Side.POD, given, leaving=False).patterns
    single = (name for name in sorted(devices.named) if not name.endswith("+"))
    return next((name for name in single if any(covers(each, name) for each in found)), found[0])
