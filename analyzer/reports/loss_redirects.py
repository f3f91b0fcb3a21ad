"""Commands that send a dead endpoint's share to living ones, on the node whose dump it is.

Theory of operation: no draw is touched. In iptables mode, and in nftables mode of 1.30 or with
session affinity, each endpoint of a ServicePort has a chain of its own that ends in its DNAT. A
jump to a living endpoint's chain, put first, takes what flows come to the dead one, drawn or
pinned. Without such chains nftables mode draws in a map, in the only rule of the Service's chain; a
rule put before it draws among the living. Nothing is said where the dump does not show such a
shape: chains by the names that kube-proxy gives them, with just that DNAT.

An endpoint takes a dead one's place only where every route that draws the dead one draws it too:
with a local policy another node's endpoint would answer the client past this node.

Source: kubernetes, pkg/proxy/iptables/proxier.go and pkg/proxy/nftables/proxier.go,
``syncProxyRules``; the tests put the commands' rules into dumps and ask again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.failure.loss import ServiceLoss
from analyzer.failure.models import Dead
from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import Endpoint, Source
from analyzer.model.rules import Ruleset, Table
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:  # rulesets of nft bring what they need along
    from typing import Final

    from analyzer.model.nft import NftRuleset
    from analyzer.model.nft import Table as NftTable
    from analyzer.semantics.base_chains import Rules

_TABLE: Final = "kube-proxy"
#: What stands before the endpoint in a rule of DNAT.
_TO: Final = "--to-destination "
_FAMILIES: Final = {4: "ip", 6: "ip6"}


@value
class Redirect:
    """What to run for one ServicePort; no commands: nothing here takes the dead ones' share."""

    loss: ServiceLoss
    commands: tuple[str, ...]


def redirect(loss: ServiceLoss, dead: Dead, rulesets: Sequence[Rules]) -> Redirect:
    """Return the commands for a ServicePort with dead endpoints."""
    endpoints = loss.service.endpoints
    living = [e for e in endpoints if e not in dead.endpoints and e not in dead.uncertain]
    commands: list[str] = []
    for ruleset in rulesets:
        if isinstance(ruleset, Ruleset):
            if ruleset.family == _FAMILIES.get(loss.service.version or 0):
                commands = list(_of_iptables(loss, living, ruleset))
        elif not commands:
            commands = list(_of_nft(loss, living, ruleset))
    return Redirect(loss, tuple(commands))


def _instead(loss: ServiceLoss, dead: Endpoint, living: Sequence[Endpoint]) -> list[Endpoint]:
    """Return the living endpoints that all routes draw that draw the dead one."""
    found = list(living)
    for route in loss.service.routes:
        if route.source is Source.HAIRPIN:
            continue
        endpoints, shares = route.draws()
        drawn = {e for e, share in zip(endpoints, shares, strict=True) if share.lower}
        if dead in endpoints:
            found = [each for each in found if each in drawn]
    return found


def _of_iptables(loss: ServiceLoss, living: Sequence[Endpoint], ruleset: Ruleset) -> Iterator[str]:
    nat = ruleset.tables.get("nat")
    if nat is None:
        return
    program = {"ip": "iptables", "ip6": "ip6tables"}[ruleset.family]
    program += f"-{ruleset.backend}" if ruleset.backend else ""
    for number, dead in enumerate(loss.dead):
        chain = _sep_chain(loss, dead, nat)
        others = [_sep_chain(loss, each, nat) for each in _instead(loss, dead, living)]
        to = [each for each in others if each is not None]
        if chain is not None and to:
            yield f"{program} -t nat -I {chain} -j {to[number % len(to)]}"


def _sep_chain(loss: ServiceLoss, endpoint: Endpoint, nat: Table) -> str | None:
    """Return the chain of an endpoint, if it is there and sends flows just there."""
    text, protocol = loss.service.name.text, loss.service.protocol
    for name in (text, f"{text}:"):  # up to 1.18 also where the port has no name
        found = f"{names.ENDPOINT_PREFIX}{names.chain_hash(name, protocol, str(endpoint))}"
        chain = nat.chains.get(found)
        if chain is None:
            continue
        # As text: to understand rules takes a reader that nothing else here needs.
        lines: list[str] | None = getattr(chain.rules, "lines", None)
        lines = [rule.raw for rule in chain.rules] if lines is None else lines
        ends = {each.partition(_TO)[2].split(" ")[0] for each in lines if " -j DNAT" in each}
        if ends == {str(endpoint)}:
            return found
    return None


def _of_nft(loss: ServiceLoss, living: Sequence[Endpoint], ruleset: NftRuleset) -> Iterator[str]:
    family = _FAMILIES.get(loss.service.version or 0, "")
    table = ruleset.tables.get((family, _TABLE))
    if table is None or not loss.dead:
        return
    text, protocol = loss.service.name.text, loss.service.protocol
    names_of = {
        each: f"{names.NFT_ENDPOINT_PREFIX}{names.nft_endpoint_name(text, protocol, str(each))}"
        for each in loss.service.endpoints
    }
    if all(_sends_to(end, name, table) for end, name in names_of.items()):
        for number, dead in enumerate(loss.dead):
            to = _instead(loss, dead, living)
            if to:
                jump = names_of[to[number % len(to)]]
                yield f"nft insert rule {family} {_TABLE} {names_of[dead]} jump {jump}"
        return
    chain = f"service-{names.nft_service_name(text, protocol)}"
    rules = table.chains[chain].rules if chain in table.chains else ()
    alike = [_instead(loss, dead, living) == list(living) for dead in loss.dead]
    if not living or not all(alike) or len(rules) != 1 or not _is_draw(rules[0].statements[-1:]):
        return
    drawn = ", ".join(f"{at} : {each.address} . {each.port}" for at, each in enumerate(living))
    yield (
        f"nft insert rule {family} {_TABLE} {chain} meta l4proto {protocol} dnat {family} to "
        f"'numgen random mod {len(living)} map {{ {drawn} }}'"
    )


def _sends_to(endpoint: Endpoint, chain: str, table: NftTable) -> bool:
    """Tell whether an endpoint's chain is there and sends flows just there."""
    if chain not in table.chains:
        return False
    from analyzer.model.nft_statements import Dnat as NftDnat

    statements = [each for rule in table.chains[chain].rules for each in rule.statements]
    ends = {(each.address, each.port) for each in statements if isinstance(each, NftDnat)}
    return ends == {(endpoint.address, endpoint.port)}


def _is_draw(last: Sequence[object]) -> bool:
    from analyzer.model.nft_statements import Dnat as NftDnat

    return bool(last) and isinstance(last[0], NftDnat)
