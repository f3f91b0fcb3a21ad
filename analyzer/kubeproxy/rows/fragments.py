"""Rules missing from a fragment that kube-proxy always writes in the same way.

Pastes and greps of a dump often lack the jumps to KUBE-SERVICES and the chain that marks flows.
Neither depends on a single Service: with what kube-proxy writes in their place, the shares of a
Service whose own chains are there can be computed, and a diagnostic says what was assumed.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``iptablesJumpChains``, ``syncProxyRules``.
"""

from __future__ import annotations

from analyzer.kubeproxy import names
from analyzer.kubeproxy.rows.holes import lacks_head, lost_rows
from analyzer.model.diagnostics import Diagnostic, Location, partial_warning
from analyzer.model.iptables.matches import MatchMark, MatchNot
from analyzer.model.iptables.rules import Chain, Rule, Ruleset, Table
from analyzer.model.iptables.targets import Jump, SetMark, Target
from analyzer.model.value import replace
from analyzer.parsers.rows import RowChains, RuleRows
from analyzer.parsers.xt.rule import render_target

_POSTROUTING = "KUBE-POSTROUTING"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: The base chains of nat, and the chain of kube-proxy's that each jumps to.
HOOKS: Final = {
    "PREROUTING": names.SERVICES,
    "OUTPUT": names.SERVICES,
    "POSTROUTING": _POSTROUTING,
}
#: The default of kube-proxy's --iptables-masquerade-bit.
_MASQUERADE_BIT: Final = 1 << 14
#: The kubelet's --iptables-drop-bit; from 1.25 on nothing jumps to KUBE-MARK-DROP.
_DROP_BIT: Final = 1 << 15


def mended(ruleset: Ruleset) -> tuple[Ruleset, list[Diagnostic]]:
    """Return the rules with the missing ones of a fragment added, and the diagnostics about it."""
    nat = ruleset.tables.get("nat")
    if nat is None or names.SERVICES not in nat.chains:
        return ruleset, []
    put: dict[str, Chain] = {}
    lacking = [hook for hook in HOOKS if hook not in nat.chains]
    for hook in lacking:
        put[hook] = Chain(hook, (_rule(hook, Jump(HOOKS[hook])),), "ACCEPT")
    marks = _marks(nat)
    if marks is not None:
        put[names.MARK_MASQUERADE] = marks
    guessed = marks is not None and names.MARK_MASQUERADE not in nat.chains
    if not put:
        return ruleset, []
    if names.MARK_DROP not in nat.chains:
        name = names.MARK_DROP
        put[name] = Chain(name, (_rule(name, SetMark(_DROP_BIT, _DROP_BIT)),))
    lost = lost_rows(Location(ruleset.file, 0, "nat"))
    kept = {
        name: replace(chain, rules=(*lost, *chain.rules)) if lacks_head(chain) else chain
        for name, chain in nat.chains.items()
    }
    tables = {**ruleset.tables, "nat": replace(nat, chains={**kept, **put})}
    said = [_hooks(ruleset, lacking)] if lacking else []
    if guessed:
        said.append(_guessed(ruleset))
    return replace(ruleset, tables=tables), said


def _marks(nat: Table) -> Chain | None:
    """Return KUBE-MARK-MASQ if it is missing or may have lost rows: it has just one."""
    chain = nat.chains.get(names.MARK_MASQUERADE)
    if chain is None and not _is_asked(nat):
        return None
    if chain is None:
        name = names.MARK_MASQUERADE
        bit = _masqueraded(nat)
        return Chain(name, (_rule(name, SetMark(bit, bit)),))
    rules = chain.rules
    if not isinstance(rules, RuleRows) or rules.complete or len(rules) == 1:
        return None
    return replace(chain, rules=tuple(rules[:-1]))


def _rule(chain: str, target: Target) -> Rule:
    return Rule((), target, Location("", 0, "nat"), f"-A {chain} {render_target(target)}")


def _is_asked(nat: Table) -> bool:
    """Return whether a rule jumps to KUBE-MARK-MASQ."""
    jump = f"-j {names.MARK_MASQUERADE}"
    if isinstance(nat.chains, RowChains):
        return nat.chains.block.text.find(jump, *nat.chains.block.span) >= 0
    return any(isinstance(c.rules, RuleRows) and jump in c.rules.text for c in nat.chains.values())


def _masqueraded(nat: Table) -> int:
    """Return the mark bit that KUBE-POSTROUTING masquerades."""
    chain = nat.chains.get(_POSTROUTING)
    for rule in chain.rules if chain is not None else ():
        for match in rule.matches:
            match match:
                case MatchMark(mark) | MatchNot(MatchMark(mark)):
                    return mark.mask
                case _:
                    pass
    return _MASQUERADE_BIT


def _guessed(ruleset: Ruleset) -> Diagnostic:
    return partial_warning(
        "no-mark-chain",
        f"the dump does not show {names.MARK_MASQUERADE} of table nat: it is assumed to mark "
        "flows with the bit that KUBE-POSTROUTING matches, and to return",
        ruleset.file,
    )


def _hooks(ruleset: Ruleset, lacking: list[str]) -> Diagnostic:
    hooks = ", ".join(lacking)
    return partial_warning(
        "no-hook",
        f"the dump does not show {hooks} of table nat: flows are assumed to reach KUBE-SERVICES "
        "and KUBE-POSTROUTING, as kube-proxy arranges it",
        ruleset.file,
    )
