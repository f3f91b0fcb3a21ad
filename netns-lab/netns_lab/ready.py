"""Waiting until every link carries packets.

The kernel activates a new device's queue when its link watch gets to it, and drops until then.

Source: Linux, net/core/link_watch.c, ``linkwatch_do_dev``; net/sched/sch_generic.c,
``dev_activate``: a device that is not active has the queue ``noop``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from netns_lab.errors import LabError
from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink

#: Seconds.
_DEADLINE: Final = 5.0
_POLL: Final = 0.001


def wait_until_ready(namespaces: Iterable[Namespace]) -> None:
    """Return when each device of these namespaces that is up is also active.

    Raises:
        LabError: one is not within five seconds.
    """
    deadline = time.monotonic() + _DEADLINE
    for namespace in namespaces:
        asked = Netlink(namespace)
        try:
            while late := asked.inactive():
                if time.monotonic() > deadline:
                    raise LabError(f"{', '.join(late)} of {namespace.name} carries no packets")
                time.sleep(_POLL)
        finally:
            asked.close()
