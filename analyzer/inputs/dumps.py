"""Several dumps of one node, distinguished by content.

Theory of operation: a node may have rules of iptables-legacy, of iptables-nft and of nft, for both
IP versions, each in a separate dump. A flow traverses all rules of its version, whatever program
wrote them; its Services are in one of the dumps. So for each version one dump is analysed, the
first that contains kube-proxy's rules, together with the rules of the others. nft prints both
versions at once: such a dump is used for both. It also prints the tables of iptables-nft, with less
detail than iptables-nft-save: if both are given, the latter are used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from analyzer.errors import UsageError
from analyzer.kubeproxy import names
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.nft.ruleset import Table
    from analyzer.semantics.base_chains import Rules

#: kube-proxy's table in nftables mode.
_TABLE: Final = "kube-proxy"


def told_apart(dumps: Sequence[Rules], others: Sequence[Rules]) -> Iterator[tuple[Rules, ...]]:
    """Yield for each IP version, or for both, the dump to analyse and the node's other rules.

    `others` are those of ``--with``: of the version of a dump only their rules count.

    Raises:
        UsageError: several dumps have rules of kube-proxy for one version.
    """
    number = len(dumps)
    every = once([*dumps, *others])
    dumps, others = every[:number], every[number:]
    main = _first(dumps)
    yield main, *(each for each in (*dumps, *others) if each is not main and goes_with(each, main))
    if not isinstance(main, Ruleset):
        return
    rest = [each for each in (*dumps, *others) if not goes_with(each, main)]
    if rest:
        second = _first(rest)
        nft = (each for each in (*dumps, *others) if not isinstance(each, Ruleset))
        yield second, *(each for each in rest if each is not second), *nft


def once(dumps: Sequence[Rules]) -> list[Rules]:
    """Return the dumps without nft tables that belong to iptables-nft and are in its own dump.

    Of tables that this does not show in full, only the chains that it shows are left out.
    """
    of_nft = [each for each in dumps if isinstance(each, Ruleset) and each.backend == "nft"]
    told = {(each.family, name) for each in of_nft for name in each.tables}
    partly = {
        (each.family, name): each.tables[name].chains
        for each in of_nft
        for name in each.not_shown
        if name in each.tables
    }
    found: list[Rules] = []
    for each in dumps:
        if isinstance(each, Ruleset) or told.isdisjoint(each.tables):
            found.append(each)
        else:
            kept = {
                key: _without_chains(table, partly.get(key, ()))
                for key, table in each.tables.items()
                if key not in told or key in partly
            }
            found.append(replace(each, tables=kept))
    return found


def _without_chains(table: Table, names: Collection[str]) -> Table:
    chains = {name: chain for name, chain in table.chains.items() if name not in names}
    return replace(table, chains=chains) if names else table


def _first(dumps: Sequence[Rules]) -> Rules:
    """Return the dump that has kube-proxy's rules, else the first."""
    if not dumps[1:]:
        return dumps[0]
    found = [each for each in dumps if has_services(each)]
    for each in found[1:]:
        if goes_with(each, found[0]):
            raise UsageError(
                f"{each.file}: both this and {found[0].file} have rules of kube-proxy; pass one "
                "as DUMP, and the other with --with"
            )
    # Of listings, of one table each, the one that could have them.
    could = (each for each in dumps if isinstance(each, Ruleset) and "nat" in each.tables)
    return next(iter(found), next(could, dumps[0]))


def goes_with(one: Rules, other: Rules) -> bool:
    """Return whether any flow can traverse the rules of both."""
    if isinstance(one, Ruleset) and isinstance(other, Ruleset):
        return one.family == other.family
    return True


def has_services(ruleset: Rules) -> bool:
    """Return whether a dump has kube-proxy's rules of Services."""
    if not isinstance(ruleset, Ruleset):
        return any(name == _TABLE for _, name in ruleset.tables)
    nat = ruleset.tables.get("nat")
    chain = None if nat is None else nat.chains.get(names.SERVICES)
    return chain is not None and len(chain.rules) > 0


def of_version(dumps: Sequence[Rules], family: str) -> tuple[Rules, ...]:
    """Return the dumps whose rules match packets of a family, the one with Services first."""
    every = once(dumps)
    fitting = [
        each for each in every if not isinstance(each, Ruleset) or each.family == family
    ] or every
    return tuple(sorted(fitting, key=lambda each: not has_services(each)))
