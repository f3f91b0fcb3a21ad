"""The settings of a resolv.conf."""

from __future__ import annotations

from analyzer.model.addresses import Address
from analyzer.model.value import value


@value(kw_only=True)
class ResolvConf:
    """How names are looked up; None: what is not said, so that each library has its default.

    Attributes:
        nameservers: in the order in which they are asked.
        search: domains that are tried behind a name.
        ndots: a name with so many dots is tried as it is first.
        timeout: seconds.
        attempts: how often each name server is asked.
        others: options that are there and change nothing here.
    """

    nameservers: tuple[Address, ...]
    search: tuple[str, ...] = ()
    ndots: int | None = None
    timeout: int | None = None
    attempts: int | None = None
    rotate: bool = False
    others: tuple[str, ...] = ()
