"""Repairs of generated clusters, applied to their rules by the real programs.

A program: it leaves the host's network. Prints what it found as JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import Endpoint, View
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.parsers import nft_text
from analyzer.parsers.iptables_save import parse
from analyzer.repair.applied import applied
from analyzer.repair.chains import Graph
from analyzer.repair.iptables import patch_of
from analyzer.repair.nft import repaired_tables, with_table
from analyzer.repair.patch import RulesPatch
from analyzer.semantics.base_chains import Rules
from netns_lab.backend import Backend
from netns_lab.backends import BACKENDS
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace, leave_host
from tests.support.clusters import GeneratedCluster, clusters

_NFT_LAYOUTS = (RulesLayout.V1_30, RulesLayout.V1_36)


class Trial:
    """Repairs on one backend, and what did not hold of them."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self.applied: Counter[str] = Counter()
        self.faults: list[str] = []

    def put(self, cluster: GeneratedCluster, chance: random.Random) -> None:
        """Repair a cluster's rules, and hold what the kernel has against what was meant."""
        if self._backend == "nftables":
            ruleset: Rules = nft_text.parse(cluster.nft, "dump")
        else:
            ruleset = parse(cluster.dump, "dump")
        view = _view(ruleset)
        dead = [each for each in sorted(view.endpoints, key=str) if chance.random() < 0.4]
        patches, then = _repaired(ruleset, dead)
        held = [each for each in patches if each.apply]
        if not held:
            return
        backend = BACKENDS[self._backend](Namespace(self._backend), ruleset)
        try:
            self._cycle(backend, ruleset, then, held, dead)
        except LabError as error:
            self.faults.append(f"{cluster.layout.value}: {error}")
        self.applied[f"{self._backend} {cluster.family}"] += 1

    def _cycle(
        self,
        backend: Backend,
        ruleset: Rules,
        then: Rules,
        held: Sequence[RulesPatch],
        dead: Sequence[Endpoint],
    ) -> None:
        before = backend.saved()
        gone = Graph(ruleset.tables["nat"], dead).gone if isinstance(ruleset, Ruleset) else ()
        self._hold("it is taken", _in_two(backend, ruleset, held))
        backend.adopt(then)
        saved = backend.saved()
        self._hold("not twice", not any(backend.change(each.apply) for each in held))
        self._hold("twice changes nothing", backend.saved() == saved)
        self._hold("a sync that deletes", backend.resync(ruleset, gone))
        self._hold("a sync", backend.resync(ruleset))
        backend.adopt(then)
        self._hold("the undo is taken", all(backend.change(each.undo) for each in held))
        backend.adopt(ruleset)
        if isinstance(ruleset, Ruleset):  # nft lists elements in an order of its own
            self._hold("byte for byte", backend.saved() == before)

    def _hold(self, says: str, holds: bool) -> None:
        if not holds:
            self.faults.append(says)


def _in_two(backend: Backend, ruleset: Rules, held: Sequence[RulesPatch]) -> bool:
    """Apply table by table, with a sync of kube-proxy's after each."""
    taken = True
    for patch in held:
        # A table of iptables ends with COMMIT; to nft the whole is one transaction.
        tables = patch.apply.split("COMMIT\n")[:-1] if "COMMIT\n" in patch.apply else []
        for text in [f"{each}COMMIT\n" for each in tables] or [patch.apply]:
            taken = backend.change(text) and backend.resync(ruleset) and taken
    return taken


def _view(ruleset: Rules) -> View:
    if isinstance(ruleset, Ruleset):
        return Recogniser(ruleset, Cluster()).view()
    return NftRecogniser(ruleset, Cluster()).view()


def _repaired(ruleset: Rules, dead: Sequence[Endpoint]) -> tuple[Sequence[RulesPatch], Rules]:
    if isinstance(ruleset, Ruleset):
        patch = patch_of(ruleset, dead)
        return [patch], applied(ruleset, patch.apply) if patch.apply else ruleset
    tables, patches = repaired_tables(ruleset, dead)
    return patches, with_table(ruleset, tables)


def main(words: Sequence[str] | None = None) -> int:
    """Offer all backends repaired clusters of some layouts; 1: something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20, help="of each layout and family")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--layouts", type=lambda text: text.split(","), help="default: all")
    options = parser.parse_args(words)
    leave_host()
    found = {}
    for backend in BACKENDS:
        trial = Trial(backend)
        for layout in _NFT_LAYOUTS if backend == "nftables" else RulesLayout:
            if options.layouts is None or layout.value in options.layouts:
                for family in (4, 6):
                    _try(trial, clusters(layout, families=st.just(family)), options)
        found[backend] = {"applied": trial.applied, "faults": trial.faults}
    json.dump(found, sys.stdout)
    return int(any(trial["faults"] for trial in found.values()))


def _try(
    trial: Trial, made: st.SearchStrategy[GeneratedCluster], options: argparse.Namespace
) -> None:
    chance = random.Random(options.seed)

    @seed(options.seed)
    @settings(
        max_examples=options.examples,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(made)
    def each(cluster: GeneratedCluster) -> None:
        trial.put(cluster, chance)

    each()


if __name__ == "__main__":
    sys.exit(main())
