"""The mode of kube-proxy, ``--proxy-mode``, as its rules show it."""

from __future__ import annotations

import enum


@enum.unique
class ProxyMode(enum.Enum):
    """A mode; NONE: there are no rules of kube-proxy. Its value is its name in reports."""

    IPTABLES = "iptables"
    NFTABLES = "nftables"
    IPVS = "ipvs"
    USERSPACE = "userspace"
    NONE = "none"
