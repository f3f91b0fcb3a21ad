"""Which versions of kube-proxy are known, and by whose captures."""

from __future__ import annotations

import pytest

from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.predict.versions import NEWEST, counted_as, version_from_text


@pytest.mark.parametrize(
    ("text", "layout", "nftables", "node_hints"),
    [
        ("1.14.10", RulesLayout.V1_14, False, False),
        ("1.15", RulesLayout.V1_16, False, False),
        ("1.16.15", RulesLayout.V1_16, False, False),
        ("1.17", RulesLayout.V1_17, False, False),
        ("1.18", RulesLayout.V1_18, False, False),
        ("1.19", RulesLayout.V1_20, False, False),
        ("1.20", RulesLayout.V1_20, False, False),
        ("v1.21.14", RulesLayout.V1_21, False, False),
        ("v1.22.0", RulesLayout.V1_22, False, False),
        ("v1.22.3-rc.1+k3s1", RulesLayout.V1_22, False, False),
        ("v1.22.3+k3s1", RulesLayout.V1_22, False, False),
        ("v1.22.4", RulesLayout.V1_23, False, False),
        ("v1.22.17", RulesLayout.V1_23, False, False),
        ("1.22", RulesLayout.V1_23, False, False),
        ("1.23", RulesLayout.V1_23, False, False),
        ("1.24", RulesLayout.V1_24, False, False),
        ("1.25", RulesLayout.V1_25, False, False),
        ("1.26", RulesLayout.V1_26, False, False),
        ("1.27", RulesLayout.V1_27, False, False),
        ("1.28", RulesLayout.V1_28, False, False),
        ("v1.29.4-gke.100", RulesLayout.V1_30, True, False),
        ("1.31", RulesLayout.V1_36, True, False),
        ("v1.34.0+k3s1", RulesLayout.V1_36, True, True),
        ("1.36", RulesLayout.V1_36, True, True),
        ("1.40", RulesLayout.V1_36, True, True),
    ],
)
def test_a_version_has_the_layout_of_a_capture(
    text: str, layout: RulesLayout, nftables: bool, node_hints: bool
) -> None:
    version = version_from_text(text)
    assert version.layout is layout
    assert (version.has_nftables, version.has_node_hints) == (nftables, node_hints)
    assert version.is_known == (version.minor <= NEWEST.minor)


@pytest.mark.parametrize("text", ["", "1", "1.", "2.30", "1.x", "1.1000", "1.13", "1.9.1"])
def test_others_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"version|not predicted"):
        version_from_text(text)


def test_only_of_1_22_a_patch_counts() -> None:
    assert [counted_as(f"v1.22.{patch}") for patch in (0, 3, 4, 17)] == [
        "1.22.0",
        "1.22.0",
        "1.22",
        "1.22",
    ]
    assert counted_as("v1.21.3") == counted_as("v1.21.9") == "1.21"
    assert version_from_text("1.22.2").text == "1.22.0"
    assert version_from_text("1.23.2").text == "1.23"
