"""Other programs' rules beside kube-proxy's: the kernel does what is predicted, as assumed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from analyzer.semantics.assumed import BY_NAME
from tests.support.captures import ROOT
from tests.support.lab.running import kubeodds, lab_run

pytestmark = pytest.mark.lab

NOISE: Final = ROOT / "fixtures" / "noise"
OBJECTS: Final = ("--objects", str(NOISE / "objects.json"))
APP: Final = ("--service", "default/app", "--flows", "2000", "--from", "pod,external")
CHECK: Final = """*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -m rpfilter --validmark --invert -j DROP
COMMIT
"""


def agreed(dump: str, *more: str) -> list[str]:
    """Return what was assumed of a run that agrees with its prediction."""
    status, found, _ = lab_run(dump, *OBJECTS, *APP, *more)
    assert status == 0
    assert found["agrees"]
    assert found["measurements"]
    for each in found["measurements"]:
        assert all(e["predicted"]["lower"] == e["predicted"]["upper"] for e in each["endpoints"])
        assert sum(e["landed"] for e in each["endpoints"]) == 2000
    return [each["message"] for each in found["diagnostics"] if each["code"] == "assumed"]


@pytest.mark.parametrize("name", ["portmap", "flannel", "aws-vpc-cni", "nodelocaldns"])
def test_the_kernel_agrees_beside_the_rules_of_others(name: str) -> None:
    assert agreed(str(NOISE / f"{name}.txt"), "--node", "worker1") == []


def test_no_cluster_ip_is_an_address_of_the_lab_s_node() -> None:
    told = BY_NAME["cluster-ip"].sentences["not-local"]
    assert agreed(str(NOISE / "portmap.txt")) == [told]
    run = kubeodds("lab", "run", str(NOISE / "portmap.txt"), *OBJECTS, *APP)
    assert f"Assumed: {told}." in run.stdout.splitlines()


def test_the_reverse_path_check_passes_flows_of_the_lab(tmp_path: Path) -> None:
    dump = tmp_path / "dump.txt"
    dump.write_text((NOISE / "base.txt").read_text() + CHECK)
    told = BY_NAME["reverse-path"].sentences["pass"]
    assert agreed(str(dump), "--node", "worker1") == [told]
