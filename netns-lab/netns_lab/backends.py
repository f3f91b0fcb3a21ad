"""Table of the backends; a new one takes a module and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.text import printable
from analyzer.semantics.base_chains import Rules
from netns_lab.backend import Backend
from netns_lab.errors import LabError
from netns_lab.iptables import LegacyIptables, NftIptables
from netns_lab.namespace import Namespace
from netns_lab.nft_rules import Nftables


class OtherRules(Protocol):
    """A node's rules beside kube-proxy's, and whether some may be left out."""

    @property
    def others(self) -> tuple[Rules, ...]:
        """Rulesets of the other programs, in the order they were given."""

    @property
    def lenient(self) -> bool:
        """Whether rules that cannot be loaded are left out."""


BACKENDS: Final[Mapping[str, type[Backend]]] = {
    "legacy": LegacyIptables,
    "nft": NftIptables,
    "nftables": Nftables,
}


def load_beside(namespace: Namespace, first: Backend, question: OtherRules) -> tuple[Backend, ...]:
    """Load a node's other rulesets beside those of `first`, in the order they were given.

    Raises:
        LabError: two files have the same table.
    """
    tables = {(type(first), name): first.file for name in first.tables}
    found = []
    for ruleset in question.others:
        load = BACKENDS[backend_of(ruleset)]
        for name in ruleset.tables:
            other = tables.setdefault((load, name), ruleset.file)
            if other != ruleset.file:
                raise LabError(
                    f"{ruleset.file}: both this and {other} have table {printable(str(name))}, "
                    "and a node has only one: pass one dump that has the rules of both"
                )
        found.append(load(namespace, ruleset, lenient=question.lenient))
    return tuple(found)


def backend_of(ruleset: Rules) -> str:
    """Return the name of the backend that wrote a dump, `legacy` if the dump does not say."""
    match ruleset:
        case NftRuleset():
            return "nftables"
        case _:
            return ruleset.backend or "legacy"
