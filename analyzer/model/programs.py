"""Which program wrote a rule, as far as names and comments reveal it.

This table has no influence on what a rule does: only its matches and target count.

Source: the programs' own sources and documentation, for the names of their chains and comments.
"""

from __future__ import annotations

import re
from functools import cache

from analyzer.model.hooks import TABLES
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@value(kw_only=True)
class Program:
    """One program, and the regular expressions by which its rules are recognised.

    Attributes:
        chains: beginnings of the names of its chains.
        comments: beginnings of its comments.
        devices: devices that it creates, for rules in chains of no program.
        tables: names of its nft tables.
        only_in_nat: beginnings of the names of chains that are in the nat table only.
        ending: beginnings of the names of chains whose last rule all packets match, and none of
            which continues after it.
    """

    name: str
    chains: str = ""
    comments: str = ""
    devices: str = ""
    tables: str = ""
    only_in_nat: str = ""
    ending: str = ""


KUBE_PROXY: Final = "kube-proxy"

#: All known programs; if two match, the first counts.
PROGRAMS: Final = (
    Program(
        name="kube-router",
        chains=r"KUBE-(?:NWPLCY|POD-FW|ROUTER|NETWORK-POLICY|SRC|DST)(?:-|$)",
        comments=r"kube-router|rule to jump traffic .* POD name:",
        devices=r"kube-bridge",
    ),
    Program(name="kubelet's host ports", chains=r"KUBE-(?:HOSTPORTS$|HP-)"),
    Program(
        name="kubelet",
        chains=r"KUBE-(?:KUBELET-|FIREWALL$|IPTABLES-HINT$)",
        comments=r"block incoming localnet connections",
    ),
    Program(
        name=KUBE_PROXY,
        chains=r"KUBE-(?:SERVICES|SV[CL]-|SEP-|EXT-|FW-|XLB-|NODEPORTS|NODE-PORT|EXTERNAL-SERVICES"
        r"|FORWARD|POSTROUTING|MARK-(?:MASQ|DROP)|PROXY-|LOAD-BALANCER|SOURCE-RANGES)",
        tables=r"kube-proxy$",
        only_in_nat=r"KUBE-(?:SEP|SVC|SVL|EXT|XLB|FW|MARK-MASQ)",
        ending=r"KUBE-(?:SEP|SVC|SVL)-",
    ),
    Program(
        name="Calico",
        chains=r"cali[-:]|felix-",
        comments=r"cali:",
        devices=r"cali|tunl0|vxlan\.calico|wireguard\.cali",
        tables=r"calico$",
    ),
    Program(
        name="Cilium",
        chains=r"CILIUM_|OLD_CILIUM_",
        comments=r"cilium[: -]",
        devices=r"cilium_|lxc",
    ),
    Program(
        name="Docker",
        chains=r"DOCKER(?:-|$)",
        devices=r"docker0|docker_gwbridge|br-[0-9a-f]{12}",
        tables=r"docker-bridges$",
    ),
    Program(name="ufw", chains=r"ufw6?-"),
    Program(
        name="firewalld",
        chains=r"(?:INPUT|OUTPUT|FORWARD|PREROUTING|POSTROUTING)_(?:direct|ZONES|POLICIES|IN_|OUT_)"
        r"|(?:IN|OUT|FWD[IO]?|PRE|POST)_[a-z]+(?:_(?:log|deny|allow|pre|post))?$",
        tables=r"firewalld$",
    ),
    Program(
        name="CNI portmap",
        chains=r"CNI-(?:HOSTPORT|DN|SN)-",
        comments=r"CNI portfwd|dnat name: ",
        tables=r"cni_hostport$",
    ),
    Program(
        name="CNI", chains=r"CNI-(?:[0-9a-f]{24}$|FORWARD$|ADMIN$|ISOLATION)", comments=r'name: "'
    ),
    Program(
        name="flannel",
        chains=r"FLANNEL-",
        comments=r"flanneld ",
        devices=r"flannel\.",
        tables=r"flannel-ipv[46]$",
    ),
    Program(name="AWS VPC CNI", chains=r"AWS-(?:SNAT|CONNMARK)-CHAIN-", comments=r"AWS, "),
    Program(name="NodeLocal DNSCache", comments=r"NodeLocal DNS Cache: ", devices=r"nodelocaldns"),
    Program(name="Istio", chains=r"ISTIO_", tables=r"istio"),
    Program(name="Linkerd", chains=r"PROXY_INIT_", comments=r"proxy-init/"),
    Program(name="Weave Net", chains=r"WEAVE(?:-|$)", devices=r"weave|vethwe-"),
    Program(name="Antrea", chains=r"ANTREA-", comments=r"Antrea: ", devices=r"antrea-gw"),
    Program(name="OVN-Kubernetes", chains=r"OVN-KUBE-", tables=r"ovn-kubernetes$"),
    Program(
        name="Kube-OVN",
        chains=r"OVN-(?:PREROUTING|POSTROUTING|MASQUERADE|NAT-)",
        comments=r"kube-ovn ",
        devices=r"ovn0",
    ),
    Program(name="OpenShift SDN", chains=r"OPENSHIFT-"),
    Program(name="Azure NPM", chains=r"AZURE-NPM"),
    Program(name="ip-masq-agent", chains=r"IP-MASQ(?:-|$)", comments=r"ip-masq(?:-agent)?: "),
    Program(name="kindnet", chains=r"KIND-MASQ-AGENT$", comments=r"kind-masq-agent: "),
    Program(name="libvirt", chains=r"LIBVIRT_", devices=r"virbr", tables=r"libvirt(?:_network)?$"),
    Program(name="Podman", chains=r"NETAVARK[-_]", devices=r"podman", tables=r"netavark$"),
    Program(name="LXD", comments=r"generated for LXD", devices=r"lxdbr", tables=r"lxd$"),
    Program(name="Tailscale", chains=r"ts-", devices=r"tailscale"),
    Program(name="wg-quick", comments=r"wg-quick\(8\) "),
    Program(name="fail2ban", chains=r"f2b-|fail2ban-", tables=r"f2b-table$"),
    Program(
        name="CSF",
        chains=r"LOCAL(?:IN|OUT)PUT$|LOGDROP(?:IN|OUT)$|(?:ALLOW|DENY)(?:IN|OUT)$|INVDROP$",
    ),
    Program(name="NetworkManager", tables=r"nm-shared-"),
    Program(name="CrowdSec", chains=r"CROWDSEC", tables=r"crowdsec6?$"),
    Program(name="MiniUPnPd", chains=r"MINIUPNPD", tables=r"miniupnpd$"),
)

#: What an alternative of a pattern may begin with besides plain text.
_GROUP: Final = "(?:"

# Compiled if the name of a rule's chain does not decide.
_COMMENT: Final = (
    r' --comment (?:"((?:[^"\\]|\\.)*)"|(\S+))|\bcomment "([^"]*)"'  # of iptables, and of nft
)
_TARGET: Final = (
    r' (?:-[jg]|--jump|--goto) (\S+)|\b(?:jump|goto) ([\w-]+)|"target": "([^"]+)"'  # and of JSON
)
_DEVICE: Final = r' -[io] (\S+)|[io]if(?:name)? (?:!= )?"([^"]+)"'
_KNOWN: dict[tuple[str, str], str | None] = {}


def program_of_chain(chain: str, table: str = "") -> str | None:
    """Return the program that a chain's name belongs to; None if the name does not show it.

    `table` is the chain's nft table, for example ``ip kube-proxy``.
    """
    if chain in TABLES and not table:
        return None  # a base chain of iptables
    key = chain, table
    if key not in _KNOWN:
        name = table.rpartition(" ")[2]
        _KNOWN[key] = _first("chains", chain) or (_first("tables", name) if name else None)
    return _KNOWN[key]


def program_of(chain: str, text: str, table: str = "") -> str | None:
    """Return the program that wrote a rule; None if neither names nor comments show it.

    A program puts rules that jump to its own chains into chains of others: there its comment
    counts, then the chain that is jumped to, then a device. `text` is the rule as in the dump.
    """
    owner = program_of_chain(chain, table)
    if owner is not None:
        return owner
    for field, pattern in (("comments", _COMMENT), ("chains", _TARGET), ("devices", _DEVICE)):
        for found in re.finditer(pattern, text):
            words = next((each for each in found.groups() if each is not None), "")
            said = _first(field, words.replace('\\"', '"'))
            if said is not None:
                return said
    return None


def is_only_in_nat(chain: str) -> bool:
    """Return whether a chain is in the nat table, wherever a dump without headers has it."""
    return _first("only_in_nat", chain) is not None


def is_ending(chain: str) -> bool:
    """Return whether the last rule of a chain takes all packets that reach it, if it is there."""
    return _first("ending", chain) is not None


def _first(field: str, text: str) -> str | None:
    for each in PROGRAMS:
        pattern = getattr(each, field)
        if pattern and text[:1] in _firsts(pattern) and re.match(pattern, text):
            return each.name
    return None


@cache
def _firsts(pattern: str) -> frozenset[str]:
    """Return all characters that a match may begin with: to compile a pattern takes longer.

    No alternative of a pattern has an optional beginning.
    """
    return frozenset([each.removeprefix(_GROUP)[:1] for each in pattern.split("|")])
