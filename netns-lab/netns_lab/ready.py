"""Waiting until every link carries packets.

The kernel activates a new device's queue when its link watch gets to it, and drops until then.

Source: Linux, net/core/link_watch.c, ``linkwatch_do_dev``; net/sched/sch_generic.c,
``dev_activate``: a device that is not active has the queue ``noop``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from netns_lab.errors import LabError
from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink

#: Seconds.
_DEADLINE: Final = 5.0
_POLL: Final = 0.001
#: For reports of multicast groups, which are sent at once and a few ticks later.
_REPORTS: Final = 0.05


def wait_until_ready(namespaces: Iterable[Namespace]) -> None:
    """Return when each device of these namespaces that is up is also active.

    Raises:
        LabError: one is not within five seconds.
    """
    _wait(namespaces, Netlink.inactive, "carries no packets")


def wait_until_quiet(namespaces: Iterable[Namespace]) -> None:
    """Return when these namespaces send no packets of IPv6 by themselves any more.

    A device reports its multicast groups again when the link watch has seen it up: of a macvlan,
    that takes another second. Rules of the node that drop whatever they do not know count these.

    Raises:
        LabError: a device is not seen within five seconds.

    Source: Linux, net/ipv6/addrconf.c, ``addrconf_notify``: NETDEV_CHANGE; net/core/link_watch.c,
    ``linkwatch_schedule_work``; net/ipv6/mcast.c, ``mld_ifc_event``.
    """
    _wait(namespaces, Netlink.unseen, "is not seen to be up")
    time.sleep(_REPORTS)


def _wait(
    namespaces: Iterable[Namespace], late_ones: Callable[[Netlink], list[str]], says: str
) -> None:
    deadline = time.monotonic() + _DEADLINE
    for namespace in namespaces:
        asked = Netlink(namespace)
        try:
            while late := late_ones(asked):
                if time.monotonic() > deadline:
                    raise LabError(f"{', '.join(late)} of {namespace.name} {says}")
                time.sleep(_POLL)
        finally:
            asked.close()
