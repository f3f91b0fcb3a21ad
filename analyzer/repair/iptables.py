"""A repair of iptables rules, as input for ``iptables-restore --noflush``.

Theory of operation
===================

Chain KODDS-SERVICES is evaluated right before KUBE-SERVICES. It contains a copy of each rule by
which flows reach a dead endpoint, in kube-proxy's order; the chains that they jump to are copied
too (`chains`). A flow that none of them takes returns and continues in KUBE-SERVICES. Rules with
the same destination, protocol and port belong together: those that need no repair return.

``-N`` refuses an existing name: applying a repair twice is refused as a whole, and changes nothing.
kube-proxy names none of these chains, so its syncs leave them alone.

Source: iptables-restore(8); iptables, iptables/iptables-restore.c; kubernetes,
pkg/proxy/iptables/proxier.go, ``syncProxyRules``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.iptables.matches import MatchComment
from analyzer.model.iptables.rules import Rule, Ruleset, Table
from analyzer.model.iptables.targets import Goto, Jump, Return
from analyzer.model.value import replace, value
from analyzer.parsers.xt.rule import render_rule
from analyzer.repair.chains import STABLE, Copies, Graph, copied, target_in, texts
from analyzer.repair.patch import PREFIX, NotCopied, RulesPatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.kubeproxy.absent import FrontendMatch

_SERVICES: Final = f"{PREFIX}SERVICES"
_NODE_PORTS: Final = f"{PREFIX}NODEPORTS"
#: Base chains from which flows to Services reach nat, and those where filter sees them.
_NAT: Final = ("PREROUTING", "OUTPUT")
_FILTER: Final = ("INPUT", "FORWARD", "OUTPUT")
#: In front of the others of kube-proxy; it drops what load balancers' source ranges do not admit.
_FIREWALL: Final = "KUBE-PROXY-FIREWALL"
_UNREACHABLE: Final = {"ip": "icmp-port-unreachable", "ip6": "icmp6-port-unreachable"}
#: How they are entered.
_NEW: Final = f"-m conntrack --ctstate NEW -j {_SERVICES}"
#: Destination, protocol and port of a row, as iptables-save writes them in front.
_KEY: Final = re.compile(
    r"(?:\[\d+:\d+\] )?-A \S+ (?:(?:! )?-s \S+ )?(?:-d (\S+) )?(?:-p (\w+) )?(?:.* )?"
    r"-m (?:tcp|udp|sctp) --dport (\d+) "
)
#: Destination, protocol, port.
_Key = tuple["str | None", "str | None", "str | None"]


@value
class _Group:
    """The rules of one frontend, and whether some flows find no living endpoint."""

    key: _Key
    rows: tuple[str, ...]
    empty: bool


def patch_of(
    ruleset: Ruleset, dead: Collection[Endpoint], spared: Collection[FrontendMatch] = ()
) -> RulesPatch:
    """Return the change that removes `dead` from the rules; without text if there is none.

    Flows to one of `spared` continue as before, to the dead too.
    """
    nothing = RulesPatch(family=ruleset.family, program=ruleset.restore, apply="", undo="")
    nat = ruleset.tables.get("nat")
    if nat is None or names.SERVICES not in nat.chains:
        return nothing
    if not nat.complete:
        return replace(
            nothing, problems=(("the nat table is incomplete in the dump; take it again"),)
        )
    try:
        maker = _Maker(ruleset, nat, dead, spared)
    except NotCopied as why:
        return replace(nothing, problems=(str(why),))
    apply = maker.apply()
    undo = maker.undo() if apply else ""
    return replace(nothing, apply=apply, undo=undo, problems=tuple(dict.fromkeys(maker.problems)))


class _Maker:
    """Makes the rows of one repair.

    Raises:
        NotCopied: the table is not whole.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        nat: Table,
        dead: Collection[Endpoint],
        spared: Collection[FrontendMatch],
    ) -> None:
        # As rules match on them; one of the other IP version never matches.
        self._spared: set[_Key] = {
            (None if address is None else f"{address}/{address.max_prefixlen}", by, str(port))
            for by, address, port in spared
        }
        self._family = ruleset.family
        self._nat = nat
        self._filter = ruleset.tables.get("filter")
        self.problems: list[str] = []
        self._graph = Graph(nat, dead)
        self._copies = Copies(nat.chains, self._graph)
        self._groups = list(self._of(names.SERVICES, _SERVICES))
        has_ports = names.NODE_PORTS in nat.chains and names.NODE_PORTS in self._graph.leading
        self._ports = list(self._of(names.NODE_PORTS, _NODE_PORTS)) if has_ports else []
        self._jumps = list(self._to_node_ports()) if self._ports else []
        self._entries = list(self._jumps_to_services())
        for name in sorted(self._graph.leading):
            self._note_others(name)

    def _note_others(self, name: str) -> None:
        """Say which rules lead to dead endpoints past KUBE-SERVICES, as those of HostPorts do."""
        if name.startswith(("KUBE-", PREFIX)) or name in _NAT:
            return
        self.problems.append(f"chain {name}, which is not kube-proxy's, leads to a dead endpoint")

    # --- nat -----------------------------------------------------------------------

    def _of(self, chain: str, name: str) -> Iterator[_Group]:
        """Yield the frontends whose flows come to dead endpoints from one chain."""
        rows = texts(self._nat.chains[chain])
        targets = [target_in(row) for row in rows]
        keys = [_key(row) for row in rows]
        groups: dict[_Key, list[int]] = {}
        for at, (key, target) in enumerate(zip(keys, targets, strict=True)):
            if target not in self._graph.leading or target == names.NODE_PORTS:
                continue
            address, protocol, port = key
            if protocol is None or port is None or (address is None and chain == names.SERVICES):
                rule = self._nat.chains[chain].rules[at]
                self.problems.append(
                    f"rule {rule.location} does not match a single destination, protocol and port"
                )
            elif self._key_in(chain, key) not in self._spared:
                groups.setdefault(self._key_in(chain, key), [])
        for at, key in enumerate(keys):
            same = groups.get(self._key_in(chain, key))
            if same is not None:
                same.append(at)
        for key, places in groups.items():
            found = self._group(chain, name, key, places)
            if found is not None:
                yield found

    def _key_in(self, chain: str, key: _Key) -> _Key:
        return (None, *key[1:]) if chain == names.NODE_PORTS else key

    def _group(self, chain: str, name: str, key: _Key, places: Sequence[int]) -> _Group | None:
        rules = [self._nat.chains[chain].rules[at] for at in places]
        try:
            rows = self._copies.entered([partial(self._entry, name, each) for each in rules])
        except NotCopied as why:
            self.problems.append(f"{_name_of(rules)}: {why}")
            return None
        return _Group(key, tuple(rows), any(self._is_empty(each) for each in rules))

    def _entry(self, name: str, rule: Rule) -> str:
        match rule.target:
            case Jump(to) | Goto(to) if to not in STABLE and to not in self._graph.leading:
                # Another program's, and before or after those that are repaired: kube-proxy
                # decides.
                return self._copies.row(name, replace(rule, target=Return()))
            case _:
                return self._copies.row(name, rule)

    def _is_empty(self, rule: Rule) -> bool:
        match rule.target:
            case Jump(to) | Goto(to) if to in self._graph.leading:
                return copied(to) in self._copies.empty
            case _:
                return False

    def _to_node_ports(self) -> Iterator[Rule]:
        """Yield the rules by which flows come to NodePorts."""
        chain = self._nat.chains[names.SERVICES]
        for at, row in enumerate(texts(chain)):
            if target_in(row) == names.NODE_PORTS:
                yield chain.rules[at]

    def _guards(self) -> Iterator[str]:
        """Yield rules that leave to kube-proxy what it takes before it looks at NodePorts."""
        ports = {key[1:] for key in (each.key for each in self._ports)}
        own = {each.key for each in self._groups}
        for row in texts(self._nat.chains[names.SERVICES]):
            key = _key(row)
            if key[1:] in ports and key[0] is not None and key not in own:
                own.add(key)
                address, protocol, port = key
                yield (
                    f"-A {_SERVICES} -d {address} -p {protocol} -m {protocol} --dport {port} "
                    "-j RETURN"
                )

    def _jumps_to_services(self) -> Iterator[tuple[str, int, Rule]]:
        """Yield the base chains that lead to KUBE-SERVICES, and the place of the rule, from 1."""
        for name, chain in self._nat.chains.items():
            for at, row in enumerate(texts(chain)):
                if target_in(row) != names.SERVICES:
                    continue
                if name in _NAT:
                    yield name, at + 1, chain.rules[at]
                else:
                    self.problems.append(f"chain {name} jumps to {names.SERVICES} too")

    def _nat_rows(self) -> Iterator[str]:
        for group in self._groups:
            yield from group.rows
        if self._ports:
            yield from self._guards()
            for rule in self._jumps:
                yield self._copies.row(_SERVICES, rule, _NODE_PORTS)
            for group in self._ports:
                yield from group.rows
        for name in sorted(self._copies.rows):
            yield from self._copies.rows[name]

    def _nat_chains(self) -> list[str]:
        ports = [_NODE_PORTS] if self._ports else []
        return [_SERVICES, *ports, *sorted(self._copies.rows)]

    # --- filter --------------------------------------------------------------------

    def _refusing(self) -> tuple[list[_Group], list[_Group]]:
        return [g for g in self._groups if g.empty], [g for g in self._ports if g.empty]

    def _filter_chains(self) -> list[str]:
        services, ports = self._refusing()
        return [_SERVICES, *([_NODE_PORTS] if ports else [])] if services or ports else []

    def _filter_rows(self) -> Iterator[str]:
        services, ports = self._refusing()
        reject = f"-j REJECT --reject-with {_UNREACHABLE[self._family]}"
        for address, protocol, port in (each.key for each in services):
            ask = f"-p {protocol} -m {protocol} --dport {port}"
            yield f"-A {_SERVICES} -d {address} {ask} {reject}"
        for rule in self._jumps if ports else ():
            yield self._copies.row(_SERVICES, rule, _NODE_PORTS)
        for _, protocol, port in (each.key for each in ports):
            yield f"-A {_NODE_PORTS} -p {protocol} -m {protocol} --dport {port} {reject}"

    def _filter_places(self) -> Iterator[tuple[str, int]]:
        """Yield the place in each base chain: at the front, but after rules that refuse sources."""
        for name in _FILTER:
            chain = None if self._filter is None else self._filter.chains.get(name)
            rows = () if chain is None else texts(chain)
            walls = [at for at, row in enumerate(rows, 2) if target_in(row) == _FIREWALL]
            yield name, max(walls, default=1)

    # --- text ----------------------------------------------------------------------

    def apply(self) -> str:
        """Return the input of iptables-restore; filter first, so that rejects are in place."""
        if not self._groups and not self._ports:
            return ""
        lines: list[str] = []
        refusing = self._filter_chains()
        if refusing:
            lines += ["*filter", *(f"-N {name}" for name in refusing), *self._filter_rows()]
            lines += [f"-I {name} {at} {_NEW}" for name, at in self._filter_places()]
            lines.append("COMMIT")
        lines += ["*nat", *(f"-N {name}" for name in self._nat_chains()), *self._nat_rows()]
        before: dict[str, int] = {}
        for name, at, rule in self._entries:
            # Each that is inserted moves those after it by one.
            shift = before.get(name, 0)
            before[name] = shift + 1
            lines.append(f"-I {name} {at + shift} {_jump(rule)}")
        lines.append("COMMIT")
        return "\n".join(lines) + "\n"

    def undo(self) -> str:
        """Return its inverse; nat first, so that kube-proxy's rules apply to flows again."""
        lines = ["*nat", *(f"-D {name} {_jump(rule)}" for name, _, rule in self._entries)]
        lines += [f"-F {name}" for name in self._nat_chains()]
        lines += [f"-X {name}" for name in self._nat_chains()]
        lines.append("COMMIT")
        refusing = self._filter_chains()
        if refusing:
            lines += ["*filter", *(f"-D {name} {_NEW}" for name, _ in self._filter_places())]
            lines += [f"-F {name}" for name in refusing]
            lines += [f"-X {name}" for name in refusing]
            lines.append("COMMIT")
        return "\n".join(lines) + "\n"


def _jump(rule: Rule) -> str:
    """Return the rule to insert before `rule`, without the chain."""
    kept = tuple(each for each in rule.matches if not isinstance(each, MatchComment))
    text = render_rule("", replace(rule, matches=kept, target=Jump(_SERVICES)))
    return text.removeprefix("-A ").lstrip()


def _key(row: str) -> _Key:
    found = _KEY.match(row)
    if found is None:
        return None, None, None
    address, protocol, port = found.groups()
    return address, protocol, port


def _name_of(rules: Sequence[Rule]) -> str:
    """Return the Service's name from a comment, else the first rule's place."""
    for rule in rules:
        for each in rule.matches:
            if isinstance(each, MatchComment):
                name, _ = names.name_and_kind(each.text)
                return name or each.text
    return f"rule {rules[0].location}"
