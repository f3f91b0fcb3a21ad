"""Which backends there are; a new one is its file and its line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analyzer.model.nft import NftRuleset
from analyzer.semantics.base_chains import Rules
from netns_lab.backend import Backend
from netns_lab.iptables import LegacyIptables, NftIptables
from netns_lab.nft_rules import Nftables

BACKENDS: Final[Mapping[str, type[Backend]]] = {
    "legacy": LegacyIptables,
    "nft": NftIptables,
    "nftables": Nftables,
}


def backend_of(ruleset: Rules) -> str:
    """Return the name of the backend that wrote a dump, as far as it tells."""
    match ruleset:
        case NftRuleset():
            return "nftables"
        case _:
            return ruleset.backend or "legacy"
