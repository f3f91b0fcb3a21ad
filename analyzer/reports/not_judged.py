"""What of a dump or the objects was not evaluated, for both `loss` and `whatif`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.model.addresses import IPV4
from analyzer.reports.document import Line, Span, Style
from analyzer.reports.phrases import count, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.kubeproxy.absent import Absent
    from analyzer.kubeproxy.view import ServicePort, View


def not_judged(view: View, absent: Absent) -> tuple[str, ...]:
    """Return the names of ServicePorts whose loss is not evaluated, or not in full.

    With the IP version where the ServicePort of the same name of the other one is judged.
    """
    missing = names(view, absent.every)
    in_part = (each.name for each in view.in_part)
    return tuple(dict.fromkeys([*missing, *view.left_out, *in_part]))


def names(view: View, absent: Iterable[ServicePort]) -> tuple[str, ...]:
    """Return the names of ServicePorts that are not evaluated, as in `not_judged`."""
    judged = {service.name.text for service in view.services}
    return tuple(
        f"{each.name.text} (IPv{each.version})" if each.name.text in judged else each.name.text
        for each in absent
    )


def not_at(nodes: Sequence[str]) -> str:
    """Return why a Service is judged in part: the rules of some nodes do not have it."""
    return f"Not judged at {listed(nodes)}, whose rules do not have it"


def lines(view: View, absent: Absent) -> Iterator[Line]:
    """Yield what is not evaluated, each with the reason."""
    for says in _reasons(view, absent):
        yield Line((Span(says, Style.WARNING),))


def _reasons(view: View, absent: Absent) -> Iterator[str]:
    lacking, beyond, unled = absent.lacking, absent.beyond, absent.unled
    if view.cut:
        yield "The dump is truncated: what the ServicePorts in the rest lose is not known."
    for part in view.untold:
        why = "Not evaluated" if part.rules else "Not in the dump"
        yield f"{why}: {part.name}. What its rules drop is not known, and not counted."
    if lacking:
        what = count(len(lacking), "ServicePort of the objects", "ServicePorts of the objects")
        told = listed(names(view, lacking))
        yield f"Not judged: {what} without a rule in the dump ({told})."
    if beyond:
        version = beyond[0].version
        program = "iptables-save" if version == IPV4 else "ip6tables-save"
        what = count(len(beyond), f"ServicePort of IPv{version}", f"ServicePorts of IPv{version}")
        told = listed([each.name.text for each in beyond])
        yield f"Not judged: {what} ({told}); `{program}` prints their rules."
    if unled:
        told = listed([each.name.text for each in unled])
        what = count(len(unled), "ServicePort", "ServicePorts")
        yield f"Not judged: {what} with chains that no rule jumps to ({told})."
    if view.left_out:
        told = listed(view.left_out)
        yield f"Not completely judged, since some rules are not understood: {told}."
    of_reason: dict[str, list[str]] = {}
    for each in view.in_part:
        of_reason.setdefault(each.why, []).append(each.name)
    for why, told_of in of_reason.items():
        yield f"{why}: {listed(told_of)}."
