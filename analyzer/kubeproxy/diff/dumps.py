"""Whether two dumps can be compared at all, and for which IP versions."""

from __future__ import annotations

from analyzer.errors import UsageError
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import View
from analyzer.model.value import value

#: Modes whose rules do not show where flows go.
_WITHOUT_ENDPOINTS = {
    ProxyMode.IPVS: "endpoints are in the kernel's IPVS tables",
    ProxyMode.USERSPACE: "its own process chooses endpoints",
}


@value
class Dump:
    """A dump by its file's name; `versions`: the IP versions of its rules, 4 or 6 or both."""

    file: str
    view: View
    versions: tuple[int, ...]


def versions_of_both(a: Dump, b: Dump) -> tuple[int, ...]:
    """Return the IP versions for which both dumps have rules.

    Raises:
        UsageError: there is none, or one of them does not show where flows go.
    """
    for dump in (a, b):
        because = _WITHOUT_ENDPOINTS.get(dump.view.mode)
        if because is not None:
            raise UsageError(
                f"{dump.file}: kube-proxy runs in {dump.view.mode.value} mode, where {because}; "
                "only rules of iptables and nftables mode can be compared"
            )
    if a.view.mode is b.view.mode is ProxyMode.NONE:
        raise UsageError(
            f"{a.file} and {b.file}: neither has rules of kube-proxy, so there is nothing to "
            "compare; in nftables mode `nft list ruleset` shows them, in iptables mode "
            "`iptables-save` with the backend (legacy or nft) that kube-proxy uses"
        )
    both = tuple(version for version in a.versions if version in b.versions)
    if not both:
        raise UsageError(
            f"{a.file} has rules of IPv{a.versions[0]} and {b.file} of IPv{b.versions[0]}: only "
            "dumps of the same IP version can be compared"
        )
    return both
