"""The names that clients look up, and the resolv.conf that they use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analyzer.clients.operations import LookUp
from analyzer.clients.resolvers import RESOLVERS
from analyzer.clients.world import cluster_dns, dns_at
from analyzer.errors import InputError, UsageError
from analyzer.inputs.files import read_file
from analyzer.kubeproxy.view import Source
from analyzer.model.resolv_conf import ResolvConf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.kubeproxy.absent import Absent
    from analyzer.kubeproxy.view import View
    from analyzer.model.addresses import Address

_DOMAIN: Final = "cluster.local"
#: Of resolv.conf: more make plans that take long. Kubernetes itself allows 32 domains.
_MOST_ATTEMPTS: Final = 20
_MOST_DOMAINS: Final = 32


class Names:
    """What options, dump and objects say about names; assumptions are noted."""

    def __init__(
        self,
        options: SimpleNamespace,
        view: View,
        absent: Absent,
        assumed: list[str],
        source: Source,
    ) -> None:
        self._options = options
        self._view = view
        self._absent = absent
        self._assumed = assumed
        self._is_outside = source is Source.EXTERNAL

    @property
    def unknown(self) -> str:
        """Why the name server of clients is not known without a resolv.conf of theirs."""
        if self._is_outside:
            return "clients outside the cluster do not use its DNS Service"
        return "the dump shows no kube-dns, or more than one DNS Service"

    def look_up(self, resolver: str, name: str, conf: ResolvConf) -> LookUp:
        """Return the look-up of a name.

        Raises:
            InputError: resolv.conf has an option that changes the plan of the resolver.
            UsageError: it is no name.
        """
        if not all(name.removesuffix(".").split(".")):
            raise UsageError(f"--lookup {name}: {name!r} is not a name (for example app.default)")
        unknown = [each for each in conf.others if each in RESOLVERS[resolver].others]
        if unknown:
            raise InputError(
                f"{self._options.resolv_conf}: what {resolver} does with `options {unknown[0]}` "
                "is not known; leave it out of the file, or choose other clients with --client"
            )
        return LookUp(
            resolver=RESOLVERS[resolver], conf=conf, name=name, exists=self._exists(name, conf)
        )

    def _exists(self, name: str, conf: ResolvConf) -> Callable[[str], bool]:
        """Return a function that says whether a candidate of a name has an address."""
        domain = next(
            (d.removeprefix("svc.") for d in conf.search if d.startswith("svc.")), _DOMAIN
        )
        known = {
            f"{each.name.service}.{each.name.namespace}.svc.{domain}"
            for each in (*self._view.services, *self._absent.lacking)
            if each.name.service and each.name.namespace
        }
        bare = name.rstrip(".")
        possible = {bare, *(f"{bare}.{each}" for each in conf.search)}
        if known & possible:
            return lambda candidate: candidate in known
        says = f"{bare} is not a Service of this cluster: it is assumed to exist as given"
        if says not in self._assumed:
            self._assumed.append(says)
        return lambda candidate: candidate == bare

    def conf(self, *, must: bool) -> ResolvConf | None:
        """Return the resolv.conf of clients; None if their name server is not known.

        Raises:
            UsageError: it is not known, but needed (`must`).
        """
        options, services = self._options, self._view.services
        if options.resolv_conf is not None:
            from analyzer.parsers.resolv_conf import resolv_conf_from_bytes

            content = read_file(options.resolv_conf, options.max_input)
            conf = resolv_conf_from_bytes(content, options.resolv_conf)
            if (conf.attempts or 0) > _MOST_ATTEMPTS:
                raise InputError(
                    f"{options.resolv_conf}: attempts:{conf.attempts} is more than "
                    f"{_MOST_ATTEMPTS}, beyond which nothing is computed"
                )
            if len(conf.search) > _MOST_DOMAINS:
                raise InputError(
                    f"{options.resolv_conf}: {len(conf.search)} search domains are more than "
                    f"{_MOST_DOMAINS}, beyond which nothing is computed"
                )
            others = [str(a) for a in conf.nameservers if dns_at(services, a) is None]
            self._assume_of(conf, others)
            return conf
        found = None if self._is_outside else cluster_dns(services)
        if found is None:
            if must:
                why = f"{self.unknown[0].upper()}{self.unknown[1:]}"
                raise UsageError(f"which name server? {why}; pass --resolv-conf FILE")
            return None
        return self._usual_conf(found[1])

    def _usual_conf(self, server: Address) -> ResolvConf:
        """Return what the kubelet writes for `dnsPolicy: ClusterFirst`.

        Source: kubernetes, pkg/kubelet/network/dns/dns.go, generateSearchesForDNSClusterFirst().
        """
        namespace = self._options.caller[0] if self._options.caller else "default"
        search = (f"{namespace}.svc.{_DOMAIN}", f"svc.{_DOMAIN}", _DOMAIN)
        says = (
            f"name server {server}, search domains of namespace {namespace} below {_DOMAIN}, "
            "ndots:5; --resolv-conf says otherwise"
        )
        if says not in self._assumed:
            self._assumed.append(says)
        return ResolvConf(nameservers=(server,), search=search, ndots=5)

    def _assume_of(self, conf: ResolvConf, others: Sequence[str]) -> None:
        told = [
            f"nothing is known about name server {each}, which is not a Service of this dump: "
            "chances are ranges"
            for each in others
        ]
        if conf.others:
            told.append(f"{', '.join(conf.others)} of resolv.conf: ignored by these clients")
        self._assumed += [each for each in told if each not in self._assumed]
