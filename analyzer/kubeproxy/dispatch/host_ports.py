"""hostPorts: node ports that lead to one pod each, as the CNI plugin portmap writes them.

The names of chains and tables only tell that a rule belongs to a hostPort; where its flows go is
found by evaluating all rules, as for any frontend.

Source: containernetworking/plugins, plugins/meta/portmap/portmap_iptables.go, ``genDnatChain``,
``fillDnatRules``; for ``KUBE-HOSTPORTS`` kubernetes up to 1.23, pkg/kubelet/dockershim/network/
hostport/hostport_manager.go, ``Add``.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.kubeproxy import names
from analyzer.kubeproxy.matched.chain_rule import ChainRule
from analyzer.kubeproxy.view import Frontend, FrontendKind
from analyzer.model.iptables.matches import MatchMultiport
from analyzer.model.iptables.rules import Rule, Table
from analyzer.model.iptables.targets import Dnat, Goto, Jump
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Chains of one pod each, with its DNAT rules.
_OF_POD: Final = names.HOST_PORTS[0]
#: The chain of all hostPorts that container runtimes wrote themselves, and those of one hostPort.
_OF_ALL: Final = names.HOST_PORTS[1]
_OF_ONE: Final = "KUBE-HP-"


@value
class HostPort:
    """A hostPort, and the chain with the DNAT rule for its flows."""

    protocol: str
    frontend: Frontend
    chain: str

    @property
    def name(self) -> str:
        """What is reported in place of a Service's name: a hostPort belongs to no Service."""
        at = "" if self.frontend.address is None else f"{self.frontend}:".rpartition(":")[0]
        return f"hostPort {at}" if at else f"hostPort {self.frontend.port}"


def host_ports(nat: Table) -> Iterator[HostPort]:
    """Yield the hostPorts of a nat table, each once."""
    seen: set[tuple[str, Frontend]] = set()
    for name, chain in nat.chains.items():
        if not name.startswith((_OF_POD, _OF_ALL)):
            continue
        for rule in chain.rules:
            leads = _translates(rule) if name != _OF_ALL else _leads_to_one(rule)
            asks = ChainRule(name, rule)
            several = any(isinstance(each, MatchMultiport) for each in rule.matches)
            if not leads or several or asks.protocol is None or asks.port is None:
                continue
            frontend = Frontend(FrontendKind.HOST_PORT, asks.host, asks.port)
            if (asks.protocol, frontend) not in seen:
                seen.add((asks.protocol, frontend))
                yield HostPort(asks.protocol, frontend, name)


def _translates(rule: Rule) -> bool:
    return isinstance(rule.target, Dnat)


def _leads_to_one(rule: Rule) -> bool:
    return isinstance(rule.target, Jump | Goto) and rule.target.chain.startswith(_OF_ONE)
