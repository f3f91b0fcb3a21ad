"""The table of components: whole, with a reason and a source in each cell."""

from __future__ import annotations

import re

import pytest

from analyzer.outage.components import COMPONENTS, Component

#: A file, or a page of documentation.
_SOURCE = re.compile(r"[\w./-]+\.go(, \w+)*|(etcd|kubernetes)\.io/docs, [\w ,-]+")


def test_every_component_has_its_row() -> None:
    assert [each.name for each in COMPONENTS] == [
        "kube-apiserver",
        "kube-apiserver",
        "etcd",
        "kube-controller-manager",
        "kube-scheduler",
        "cloud-controller-manager",
        "kubelet",
        "kube-proxy",
        "load balancer",
    ]


@pytest.mark.parametrize("each", COMPONENTS, ids=lambda c: f"{c.name}: {c.down}")
def test_each_cell_has_a_reason_and_a_source(each: Component) -> None:
    for effect in (each.works, each.stops, each.since):
        assert effect.what
        assert effect.why
        for source in effect.source.split("; "):
            assert _SOURCE.fullmatch(source), source
