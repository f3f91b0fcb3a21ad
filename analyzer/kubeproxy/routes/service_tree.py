"""The tree of a new flow to a Service, from its hook to where it ends.

After DNAT a packet traverses all tables on the node, and most flows match no rule there: if all
ways from one DNAT lead to one endpoint, the endpoint stands at that DNAT, without the rules after
it. If those may refuse the flow, or no DNAT took it, the tree shows them to the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.errors import UsageError
from analyzer.kubeproxy.routes.trace import Question, way
from analyzer.model.addresses import Address
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Dnat
from analyzer.model.nft.statements import Dnat as NftDnat
from analyzer.model.packet import Packet
from analyzer.model.value import replace
from analyzer.semantics.assumed import Assumed
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.depth import deep
from analyzer.semantics.devices import NodeDevices
from analyzer.semantics.fate import fate_of
from analyzer.semantics.tree import AnyRule, Chance, Either, Leaf, Tree, Unresolved, every_leaf


def service_tree(
    rulesets: Sequence[Rules],
    family: str,
    packet: Packet,
    own: tuple[Address, ...],
    assumed: Assumed | None = None,
    devices: NodeDevices | None = None,
) -> Tree:
    """Return the tree of a packet's whole way; `own` are the node's addresses, if known.

    `assumed` are the assumptions beyond the rules, and records those that the tree rests on;
    `devices` knows the devices that flows pass.
    """
    try:
        question = Question(
            packet=packet, addresses=own or None, devices=devices, follows_answers=True
        )
        tree = way(rulesets, question, family, assumed)
    except UsageError as error:  # a frontend's address is not unicast, for example multicast
        return Leaf(Unresolved(str(error)), packet)
    return _settled(tree)


@deep
def _settled(tree: Tree) -> Tree:
    """Return `tree` with each endpoint at the DNAT from which all ways lead to it."""
    done: dict[int, Tree] = {}

    def of(each: Tree) -> Tree:
        if id(each) not in done:
            done[id(each)] = _arrived(each) or inside(each)
        return done[id(each)]

    def inside(each: Tree) -> Tree:
        match each:
            case Chance(branches):
                return replace(each, branches=tuple([(w, of(child)) for w, child in branches]))
            case Either(_, branches):
                return replace(each, branches=tuple([of(child) for child in branches]))
            case _:
                return each

    return of(tree)


def _arrived(tree: Tree) -> Leaf | None:
    """Return the end of a tree that begins with a DNAT whose flows all reach one endpoint."""
    last = max((at for at, rule in enumerate(tree.rules) if _translates(rule)), default=None)
    if last is None:
        return None
    leaves = list(every_leaf(tree))
    fates = {None if isinstance(leaf.outcome, Unresolved) else fate_of(leaf) for leaf in leaves}
    if len(fates) > 1 or {fate and fate.kind for fate in fates} != {"endpoint"}:
        return None
    return replace(leaves[0], rules=tree.rules[: last + 1])


def _translates(rule: AnyRule) -> bool:
    if isinstance(rule, Rule):
        return isinstance(rule.target, Dnat)
    return any(isinstance(statement, NftDnat) for statement in rule.statements)
