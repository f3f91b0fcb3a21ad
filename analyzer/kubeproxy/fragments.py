"""Rules that a fragment leaves out and that kube-proxy always writes alike.

Pastes and greps of a dump often lack the way into KUBE-SERVICES and the chain that marks flows.
Neither says anything of one Service: with what kube-proxy writes in their place, the shares of a
Service whose own chains are there come out, and a diagnostic says what was taken for granted.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``iptablesJumpChains``, ``syncProxyRules``.
"""

from __future__ import annotations

from analyzer.kubeproxy import names
from analyzer.model.diagnostics import Diagnostic, Location, Severity
from analyzer.model.rules import Chain, Rule, Ruleset, Table
from analyzer.model.targets import Jump, SetMark, Target
from analyzer.model.value import replace
from analyzer.parsers.rows import RuleRows
from analyzer.parsers.xt.rule import render_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_HOOKS: Final = ("PREROUTING", "OUTPUT")
#: kube-proxy's --iptables-masquerade-bit, if nobody changes it.
_MASQUERADE_BIT: Final = 1 << 14
#: The kubelet's --iptables-drop-bit; nothing jumps there from 1.25 on.
_DROP_BIT: Final = 1 << 15


def mended(ruleset: Ruleset) -> tuple[Ruleset, list[Diagnostic]]:
    """Return the rules with what a fragment lacks put in, and what there is to say of it."""
    nat = ruleset.tables.get("nat")
    if nat is None or names.SERVICES not in nat.chains:
        return ruleset, []
    put: dict[str, Chain] = {}
    lacking = [hook for hook in _HOOKS if hook not in nat.chains]
    for hook in lacking:
        put[hook] = Chain(hook, (_rule(hook, Jump(names.SERVICES)),), "ACCEPT")
    marks = _marks(nat)
    if marks is not None:
        put[names.MARK_MASQUERADE] = marks
    if not put:
        return ruleset, []
    if names.MARK_DROP not in nat.chains:
        name = names.MARK_DROP
        put[name] = Chain(name, (_rule(name, SetMark(_DROP_BIT, _DROP_BIT)),))
    tables = {**ruleset.tables, "nat": replace(nat, chains={**nat.chains, **put})}
    return replace(ruleset, tables=tables), [_said(ruleset, lacking)] if lacking else []


def _marks(nat: Table) -> Chain | None:
    """Return KUBE-MARK-MASQ, where it is not there or may have lost rows: it has just one."""
    chain = nat.chains.get(names.MARK_MASQUERADE)
    if chain is None:
        name = names.MARK_MASQUERADE
        return Chain(name, (_rule(name, SetMark(_MASQUERADE_BIT, _MASQUERADE_BIT)),))
    rules = chain.rules
    if not isinstance(rules, RuleRows) or rules.complete or len(rules) == 1:
        return None
    return replace(chain, rules=tuple(rules[:-1]))


def _rule(chain: str, target: Target) -> Rule:
    return Rule((), target, Location("", 0, "nat"), f"-A {chain} {render_target(target)}")


def _said(ruleset: Ruleset, lacking: list[str]) -> Diagnostic:
    hooks = " and ".join(lacking)
    return Diagnostic(
        severity=Severity.WARNING,
        code="no-hook",
        message=f"the dump does not show {hooks} of table nat: new flows are taken to come to "
        f"{names.SERVICES}, as kube-proxy has it",
        file=ruleset.file,
        partial=True,
    )
