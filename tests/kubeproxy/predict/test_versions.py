"""Which versions of kube-proxy are known, and by whose captures."""

from __future__ import annotations

import pytest

from analyzer.kubeproxy.generate import Layout
from analyzer.kubeproxy.predict.versions import NEWEST, version_from_text


@pytest.mark.parametrize(
    ("text", "layout", "nftables", "node_hints"),
    [
        ("1.19", Layout.V1_20, False, False),
        ("v1.21.14", Layout.V1_20, False, False),
        ("1.24", Layout.V1_25, False, False),
        ("1.26", Layout.V1_30, False, False),
        ("v1.29.4-gke.100", Layout.V1_30, True, False),
        ("1.31", Layout.V1_36, True, False),
        ("v1.34.0+k3s1", Layout.V1_36, True, True),
        ("1.36", Layout.V1_36, True, True),
        ("1.40", Layout.V1_36, True, True),
    ],
)
def test_a_version_has_the_layout_of_a_capture(
    text: str, layout: Layout, nftables: bool, node_hints: bool
) -> None:
    version = version_from_text(text)
    assert version.layout is layout
    assert (version.has_nftables, version.has_node_hints) == (nftables, node_hints)
    assert version.is_known == (version.minor <= NEWEST.minor)


@pytest.mark.parametrize("text", ["", "1", "1.", "2.30", "1.x", "1.1000", "1.18", "1.22", "1.23.1"])
def test_others_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"version|not predicted"):
        version_from_text(text)
