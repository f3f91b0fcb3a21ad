"""How many flows went to each endpoint, by the rules' own counters.

Only the first packet of a flow traverses nat: packets of a DNAT rule are new flows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from analyzer.errors import InputError
from analyzer.kubeproxy.rows.texts import rows_of
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.addresses import address_and_port_from_text
from analyzer.model.iptables.rules import Ruleset
from analyzer.semantics.base_chains import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_COUNTED: Final = re.compile(
    r"(?m)^\[(\d+):\d+\] -A \S+ (?:.* )?-p (\S+) .*-j DNAT .*--to-destination (\S+)(?: |$)"
)
#: A protocol and an endpoint.
ProtocolAndEndpoint = tuple[str, Endpoint]


def drawn_in_rows(rulesets: Iterable[Rules]) -> dict[ProtocolAndEndpoint, int]:
    """Return packets of DNAT rules by the endpoint that they send to; empty without counters.

    An endpoint of several DNAT rules, which belong to more than one ServicePort, is left out.
    """
    nats = [each.tables.get("nat") for each in rulesets if isinstance(each, Ruleset)]
    return _drawn(rows_of(nat) for nat in nats if nat is not None)


def drawn_in_texts(given: Iterable[tuple[bytes, str]]) -> dict[ProtocolAndEndpoint, int]:
    """Return the same for outputs of `iptables-save -c`, each with its name.

    Raises:
        InputError: one is something else.
    """
    texts = [(data.decode("utf-8", "surrogateescape"), file) for data, file in given]
    for text, file in texts:
        if not re.search(r"(?m)^\*(?:nat|filter|mangle|raw|security)$", text):
            raise InputError(f"{file}: expected the output of `iptables-save -c`")
    return _drawn(text for text, _ in texts)


def _drawn(texts: Iterable[str]) -> dict[ProtocolAndEndpoint, int]:
    found: dict[ProtocolAndEndpoint, list[int]] = {}
    for text in texts:
        for packets, protocol, to in _COUNTED.findall(text):
            place = address_and_port_from_text(to)
            if place is not None:
                found.setdefault((protocol, Endpoint(*place)), []).append(int(packets))
    return {each: counts[0] for each, counts in found.items() if len(counts) == 1}
