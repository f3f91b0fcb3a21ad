"""The node's rules: put into a namespace, and their counters read back.

What is loaded is rendered from what was understood, never the dump's own text: a line of a dump
could carry `--modprobe=COMMAND`, which iptables would run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from analyzer.model.matches import MatchNfacct, MatchNot, MatchUnknown
from analyzer.model.rules import Rule, Ruleset
from analyzer.model.targets import Dnat, TargetUnknown
from analyzer.parsers.iptables_save import parse, render
from netns_lab.command import run
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace

#: Packets by rule: (chain, index in the chain from 0).
RuleCounters = Mapping[tuple[str, int], int]


def load(namespace: Namespace, ruleset: Ruleset, backend: str) -> None:
    """Restore all tables of a dump, and check that the kernel holds just what the dump says.

    Raises:
        LabError: a rule was not understood and is not loaded blindly, iptables refuses it, or
            what it saves again is not what the dump says.
    """
    if ruleset.family != "ip":
        raise LabError("the lab replays IPv4 dumps so far; this one is of ip6tables")
    for table in ruleset.tables.values():
        if not table.complete:
            raise LabError(
                f"{ruleset.file}: table {table.name} is not complete in the dump, so what is "
                "missing cannot be loaded; take the dump again"
            )
    rules = [r for t in ruleset.tables.values() for c in t.chains.values() for r in c.rules]
    for rule in rules:
        _check_understood(rule)
    for name in dict.fromkeys(filter(None, map(_accounting_object, rules))):
        run(namespace, ["nfacct", "add", name])
    text = render(ruleset)
    run(namespace, [f"iptables-{backend}-restore"], text)
    saved = parse(run(namespace, [f"iptables-{backend}-save"]).stdout, "iptables-save")
    _check_same(ruleset, saved)


def _check_understood(rule: Rule) -> None:
    unread = [m.text for m in rule.matches if isinstance(m, MatchUnknown)]
    if isinstance(rule.target, TargetUnknown):
        unread.append(rule.target.text)
    if unread:
        raise LabError(
            f"{rule.location}: the lab loads only rules that it understands, and not "
            f"{unread[0]!r}; take this rule out of the dump to measure without it"
        )


def _accounting_object(rule: Rule) -> str | None:
    for match in rule.matches:
        inner = match.match if isinstance(match, MatchNot) else match
        if isinstance(inner, MatchNfacct):
            return inner.name
    return None


def _check_same(wanted: Ruleset, saved: Ruleset) -> None:
    for name, table in wanted.tables.items():
        held = saved.tables.get(name)
        for chain in table.chains.values():
            loaded = held.chains.get(chain.name) if held is not None else None
            ours = [(r.matches, r.target) for r in chain.rules]
            theirs = [(r.matches, r.target) for r in loaded.rules] if loaded else []
            if ours != theirs:
                raise LabError(
                    f"chain {chain.name} of table {name} is not the same once it is loaded; "
                    "is this iptables older or newer than the one that wrote the dump?"
                )


def _legacy_counters(namespace: Namespace) -> RuleCounters:
    with namespace:
        import iptc  # it opens its socket to the kernel when it is imported

        table = iptc.Table(iptc.Table.NAT)
        table.refresh()
        return {
            (chain.name, at): rule.get_counters()[0]
            for chain in table.chains
            for at, rule in enumerate(chain.rules)
        }


def _nft_counters(namespace: Namespace) -> RuleCounters:
    with namespace:
        import nftables  # only here, where libnftables.so.1 is needed

        nft = nftables.Nftables()
        nft.set_json_output(True)
        status, listing, error = nft.json_cmd(
            {"nftables": [{"list": {"table": {"family": "ip", "name": "nat"}}}]}
        )
    if status:
        raise LabError(f"libnftables lists no table ip nat: {error}")
    counters: dict[tuple[str, int], int] = {}
    position: dict[str, int] = {}
    for item in listing["nftables"]:
        rule = item.get("rule")
        if rule is None:
            continue
        chain = rule["chain"]
        at = position.get(chain, 0)
        position[chain] = at + 1
        counters[chain, at] = sum(_packets(expression) for expression in rule["expr"])
    return counters


def _packets(expression: dict[str, Any]) -> int:
    counter = expression.get("counter")
    return int(counter["packets"]) if isinstance(counter, dict) else 0


_READERS: Final[Mapping[str, Callable[[Namespace], RuleCounters]]] = {
    "legacy": _legacy_counters,
    "nft": _nft_counters,
}


def read_counters(namespace: Namespace, backend: str) -> RuleCounters:
    """Return the packets that each rule of the nat table has counted.

    By another way than the captures: python-iptables for legacy, libnftables for nft.
    """
    return _READERS[backend](namespace)


def destinations(ruleset: Ruleset) -> dict[tuple[str, int], Dnat]:
    """Return the rules of the nat table that send flows to endpoints."""
    table = ruleset.tables["nat"]
    return {
        (chain.name, at): rule.target
        for chain in table.chains.values()
        for at, rule in enumerate(chain.rules)
        if isinstance(rule.target, Dnat)
    }
