"""What kube-proxy itself wrote, compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.kubeproxy.diff.difference import Conclusion
from tests.support.captures import FIXTURES, Capture, captures_in
from tests.support.comparing import compared, in_any_order, mirrored, side_of_capture

EVERY = captures_in(FIXTURES, "*")


def version_of(capture: Capture) -> int:
    return 6 if capture.dump.name.startswith("ip6") else 4


@pytest.mark.alike
@pytest.mark.parametrize("capture", EVERY, ids=str)
def test_a_dump_does_not_differ_from_itself(capture: Capture) -> None:
    version = version_of(capture)
    a, b = side_of_capture(capture, version), side_of_capture(capture, version)
    found = compared(a, b, version)
    assert (found.changes, found.beside, found.verdict) == ((), (), Conclusion.SAME)


def test_no_capture_differs_from_itself(captures: Path) -> None:
    for capture in captures_in(captures, "features*", "dual-stack", "big-svc", "scale-1000"):
        version = version_of(capture)
        side = side_of_capture(capture, version)
        assert compared(side, side, version).verdict is Conclusion.SAME, capture


def of_version_4(root: Path, case: str) -> list[Capture]:
    return [capture for capture in captures_in(root, case) if version_of(capture) == 4]


@pytest.mark.parametrize("case", ["features", "seed-dns", "two-node"])
def test_both_backends_of_iptables_mode_are_the_same(captures: Path, case: str) -> None:
    by_version: dict[tuple[int, int], list[Capture]] = {}
    for capture in of_version_4(captures, case):
        by_version.setdefault(capture.version, []).append(capture)
    pairs = [found for found in by_version.values() if len(found) > 1]
    assert len(pairs) > 1
    for found in pairs:
        legacy, nft = map(side_of_capture, found)
        assert compared(legacy, nft).verdict is Conclusion.SAME, found


@pytest.mark.parametrize("case", ["seed-dns", "two-node"])
def test_five_digits_and_ten_are_the_same(captures: Path, case: str) -> None:
    """1.14 reads Endpoints and not EndpointSlices; of these objects both say the same."""
    found = [c for c in of_version_4(captures, case) if "-legacy/" in str(c)]
    assert (found[0].version, found[-1].version) == ((1, 14), (1, 36))
    oldest, newest = (side_of_capture(c) for c in (found[0], found[-1]))
    assert compared(oldest, newest).verdict is Conclusion.SAME


def test_what_changed_between_versions_is_all_that_differs(captures: Path) -> None:
    features = of_version_4(captures, "features")
    by_version = {c.version: side_of_capture(c) for c in features}
    later = compared(by_version[1, 30], by_version[1, 36])
    # From 1.33 on trafficDistribution is looked at, from 1.34 on that of the same node.
    assert {c.name.text for c in later.changes} == {"feat/prefer-close", "feat/prefer-same-node"}
    long = compared(by_version[1, 20], by_version[1, 36])
    assert {c.name.text for c in long.changes if c.is_certain} == {
        "feat/prefer-close",
        "feat/prefer-same-node",
        "feat/topology",  # hints, from 1.23 on
        "feat/both-local",  # internalTrafficPolicy, from 1.22 on
        "feat/internal-local",
        "feat/internal-local-none-here",
        "feat/external-ips",  # up to 1.21 not for the node itself
        "feat/external-ips-local",
        "feat/lb-ranges",  # up to 1.23 a mark says what to drop, and the kubelet drops it
        "feat/lb-local-ranges",
        "feat/nodeport-local-none-here",
        "feat/terminating-all",  # terminating endpoints as a last resort, from 1.26 on
        "feat/terminating-local",
    }
    # -m physdev, which nobody who does not know the bridge can decide.
    assert {c.name.text for c in long.changes if any(r.change.unknown for r in c.routes)} == {
        "feat/external-ips",
        "feat/external-ips-local",
    }


def test_what_is_gone_in_one_direction_is_added_in_the_other(captures: Path) -> None:
    features = of_version_4(captures, "features")
    a, b = side_of_capture(features[0]), side_of_capture(features[-1])
    assert in_any_order(compared(b, a)) == in_any_order(mirrored(compared(a, b)))


def test_two_nodes_of_a_cluster_differ_by_who_is_where(captures: Path) -> None:
    here, there = (
        next(c for c in of_version_4(captures, case) if c.version == (1, 36))
        for case in ("two-node", "two-node@worker1")
    )
    found = compared(side_of_capture(here), side_of_capture(there))
    # The API server listens at an address of its node: what comes in for it stays there.
    assert {c.name.text for c in found.changes} == {"default/kubernetes:https"}
    assert all(r.change.masquerade for c in found.changes for r in c.routes)
