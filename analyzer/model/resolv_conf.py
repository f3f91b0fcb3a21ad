"""The settings of a resolv.conf."""

from __future__ import annotations

from analyzer.model.addresses import Address
from analyzer.model.value import value


@value(kw_only=True)
class ResolvConf:
    """How names are looked up; settings that are absent are None: each library has its default.

    Attributes:
        nameservers: in the order in which they are queried.
        search: domains that are appended to a name.
        ndots: a name with at least this many dots is tried as it is first.
        timeout: seconds.
        attempts: how often each name server is queried.
        others: options that are present and have no effect here.
    """

    nameservers: tuple[Address, ...]
    search: tuple[str, ...] = ()
    ndots: int | None = None
    timeout: int | None = None
    attempts: int | None = None
    rotate: bool = False
    others: tuple[str, ...] = ()
