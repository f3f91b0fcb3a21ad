"""What Services' chains match on sources: the network exempt from masquerade, and affinity."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.model.addresses import Network, network_from_text
from analyzer.model.nft.expressions import Concat, Expression, Goto, Jump, Payload, Prefix, SetRef
from analyzer.model.nft.ruleset import Chain, Table
from analyzer.model.nft.statements import Match, MetaSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Prefixes of chains of a ServicePort: for its external addresses, and for all its endpoints.
_EXTERNAL: Final = "external-"
_SERVICE: Final = "service-"


def unmarked_network(chains: Iterable[Chain]) -> Network | None:
    """Return the network that rules exempt from the masquerade mark; None: there is none.

    kube-proxy's rules match on the destination too.
    """
    for chain in chains:
        for rule in chain.rules:
            asked = [each for each in rule.statements if isinstance(each, Match)]
            if not any(isinstance(s, Jump | MetaSet) for s in rule.statements):
                continue
            if not any(_is_field(each.left, "daddr") for each in asked):
                continue
            for each in asked:
                match each:
                    case Match("!=", Payload("ip" | "ip6", "saddr"), Prefix() as spared):
                        return network_from_text(f"{spared.address}/{spared.length}")
                    case _:
                        pass
    return None


def network_of_pods(chains: Iterable[Chain]) -> Network | None:
    """Return the pods' network: its flows go to all endpoints even under a local traffic policy.

    With ``--masquerade-all`` this is the only rule that names it.
    """
    for chain in chains:
        for rule in chain.rules if chain.name.startswith(_EXTERNAL) else ():
            match rule.statements:
                case (
                    Match("==", Payload("ip" | "ip6", "saddr"), Prefix() as pods),
                    Goto(to),
                ) if to.startswith(_SERVICE):
                    return network_from_text(f"{pods.address}/{pods.length}")
                case _:
                    pass
    return None


def affinity(chains: Iterable[Chain], table: Table) -> int | None:
    """Return the session affinity timeout of a Service's chains in seconds; None: no affinity."""
    for chain in chains:
        for rule in chain.rules:
            for statement in rule.statements:
                match statement:
                    case Match("==", left, SetRef(name)) if _is_field(left, "saddr"):
                        held = table.sets.get(name)
                        if held is not None and held.timeout is not None:
                            return held.timeout
                    case _:
                        pass
    return None


def _is_field(given: Expression, field: str) -> bool:
    match given:
        case Payload("ip" | "ip6", found):
            return found == field
        case Concat(parts):
            return any(_is_field(part, field) for part in parts)
        case _:
            return False
