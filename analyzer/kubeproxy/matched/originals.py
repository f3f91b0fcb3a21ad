"""The original destinations of flows that rules match on after DNAT.

Rules tell a flow's original destination apart by few networks and ports: all Services that they do
not distinguish have one of them for all, so that their flows are walked together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final

from analyzer.kubeproxy.rows.texts import found
from analyzer.model.addresses import Address, network_from_text
from analyzer.model.intervals import span
from analyzer.model.iptables.rules import Ruleset, Table
from analyzer.semantics.base_chains import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.model.nft.ruleset import NftRuleset

_NETWORK: Final = " --ctorigdst "
_PORTS: Final = " --ctorigdstport "
#: Of nft, as text or JSON: whatever it matches on, every destination counts.
_WORD: Final = "original"


class Originals:
    """The networks and ports that rules match on, as iptables prints them; None: any."""

    def __init__(self, networks: Iterable[str] | None, ports: Iterable[str]) -> None:
        spans = None if networks is None else [network_from_text(each) for each in networks]
        known = [each for each in spans or () if each is not None]
        self._spans = None if spans is None or len(known) < len(spans) else known
        self._ports = [tuple(map(_number, each.split(":"))) for each in ports]
        self._likes: dict[Hashable, tuple[Address | None, int | None]] = {}

    def like(
        self, address: Address | None, port: int | None
    ) -> tuple[Address | None, int | None] | None:
        """Return a destination from which no rule distinguishes an address and a port."""
        if address is None or port is None:
            return address, port
        if self._spans is None or any(None in each for each in self._ports):
            return address, port
        within = tuple(
            address.version == each.version and span(each)[0] <= int(address) <= span(each)[1]
            for each in self._spans
        )
        of_port = tuple((each[0] or 0) <= port <= (each[-1] or 0) for each in self._ports)
        return self._likes.setdefault((address.version, within, of_port), (address, port))


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _asks(ruleset: NftRuleset) -> bool:
    from analyzer.kubeproxy.matched.nft import saying  # not needed without nft

    return any(_WORD in rule.raw for chain in saying(ruleset, _WORD) for rule in chain.rules)


def _after(table: Table, option: str) -> Iterator[str]:
    return (each[1] for each in found(table, rf"{option}(\S+)", option))


def originals_of(rulesets: Iterable[Rules]) -> Originals | None:
    """Return the original destinations that rules of a node match on; None: they match on none."""
    networks: dict[str, None] = {}
    ports: dict[str, None] = {}
    by_nft = False
    for each in rulesets:
        if isinstance(each, Ruleset):
            for table in each.tables.values():
                networks |= dict.fromkeys(_after(table, _NETWORK))
                ports |= dict.fromkeys(_after(table, _PORTS))
        else:
            by_nft |= _asks(each)
    if not networks and not ports and not by_nft:
        return None
    return Originals(None if by_nft else networks, ports)
