"""The measures, by name: a new one is one file and one row in the table.

Of names with + between them one is done after the other.
"""

from __future__ import annotations

from analyzer.advice.measure import (
    ChangeObjects,
    ClusterState,
    Measure,
    NamespacedName,
    Refused,
    Subject,
)
from analyzer.advice.measures import (
    every_node,
    load_balancer,
    local,
    new_node,
    node_local_dns,
    off_control_plane,
    on_control_plane,
    pod_ips,
    replica,
    replica_beside,
    same_node,
    same_zone,
    second_master,
    spread,
    third_master,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_EVERY: Final = (
    replica.MEASURE,
    replica_beside.MEASURE,
    spread.MEASURE,
    every_node.MEASURE,
    off_control_plane.MEASURE,
    on_control_plane.MEASURE,
    local.MEASURE,
    same_zone.MEASURE,
    same_node.MEASURE,
    new_node.MEASURE,
    node_local_dns.MEASURE,
    pod_ips.MEASURE,
    second_master.MEASURE,
    third_master.MEASURE,
    load_balancer.MEASURE,
)
MEASURES: Final[dict[str, Measure]] = {each.name: each for each in _EVERY}
#: The default measures: a node without a pod buys nothing alone.
USUAL: Final = (
    *(each.name for each in _EVERY if each is not new_node.MEASURE),
    "new-node+replica",
    "every-node+local",
    "every-node+same-node",
    "third-master+load-balancer",
)


def measure_of(name: str) -> Measure | None:
    """Return a measure, or several combined; None if no measure has that name.

    What is for the API's own Service goes with nothing else.
    """
    parts = [MEASURES.get(each) for each in name.split("+")]
    known = [each for each in parts if each is not None]
    subjects = {each.subject for each in known}
    if len(known) != len(parts) or (Subject.API in subjects and len(subjects) > 1):
        return None
    if len(known) == 1:
        return known[0]
    return Measure(
        name=name,
        says="; ".join(each.says for each in known),
        subject=Subject.DNS if Subject.DNS in subjects else known[0].subject,
        change=_one_after_the_other([each.change for each in known]),
        unsaid=tuple(dict.fromkeys(why for each in known for why in each.unsaid)),
    )


def _one_after_the_other(changes: list[ChangeObjects]) -> ChangeObjects:
    def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
        for each in changes:
            found = each(situation, key)
            if isinstance(found, Refused):
                return found
            situation = found
        return situation

    return change
