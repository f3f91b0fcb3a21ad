"""What is predicted from the objects of a capture is what its dump says, at the dump's node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from tests.support.capture_objects import items_of, text_of
from tests.support.captures import FIXTURES
from tests.support.layouts import PROMISED
from tests.support.predictions import cluster_of, differences, predicted, settings_of
from tests.support.reading import recogniser

#: Dumps of versions whose rules are predicted; each of a few seconds is left to the soak.
_PATTERNS = ("*-iptables-*/*/ip*tables-*-save.txt*", "*-nftables/*/nft-list-ruleset.txt*")
_LARGE = ("scale-5000", "scale-10000")


def dumps(root: Path) -> list[Path]:
    known = tuple(layout.value for layout in RulesLayout)
    found = [path for pattern in _PATTERNS for path in root.glob(pattern)]
    return sorted(
        path
        for path in found
        if path.parent.parent.name.startswith(known) and path.parent.name not in _LARGE
    )


def check(dump: Path) -> int:
    """Hold a dump against its prediction; return how many ServicePorts there were."""
    items, run = items_of(dump), json.loads((dump.parent / "run.json").read_text())
    version = ".".join(dump.parent.parent.name.split(".")[:2])
    mode = ProxyMode.NFTABLES if dump.name.startswith("nft") else ProxyMode.IPTABLES
    settings = replace(
        settings_of(RulesLayout(version), run["flags"], mode),
        kubelet=dump.parent.name.endswith("+kubelet"),
    )
    cluster, node = cluster_of(items), run["node"]
    families = (4, 6) if mode is ProxyMode.NFTABLES else (6 if dump.name.startswith("ip6") else 4,)
    ruleset, own = read_ruleset(text_of(dump).encode(), "dump"), cluster.nodes[node].addresses
    if isinstance(ruleset, NftRuleset):
        view = NftRecogniser(ruleset, cluster, node=node, node_addresses=own).view()
    else:
        view = recogniser(ruleset, cluster, node=node, node_addresses=own).view()
    for family in families:
        found = predicted(items, settings, family)
        # A Service without its address, as in the middle of a sync, would be of no version.
        services = [each for each in view.services if each.version == family]
        told = [*differences(found, node, services)]
        assert not told, (dump, told)
    return len(view.services)


@pytest.mark.alike
@pytest.mark.parametrize(
    "dump", dumps(FIXTURES), ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}"
)
def test_fixtures_are_predicted(dump: Path) -> None:
    assert check(dump) > 0


def test_every_capture_is_predicted(captures: Path) -> None:
    found = dumps(captures)
    cases = {dump.parent.name for dump in found}
    assert {"features", "features-no-cidr", "features-masq-all", "dual-stack"} <= cases
    versions = {dump.parent.parent.name[:4] for dump in found}
    assert versions == {"1.14", *(each.value for each in PROMISED)}
    assert sum(map(check, found)) > 5_000
