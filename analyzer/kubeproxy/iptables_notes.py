"""Diagnostics about an iptables dump as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.kubeproxy import names
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.untold import Untold, of_frames
from analyzer.model.diagnostics import Diagnostic, Severity, partial_warning
from analyzer.model.iptables.rules import Ruleset

TYPE_CHECKING = False
if TYPE_CHECKING:  # only loaded for dumps that need it
    from typing import Final

    from analyzer.kubeproxy.dispatch.entries import OddRule
    from analyzer.kubeproxy.view import ServicePort
    from analyzer.model.iptables.rules import Rule, Table
    from analyzer.semantics.base_chains import Rules

#: Chains of kube-proxy's other modes, with the message for a dump that has them.
_OTHER_MODES: Final = {
    "KUBE-PORTALS-CONTAINER": (
        ProxyMode.USERSPACE,
        "kube-proxy runs in userspace mode: its rules redirect to a port of its own process, "
        "not to endpoints, so they show no shares",
    ),
    "KUBE-LOAD-BALANCER": (
        ProxyMode.IPVS,
        "kube-proxy runs in ipvs mode: endpoints are in the kernel's IPVS tables, not in "
        "these rules; `ipvsadm-save -n` would show them",
    ),
}


class Notes:
    """The diagnostics of a dump; `whole` is what was read, before anything was added."""

    def __init__(self, ruleset: Ruleset, whole: Ruleset) -> None:
        self._ruleset = ruleset
        self._whole = whole

    def mode(self, nat: Table, *, shown: bool) -> tuple[ProxyMode, list[Diagnostic]]:
        """Return kube-proxy's mode, and why the dump shows no Services; `shown`: it shows some."""
        if shown:
            return ProxyMode.IPTABLES, []
        for chain, (mode, message) in _OTHER_MODES.items():
            if chain in nat.chains:
                return mode, [self._warning(f"{mode.value}-mode", message)]
        if names.SERVICES in nat.chains:
            return ProxyMode.IPTABLES, []
        message = (
            "no chain KUBE-SERVICES in table nat: kube-proxy has not written these rules, or "
            f"the dump leaves them out; {self._where_else()}"
        )
        return ProxyMode.NONE, [self._warning("no-kube-proxy-chains", message)]

    def exempted(self, services: Sequence[ServicePort]) -> list[Diagnostic]:
        """Return what to say of flows that rules exempt from conntrack."""
        raw = self._ruleset.tables.get("raw")
        if raw is None or not raw.rules:
            return []
        from analyzer.kubeproxy.rows.texts import EXEMPTING, says

        if not says(raw, *EXEMPTING):
            return []
        from analyzer.kubeproxy.routes import untracked

        places = untracked.untracked(self._ruleset)
        return untracked.node_local_dns(services, places, self._ruleset.file)

    def has_all_of_nat(self) -> bool:
        """Return whether the dump has all rules that lead to Services."""
        nat = self._whole.tables.get("nat")
        if nat is not None:
            return nat.complete
        return all(table.complete for table in self._whole.tables.values())

    def untold(self, others: Sequence[Rules]) -> Iterator[tuple[Untold, Diagnostic]]:
        """Yield what of the node's rules is not evaluated, where flows may be dropped."""
        family = self._whole.family
        program = "iptables-save" if family == "ip" else "ip6tables-save"
        whole = f"pass the whole output of {program}"
        dumps = [each for each in others if isinstance(each, Ruleset) and each.family == family]
        if "filter" not in self._whole.tables and not any(map(self._has_filter, others)):
            says = f"table filter, to which kube-proxy writes, is not in the dump; {whole}"
            yield Untold("table filter"), self._warning("missing-table", says)
        else:
            dumps.insert(0, self._whole)
        for each in dumps:
            if each.ends_early and all(table.complete for table in each.tables.values()):
                last = f"what may follow table {[*each.tables][-1]}"
                says = f"the dump ends before its last line: {last} is not known; {whole}"
                yield Untold(last), partial_warning("early-end", says, each.file)
            for name in each.not_shown:
                of_nft = any(
                    not isinstance(o, Ruleset) and (family, name) in o.tables for o in others
                )
                if not of_nft and (name in each.tables or name != "filter"):
                    what = f"what `{program}` leaves out of table {name}"
                    says = f"table {name} has rules that {program} does not print: pass the output "
                    says += f"of `nft list table {family} {name}` with --with"
                    yield Untold(what), partial_warning("not-shown", says, each.file)
        yield from of_frames(others)

    def _has_filter(self, other: Rules) -> bool:
        """Return whether another dump has the filter table to which kube-proxy writes.

        A table of that name that another program has in the other backend is not that.
        """
        called = ("filter", (self._whole.family, "filter"))
        found = [table for name, table in other.tables.items() if name in called]
        own = self._whole.backend
        theirs = other.backend if isinstance(other, Ruleset) else "nft"
        if own is not None and theirs is not None:
            return bool(found) and own == theirs
        return any(chain.startswith("KUBE-") for table in found for chain in table.chains)

    def _where_else(self) -> str:
        """Return what to run on a node whose dump shows nothing of kube-proxy."""
        program = "iptables" if self._whole.family == "ip" else "ip6tables"
        if self._whole.legacy_beside:
            return f"the node has tables of {program}-legacy too: run `{program}-legacy-save`"
        if not all(table.complete for table in self._whole.tables.values()):
            return f"it is a fragment of a dump: give the whole output of `{program}-save`"
        if "nat" not in self._whole.tables:
            return f"table nat is not in it: run `{program}-save` without -t"
        backends = {"legacy": ("nft",), "nft": ("legacy",)}
        others = backends.get(self._whole.backend or "", ("nft", "legacy"))
        programs = [f"`{program}-{backend}-save`" for backend in others]
        return f"run {' and '.join(programs)}, or `nft list ruleset` for nftables mode"

    def _warning(self, code: str, message: str) -> Diagnostic:
        return partial_warning(code, message, self._ruleset.file)

    def half(self) -> Diagnostic:
        """Return a warning that the node has tables of iptables-legacy too."""
        program = "iptables" if self._whole.family == "ip" else "ip6tables"
        return Diagnostic(
            severity=Severity.WARNING,
            code="legacy-tables",
            message=f"the node has tables of {program}-legacy too, which are not in this dump: add "
            f"the output of `{program}-legacy-save` with --with",
            file=self._ruleset.file,
        )

    def nameless(self, number: int) -> Diagnostic:
        """Return a note that some frontends have no name."""
        return Diagnostic(
            severity=Severity.INFO,
            code="no-comment",
            message=(
                f"{number} frontends have no kube-proxy comment: the frontend is shown instead of "
                "its Service's name, and its kind is taken from the chain that it jumps to; pass "
                "--objects for both"
            ),
            file=self._ruleset.file,
        )

    def unfilled(self, service: ServicePort) -> Diagnostic:
        """Return a warning that chains of a Service have no rule."""
        frontends = ", ".join(map(str, service.unfilled))
        return self._warning(
            "empty-chain",
            f"the chain of {service.name.text} for {frontends} is empty: was the dump taken in "
            "the middle of a sync? Whether there are endpoints is not known",
        )

    def odd_rules(self, odd: Sequence[OddRule]) -> Iterator[Diagnostic]:
        """Yield warnings about rules that are not for a single address and port."""
        lost = [each.rule for each in odd if each.lacks_port]
        other = [each.rule for each in odd if not each.lacks_port]
        if lost:
            yield self._left_out(
                "lost-port",
                "a rule of a Service matches an address and no port, which kube-proxy never "
                "writes: the dump was taken with an iptables older than the one that wrote the "
                "rules; the shares are those of the flows that the rule was written for",
                lost,
            )
        if other:
            message = (
                "a rule of a Service is not for one address and port, or is not understood; the "
                "chain that it jumps to is left out"
            )
            yield self._left_out("odd-frontend", message, other)

    def _left_out(self, code: str, message: str, rules: list[Rule]) -> Diagnostic:
        more = f" (and {len(rules) - 1} more)" if rules[1:] else ""
        return partial_warning(code, message + more, self._ruleset.file, rules[0].location.line)
