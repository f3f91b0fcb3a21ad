"""Differences from most nodes of the cluster, in rules that belong to no one Service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from analyzer.cluster.drift_kinds import DriftFinding, DriftKind
from analyzer.cluster.facts import RuleFacts, from_text
from analyzer.cluster.store import NodeRow
from analyzer.model.addresses import VERSIONS


def cut_versions(node: NodeRow) -> frozenset[int]:
    """Return the IP versions of which a node may have more rules than its dump shows."""
    families = {place.partition(" ")[0] for place in from_text(node.facts).cut}
    told = {version for family, version in VERSIONS.items() if family in families}
    # Tables of inet, and of families that see frames, concern both.
    return frozenset([*node.cut, *(told if families <= VERSIONS.keys() else VERSIONS.values())])


def lacks_tables(node: NodeRow) -> bool:
    """Return whether a node's dump does not have all tables whose rules matter."""
    return bool(from_text(node.facts).untold)


def drift_of_nodes(nodes: Sequence[NodeRow]) -> Iterator[DriftFinding]:
    """Yield the differences of nodes that were read, from what most nodes have."""
    shown = [each for each in nodes if not each.unseen]
    for each in nodes:
        if each.unseen and not cut_versions(each):
            yield DriftFinding(drift=DriftKind.NO_SERVICES, node=each.node, what=each.unseen)
    modes = Counter(each.mode for each in shown)
    mode = _usual(modes, len(shown))
    for each in shown:
        if mode is not None and each.mode != mode:
            what = f"{each.mode}, not {mode}"
            yield DriftFinding(drift=DriftKind.OTHER_MODE, node=each.node, what=what)
    # Of another mode all is another: that is one difference.
    alike = [each for each in shown if mode is None or each.mode == mode]
    yield from _of_facts({each.node: from_text(each.facts) for each in alike})


def _usual(counted: Counter[str], number: int) -> str | None:
    """Return what more than half of all have; None: nothing."""
    most = counted.most_common(1)
    return most[0][0] if most and 2 * most[0][1] > number else None


def _of_facts(facts: dict[str, RuleFacts]) -> Iterator[DriftFinding]:
    backends = Counter(" and ".join(each.backends) for each in facts.values())
    usual = _usual(backends, len(facts))
    for node, each in facts.items():
        own = " and ".join(each.backends)
        if not own and each.cut:
            continue
        if len(each.backends) > 1:
            yield DriftFinding(drift=DriftKind.BOTH_BACKENDS, node=node, what=own)
        elif usual is not None and own != usual and " and " not in usual:
            yield DriftFinding(drift=DriftKind.OTHER_BACKEND, node=node, what=f"{own}, not {usual}")
    yield from _marks(facts)
    for field, missing, extra in (
        ("jumps", DriftKind.MISSING_JUMP, None),
        ("chains", DriftKind.MISSING_CHAIN, DriftKind.EXTRA_CHAIN),
        ("policies", DriftKind.OTHER_POLICY, DriftKind.OTHER_POLICY),
    ):
        held = {node: getattr(each, field) for node, each in facts.items()}
        whole = {node for node, each in facts.items() if not (each.cut or each.untold)}
        yield from _of_sets(held, whole, missing, extra)


def _marks(facts: dict[str, RuleFacts]) -> Iterator[DriftFinding]:
    for family in ("ip", "ip6"):
        own = {
            node: mark
            for node, each in facts.items()
            for of, _, mark in (text.partition(" ") for text in each.marks)
            if of == family
        }
        usual = _usual(Counter(own.values()), len(own))
        for node, mark in own.items():
            if usual is not None and mark != usual:
                what = f"{mark}, not {usual}"
                yield DriftFinding(drift=DriftKind.OTHER_MARK, node=node, what=what)


def _of_sets(
    held: dict[str, tuple[str, ...]],
    whole: Collection[str],
    missing: DriftKind,
    extra: DriftKind | None,
) -> Iterator[DriftFinding]:
    """Yield what a node lacks that more than half have, and has what less than half have.

    Of a family whose rules a node does not have at all nothing of it is missing. Only nodes whose
    dump is `whole` can be said to lack something.
    """
    families = {node: {text.partition(" ")[0] for text in texts} for node, texts in held.items()}
    counted = Counter(text for texts in held.values() for text in texts)
    for text, number in sorted(counted.items()):
        family = text.partition(" ")[0]
        all_have_it = missing is DriftKind.OTHER_POLICY
        lacking = {
            node
            for node in whole
            if (all_have_it or family in families[node]) and text not in held[node]
        }
        among = number + len(lacking)
        for node, texts in held.items():
            is_there = text in texts
            if node in lacking and 2 * number > among:
                yield DriftFinding(drift=missing, node=node, what=text)
            elif is_there and extra is not None and 2 * number < among:
                yield DriftFinding(drift=extra, node=node, what=text)
