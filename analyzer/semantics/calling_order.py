"""The order in which a hook calls its base chains, as far as it is known.

Theory of operation
===================

A hook calls its chains from the lowest priority to the highest, and of two chains with the same
priority the one registered later first. Within one nft ruleset the order of the listing gives the
order of registration; between two rulesets nothing does, so every order is possible that keeps
the order within each.

Chains of type nat are called together, whatever their priorities, at the position of iptables'
nat table, one after another until one of them has set up NAT. Their dispatcher is registered at
all hooks along with the first of them, whatever its hook.

Source: Linux, net/netfilter/core.c, ``nf_hook_entries_grow``; net/netfilter/nf_nat_core.c,
``nf_nat_register_fn``, ``nf_nat_inet_fn``; include/uapi/linux/netfilter_ipv4.h,
``nf_ip_hook_priorities``; seen on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, product
from math import factorial, prod
from typing import Final, TypeAlias, TypeVar

from analyzer.model.diagnostics import Location
from analyzer.model.hooks import POLICIES
from analyzer.model.packet import Packet
from analyzer.model.value import replace, value
from analyzer.semantics.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Walker(Protocol):
        """Evaluates packets in the chains of one table."""

        evaluated: set[type]
        joins_marks: bool

        @property
        def visited(self) -> list[str]:
            """The chains that packets entered so far."""

        def tree(self, chain: str, packet: Packet) -> Tree:
            """Return what happens to `packet` from the first rule of `chain` on."""

        def forget(self) -> None:
            """Forget the results so far."""


T = TypeVar("T")

#: The priority at which chains of type nat are called, by hook.
NAT: Final = {"PREROUTING": -100, "OUTPUT": -100, "INPUT": 100, "POSTROUTING": 100}
#: What is added to the priorities of chains at devices, by hook: they are called before all others,
#: lost ones too, or after them.
_BEYOND: Final = {"PREROUTING": -(2**33), "POSTROUTING": 2**33}
#: Most orders that are evaluated one by one.
_MOST: Final = 100


@value(kw_only=True)
class BaseChain:
    """A chain that a hook calls.

    Attributes:
        ruleset: the number, from 0, of its ruleset.
        table: as people call it: ``nat``, ``ip kube-proxy``.
        registered: its place in the order in which its ruleset registered such chains, or 0 if
            no two of them have the same priority.
        policy: ACCEPT or DROP; None if a partial dump does not say; other words are not known.
        is_before: whether conntrack has not seen the packet yet.
        matters: whether it can have any effect on a packet.
        lost: in an incomplete table, the chain that may be missing; the walker is not used.
        again: evaluates packets that conntrack knows, which came back by loopback.
        place: of a policy that drops, as far as it is known.
        devices: of a chain at devices, their names; none if the dump does not say them. None: it is
            one of IP's own hooks.
    """

    ruleset: int
    table: str
    name: str
    hook: str
    priority: int
    is_nat: bool
    policy: str | None
    walker: Walker
    again: Walker
    registered: int = 0
    is_before: bool = False
    matters: bool = True
    lost: str | None = None
    place: Location | None = None
    devices: tuple[str, ...] | None = None

    @property
    def called(self) -> int:
        """The priority at which the hook calls it."""
        if self.devices is not None:
            return self.priority + _BEYOND[self.hook]
        return NAT[self.hook] if self.is_nat else self.priority

    @property
    def lacks_policy(self) -> bool:
        """Whether its policy is not known; if none is stated, iptables' nat chains accept."""
        return self.policy not in POLICIES and not (self.is_nat and self.policy is None)


@value
class Tie:
    """Chains in each of the orders in which they may be called; none if there are too many."""

    chains: tuple[BaseChain, ...]
    orders: tuple[tuple[BaseChain, ...], ...]


#: One step of a hook.
Stage: TypeAlias = BaseChain | Tie


def in_order(chains: Mapping[str, Sequence[BaseChain]]) -> dict[str, tuple[Stage, ...]]:
    """Return the steps of each hook; chains without effect on any packet are left out."""
    nat_since: dict[int, int] = {}
    for chain in (chain for held in chains.values() for chain in held if chain.is_nat):
        since = nat_since.get(chain.ruleset, chain.registered)
        nat_since[chain.ruleset] = min(since, chain.registered)
    return {hook: tuple(_in_order(held, nat_since)) for hook, held in chains.items()}


def _in_order(chains: Iterable[BaseChain], nat_since: Mapping[int, int]) -> Iterator[Stage]:
    mattering = sorted((c for c in chains if c.matters), key=lambda c: (c.called, c.registered))
    for _, group in groupby(mattering, lambda c: c.called):
        tied = list(group)
        others = [chain for chain in tied if not chain.is_nat]
        nat = sorted((chain for chain in tied if chain.is_nat), key=lambda c: c.priority)
        blocks = [list(block) for _, block in groupby(nat, lambda c: c.priority)]
        if others and nat:
            yield from _stages(tied, _around(others, blocks, nat_since))
            continue
        for block in (others, *blocks):
            yield from _stages(block, _orders(_by_ruleset(block)))


def _stages(chains: list[BaseChain], orders: Iterable[tuple[BaseChain, ...]]) -> tuple[Stage, ...]:
    told = tuple(dict.fromkeys(orders))
    return told[0] if len(told) == 1 else (Tie(tuple(chains), told),)


def _by_ruleset(chains: Iterable[BaseChain]) -> list[list[BaseChain]]:
    found: dict[int, list[BaseChain]] = {}
    for chain in chains:
        found.setdefault(chain.ruleset, []).append(chain)
    return list(found.values())


def _around(
    others: list[BaseChain], nat: list[list[BaseChain]], nat_since: Mapping[int, int]
) -> Iterator[tuple[BaseChain, ...]]:
    """Yield the orders of chains if the nat chains among them are called together."""
    events: dict[int, list[tuple[int, BaseChain | None]]] = {}
    for chain in others:
        events.setdefault(chain.ruleset, []).append((chain.registered, chain))
    for ruleset, since in nat_since.items():
        events.setdefault(ruleset, []).append((since, None))
    rows = [[chain for _, chain in sorted(row, key=lambda e: e[0])] for row in events.values()]
    insides = [sum(inside, ()) for inside in product(*(_orders(_by_ruleset(b)) for b in nat))]
    for outside, inside in product(_orders(rows), insides):
        # In the order of calls, the last mark of nat is the first that was registered.
        place = len(outside) - 1 - outside[::-1].index(None)
        before, behind = outside[:place], outside[place + 1 :]
        parts = (*before, *inside, *behind)
        yield tuple([chain for chain in parts if chain is not None])


def _orders(registered: Sequence[Sequence[T]]) -> list[tuple[T, ...]]:
    """Return the orders in which chains may be called, given each ruleset's registrations."""
    counts = [len(row) for row in registered]
    if factorial(sum(counts)) // prod(map(factorial, counts)) > _MOST:
        return []
    return [merged[::-1] for merged in _merged([tuple(row) for row in registered if row])]


def _merged(rows: list[tuple[T, ...]]) -> Iterator[tuple[T, ...]]:
    """Yield all ways to merge rows that keep the order of each."""
    if not rows:
        yield ()
    for at, (first, *rest) in enumerate(rows):
        left = [*rows[:at], tuple(rest), *rows[at + 1 :]]
        for merged in _merged([row for row in left if row]):
            yield (first, *merged)


# --- parts of what a hook calls ---


def without_nat(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return `stages` without nat chains."""
    return _changed(stages, lambda order: tuple(chain for chain in order if not chain.is_nat))


def up_to_nat(stages: Iterable[Stage], hook: str) -> tuple[Stage, ...]:
    """Return the stages up to and including the nat chains."""
    return _around_nat(tuple(stages), hook)[0]


def behind_nat(stages: Iterable[Stage], hook: str) -> tuple[Stage, ...]:
    """Return the stages after the nat chains, whichever of them translated a flow."""
    return _around_nat(tuple(stages), hook)[1]


def before_nat(stages: Iterable[Stage], hook: str) -> tuple[Stage, ...]:
    """Return the stages up to the nat chains, without these."""
    return without_nat(up_to_nat(stages, hook))


def after_nat(stages: Iterable[Stage], hook: str) -> tuple[Stage, ...]:
    """Return the stages after the nat chains, without one of these that is called later."""
    return without_nat(behind_nat(stages, hook))


def _around_nat(
    stages: tuple[Stage, ...], hook: str
) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
    """Return the stages up to the last nat chain, or to where it would be, and those after it."""
    last = max((at for at, stage in enumerate(stages) if _has_nat(stage)), default=None)
    if last is None:
        called = [s if isinstance(s, BaseChain) else s.chains[0] for s in stages]
        before = sum(chain.called <= NAT[hook] for chain in called)
        return stages[:before], stages[before:]
    middle = stages[last : last + 1]
    upper = _changed(middle, lambda order: order[: _nat_ends(order)])
    lower = _changed(middle, lambda order: order[_nat_ends(order) :])
    return (*stages[:last], *upper), (*lower, *stages[last + 1 :])


def _has_nat(stage: Stage) -> bool:
    chains = (stage,) if isinstance(stage, BaseChain) else stage.chains
    return any(chain.is_nat for chain in chains)


def _nat_ends(order: tuple[BaseChain, ...]) -> int:
    return max(at for at, chain in enumerate(order) if chain.is_nat) + 1


def each_as(stages: Iterable[Stage], made: Callable[[BaseChain], BaseChain]) -> tuple[Stage, ...]:
    """Return `stages` with each chain replaced by the result of `made`."""
    return _changed(stages, lambda order: tuple(map(made, order)))


def _changed(
    stages: Iterable[Stage],
    change: Callable[[tuple[BaseChain, ...]], tuple[BaseChain, ...]],
) -> tuple[Stage, ...]:
    found: list[Stage] = []
    for stage in stages:
        if isinstance(stage, BaseChain):
            found += change((stage,))
        elif not stage.orders:
            chains = change(stage.chains)
            found += [replace(stage, chains=chains)] if chains else []
        else:
            found += _stages(list(change(stage.chains)), map(change, stage.orders))
    return tuple(found)
