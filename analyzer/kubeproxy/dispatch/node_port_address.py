"""The node's addresses at which NodePorts answer.

Source: kube-proxy, pkg/proxy/iptables/proxier.go: with ``--nodeport-addresses`` a row for each
network, ``-d NETWORK``, jumps to KUBE-NODEPORTS; without, one for every address of the node.
"""

from __future__ import annotations

import re

from analyzer.kubeproxy import names
from analyzer.model.addresses import Address, network_from_text
from analyzer.model.iptables.rules import LazyRules, Table


def answering_first(table: Table, own: tuple[Address, ...]) -> tuple[Address, ...]:
    """Return the addresses of the node, `own`, first those that rows name as destination.

    If the rows name none or all of them, the order does not change.
    """
    services = table.chains.get(names.SERVICES)
    if len(own) <= 1 or services is None:
        return own
    rules = services.rules
    rows = (rules.texts() or ()) if isinstance(rules, LazyRules) else [r.raw for r in rules]
    jump = f" -j {names.NODE_PORTS}"
    found = (re.search(r"(?<! !) -d (\S+) ", row) for row in rows if row.endswith(jump))
    networks = [network_from_text(each[1]) for each in found if each is not None]
    held = [n for n in networks if n is not None and n.version == own[0].version]
    return tuple(sorted(own, key=lambda address: not any(address in n for n in held)))
