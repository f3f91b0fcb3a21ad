"""Tables, chains, rules, sets and maps of nftables, in the terms of nft(8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzer.model.diagnostics import Diagnostic, Location
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.nft.expressions import Constant, Element, Expression
    from analyzer.model.nft.statements import Statement

#: Values that nft has for tables and base chains.
FAMILIES: Final = frozenset({"ip", "ip6", "inet", "arp", "bridge", "netdev"})
FLAGS: Final = frozenset({"dormant", "owner", "persist"})
TYPES: Final = frozenset({"filter", "nat", "route"})
HOOKS: Final = frozenset(
    {"prerouting", "input", "forward", "output", "postrouting", "ingress", "egress"}
)
POLICIES: Final = frozenset({"accept", "drop"})


@value
class Rule:
    """Statements that are evaluated in order.

    Attributes:
        location: the line, from 1; in JSON, which has no lines, the number of the object in
            the array ``nftables``, from 1.
        raw: the rule as it is in the input, so that a report can quote its evidence.
        chain: the name of its chain.
    """

    statements: tuple[Statement, ...]
    location: Location
    raw: str
    comment: str | None = None
    chain: str = ""


@value(kw_only=True)
class Chain:
    """Rules in order; a base chain has a hook.

    `rules` may be a sequence that parses its rules on access.

    Attributes:
        type: ``filter``, ``nat`` or ``route`` of a base chain.
        priority: as a number; chains of a hook are evaluated from the lowest to the highest.
        policy: of a base chain; nft assumes ``accept`` if none is given. Any other word than that
            and ``drop`` is kept, with an unknown meaning.
        devices: interfaces of an ingress or egress hook.
    """

    name: str
    rules: Sequence[Rule]
    type: str | None = None
    hook: str | None = None
    priority: int | None = None
    policy: str | None = None
    devices: tuple[str, ...] = ()
    comment: str | None = None

    @property
    def is_unplaced(self) -> bool:
        """Whether it is a base chain whose type, hook or priority is not known."""
        if self.type in TYPES and self.hook in HOOKS and self.priority is not None:
            return False
        return (self.type, self.hook, self.priority, self.policy) != (None, None, None, None)


@value(kw_only=True)
class Set:
    """A named set or, with a type of value, a named map.

    `elements` may be a sequence that parses them on access.

    Attributes:
        key: its type, one name for each part of a concatenation: ``ipv4_addr``.
        value: the type of a map's values; ``("verdict",)`` of a verdict map; None for a set.
        typeof: the expressions by which the types were given, if they were; JSON omits them.
        flags: some of ``constant``, ``dynamic``, ``interval``, ``timeout``; ``dynamic`` of all sets
            that rules update, and of others for which nft says it.
        timeout: seconds that an element stays, rounded down.
        gc_interval: seconds, rounded down.
        statements: what each element keeps: a counter, a limit.
    """

    name: str
    key: tuple[str, ...]
    value: tuple[str, ...] | None = None
    typeof: tuple[tuple[Expression, ...], tuple[Expression, ...]] | None = None
    flags: tuple[str, ...] = ()
    timeout: int | None = None
    gc_interval: int | None = None
    size: int | None = None
    policy: str | None = None
    auto_merge: bool = False
    statements: tuple[Statement, ...] = ()
    comment: str | None = None
    elements: Sequence[Element] = ()


@value(kw_only=True)
class NamedObject:
    """A counter, quota, limit or conntrack object that rules refer to by its name.

    Attributes:
        kind: ``counter``, ``quota``, ``limit``, ``ct helper``, ``ct timeout``, ...
        properties: of a counter ``packets`` and ``bytes``; of the others whatever the input
            has, as name and constant.
    """

    kind: str
    name: str
    properties: tuple[tuple[str, Constant], ...] = ()
    comment: str | None = None


@value(kw_only=True)
class Flowtable:
    """Flows that bypass the rules."""

    name: str
    hook: str | None = None
    priority: int | None = None
    devices: tuple[str, ...] = ()


@value(kw_only=True)
class Table:
    """A namespace of chains, sets and objects.

    Attributes:
        family: ``ip``, ``ip6``, ``inet``, ``arp``, ``bridge`` or ``netdev``.
        flags: ``dormant``: none of its chains is evaluated; ``owner``, ``persist``.
        sets: includes maps, which share the namespace.
        objects: by kind and name.
        complete: False if the input ends before the table does, or something in the table is
            not understood: there may be any other chain.
    """

    family: str
    name: str
    chains: Mapping[str, Chain]
    sets: Mapping[str, Set]
    objects: Mapping[tuple[str, str], NamedObject]
    flowtables: Mapping[str, Flowtable]
    flags: tuple[str, ...] = ()
    comment: str | None = None
    complete: bool = True

    @property
    def rules(self) -> int:
        """The number of rules in all chains."""
        return sum(len(chain.rules) for chain in self.chains.values())


@value(kw_only=True)
class NftRuleset:
    """The whole of one node's nftables in one dump.

    Attributes:
        tables: by family and name, in the order of the dump.
        version: of the nft that printed it, if it says so.
        taken: when, as of a `Ruleset`; nft prints none.
    """

    tables: Mapping[tuple[str, str], Table]
    input_format: str
    file: str
    version: str | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    taken: str = ""

    @property
    def rules(self) -> int:
        """The number of rules in the dump."""
        return sum(table.rules for table in self.tables.values())
