"""ServicePorts that the API objects list, or that have chains, but that a dump has no rule for.

What kube-proxy ignores (headless Services, ExternalName, its label of other proxies) is not a
ServicePort of the objects to begin with. One without endpoints is refused by a rule of the filter
table, so it is expected if that table can be seen.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.kubeproxy import names
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import Frontend, FrontendKind, ServicePort, View
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.services import ApiServicePort
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.addresses import Address
    from analyzer.semantics.base_chains import Rules

    #: What rules match on of a frontend: protocol, address and port; no address: a NodePort.
    FrontendMatch = tuple[str, Address | None, int | None]

#: Chains that refuse flows to Services without endpoints.
_REFUSING: Final = (names.SERVICES, names.EXTERNAL_SERVICES)


@value(kw_only=True)
class Absent:
    """ServicePorts of the objects that a dump does not show; they have frontends and no routes.

    Attributes:
        lacking: of the dump's IP versions: no rule is for them.
        beyond: of the other IP version, whose rules are in a dump of their own.
        unled: of no objects: the dump has chains of them, and no rule that jumps to these.
    """

    lacking: tuple[ServicePort, ...] = ()
    beyond: tuple[ServicePort, ...] = ()
    unled: tuple[ServicePort, ...] = ()

    @property
    def every(self) -> tuple[ServicePort, ...]:
        """All of them."""
        return (*self.lacking, *self.beyond, *self.unled)


def absent(
    ruleset: Rules,
    view: View,
    specs: Iterable[ApiServicePort],
    others: Iterable[ApiServicePort],
    *,
    lists_endpoints: bool = True,
) -> Absent:
    """Return the ServicePorts that are in the objects but not in the dump.

    `specs` are the ServicePorts of the dump's IP versions, `others` those of the other one. If the
    objects list no endpoints, any may have some, so that there should be rules.
    """
    tells_refusals = _tells_refusals(ruleset, view.mode)
    return absent_of(
        view, specs, others, tells_refusals=tells_refusals, lists_endpoints=lists_endpoints
    )


def absent_of(
    view: View,
    specs: Iterable[ApiServicePort],
    others: Iterable[ApiServicePort],
    *,
    tells_refusals: bool,
    lists_endpoints: bool,
) -> Absent:
    """Return the same of rules that show Services without endpoints if `tells_refusals`."""
    wanted = [
        each for each in specs if tells_refusals or _has_endpoints_everywhere(each, lists_endpoints)
    ]
    # Without objects nothing is lacking, and a large dump has many Services to look through.
    lacking = tuple(_lacking(view, wanted)) if wanted else ()
    told = {each.name.text for each in (*view.services, *lacking)} if view.unled else ()
    unled = [unshown(name) for name in view.unled if name not in told]
    beyond = tuple(_service(spec) for spec in others)
    return Absent(lacking=lacking, beyond=beyond, unled=tuple(unled))


def unshown(name: str) -> ServicePort:
    """Return a ServicePort of which nothing but the name is known."""
    return ServicePort(name=names.service_name(name), protocol="", frontends=(), routes=())


def _lacking(view: View, specs: Iterable[ApiServicePort]) -> Iterator[ServicePort]:
    """Yield the ServicePorts of the objects that should have a rule and have none."""
    there = {(s.name.text, s.protocol, s.version) for s in view.services}
    places = {place for service in view.services for place in _places(service)}
    for spec in specs:
        service = _service(spec)
        named = there & {(spec.name, spec.protocol, v) for v in (service.version, None)}
        if not named and places.isdisjoint(_places(service)):
            yield service


def _service(spec: ApiServicePort) -> ServicePort:
    return ServicePort(
        name=names.service_name(spec.name),
        protocol=spec.protocol,
        frontends=tuple(
            Frontend(FrontendKind(kind), address, port) for kind, address, port in spec.frontends
        ),
        routes=(),
        affinity=spec.affinity,
    )


def _places(service: ServicePort) -> Iterator[FrontendMatch]:
    for frontend in service.frontends:
        if frontend.address is not None:
            yield service.protocol, frontend.address, frontend.port


def _tells_refusals(ruleset: Rules, mode: ProxyMode) -> bool:
    if not isinstance(ruleset, Ruleset):
        return mode is ProxyMode.NFTABLES  # nft does not print REJECT of iptables-nft
    table = ruleset.tables.get("filter")
    return table is not None and table.complete and any(each in table.chains for each in _REFUSING)


def _has_endpoints_everywhere(spec: ApiServicePort, lists_endpoints: bool) -> bool:
    """Return whether every node's nat table leads to some endpoint."""
    has_some = not lists_endpoints or any(each.is_certain for each in spec.endpoints)
    return not spec.internal_local and has_some
