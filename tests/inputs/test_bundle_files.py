"""Bundles that other programs take: told by content, in each packing, and several nodes in one.

The layouts are those of the programs' sources (docs/bundles.md).
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from analyzer.parsers import iptables_save
from tests.support.archives import packed
from tests.support.commands import CAPTURE, DUMP, OBJECTS, Command
from tests.support.listings import listing_of

SAVED = (CAPTURE / "iptables-legacy-save.txt").read_bytes()
OTHER = SAVED.replace(b"10.244.0.", b"10.244.2.")
OBJECTS_JSON = (CAPTURE / "objects.json").read_bytes()
LOSS = ("--dead-node", "master", "-q")
TABLES = iptables_save.parse(SAVED.decode(), "dump").tables


def listed(table: str) -> bytes:
    return listing_of(TABLES[table]).encode()


def lists() -> dict[str, bytes]:
    """Return the objects as lists by kind, as `kubectl cluster-info dump` has them."""
    items: dict[str, list[Any]] = {}
    for item in json.loads(OBJECTS_JSON)["items"]:
        items.setdefault(item["kind"], []).append(item)
    return {
        kind: json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "items": found}).encode()
        for kind, found in items.items()
    }


KINDS = lists()
EKS = {
    "./networking/iptables-save.txt": SAVED,
    "./networking/iptables-nat.txt": listed("nat") + b"=======\nTotal Number of Rules: 4\n",
    "./networking/iptables-filter.txt": listed("filter"),
    "./networking/iptables.txt": listed("filter"),
    "./kubelet/kubeconfig.yaml": b"apiVersion: v1\nkind: Config\n",
    "./system/instance-id.txt": b"i-0123456789abcdef0\n",
    "./var_log/messages": b"kernel: *nat\n" * 99,
}
RANCHER = {
    "worker1-2026-11-22_08_00_00/systeminfo/hostname": b"worker1\n",
    "worker1-2026-11-22_08_00_00/networking/iptablessave": SAVED,
    "worker1-2026-11-22_08_00_00/networking/ip6tablessave": b"",
    "worker1-2026-11-22_08_00_00/networking/iptablesnat": listed("nat"),
    "worker1-2026-11-22_08_00_00/networking/iptables": listed("filter"),
    "worker1-2026-11-22_08_00_00/networking/nft_ruleset": b"",
}
_OF_SOS = "sosreport-worker1-2026-11-22-abcdefg"
SOS = {
    f"{_OF_SOS}/hostname": b"worker1\n",
    f"{_OF_SOS}/sos_commands/firewall_tables/iptables_-t_nat_-nvL": listed("nat"),
    f"{_OF_SOS}/sos_commands/firewall_tables/iptables_-t_filter_-nvL": listed("filter"),
    f"{_OF_SOS}/sos_commands/firewall_tables/iptables_-vnxL": listed("filter"),
    f"{_OF_SOS}/sos_commands/firewall_tables/nft_list_ruleset": b"",
    f"{_OF_SOS}/etc/kubernetes/manifests/kube-proxy.yaml": (
        b"apiVersion: v1\nkind: Pod\nmetadata:\n  name: kube-proxy\n"
    ),
}
#: Of all that hold one node's rules, and no objects.
OF_A_NODE = {"eks": EKS, "rancher": RANCHER, "sos": SOS}
CLUSTER_INFO = {
    "cluster-state/nodes.json": KINDS["Node"],
    "cluster-state/default/services.json": KINDS["Service"],
    "cluster-state/default/endpointslices.json": KINDS["EndpointSlice"],
    "cluster-state/default/app-0/logs.txt": b"*nat is what this program logs\n",
}
SUPPORT_BUNDLE = {
    "support-bundle-1/cluster-resources/nodes.json": KINDS["Node"],
    "support-bundle-1/cluster-resources/services/default.json": KINDS["Service"],
    "support-bundle-1/cluster-resources/endpointslices/default.json": KINDS["EndpointSlice"],
    "support-bundle-1/host-collectors/run-host/iptables.txt": SAVED,
}
MUST_GATHER = {
    "must-gather/cluster-scoped-resources/core/nodes.yaml": KINDS["Node"],
    "must-gather/namespaces/default/core/services.yaml": KINDS["Service"],
    "must-gather/namespaces/default/discovery.k8s.io/endpointslices.yaml": KINDS["EndpointSlice"],
    "must-gather/network_logs/worker1_iptables": SAVED,
}
FENCED = b"# iptables-save -c\n\n```\n" + SAVED + b"\n```\n"
SYSDUMP = {
    "cilium-sysdump/k8s-nodes-20261122-080000.yaml": KINDS["Node"],
    "cilium-sysdump/k8s-services-20261122-080000.yaml": KINDS["Service"],
    "cilium-sysdump/k8s-endpointslices-20261122-080000.yaml": KINDS["EndpointSlice"],
    "cilium-sysdump/cilium-bugtool-cilium-x7c2p-20261122-080000.tar.gz": gzip.compress(
        packed({"cilium-bugtool-1/cmd/iptables-save--c.md": FENCED})
    ),
}
WITH_OBJECTS = {
    "support-bundle": SUPPORT_BUNDLE,
    "must-gather": MUST_GATHER,
    "cilium-sysdump": SYSDUMP,
}


def zipped(files: Mapping[str, bytes]) -> bytes:
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(name, data)
    return room.getvalue()


def zstd(data: bytes) -> bytes:
    found: bytes = pytest.importorskip("zstandard").compress(data)
    return found


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "tar.gz": gzip.compress,
    "tar.bz2": bz2.compress,
    "tar.xz": lzma.compress,
    "tar.zst": zstd,
}


@pytest.mark.parametrize(
    ("program", "ending"),
    [*(("sos", ending) for ending in PACKED), ("eks", "tar.gz"), ("rancher", "tar.gz")],
)
def test_bundles_with_rules_of_a_node_give_the_answer_of_its_dump(
    command: Command, program: str, ending: str
) -> None:
    command.file(f"b.{ending}", PACKED[ending](packed(OF_A_NODE[program])))
    done = command("loss", f"b.{ending}", *OBJECTS, *LOSS)
    assert (done.status, done.out) == (0, command("loss", DUMP, *OBJECTS, *LOSS).out), done.err
    assert f"b.{ending}: using " in done.err


@pytest.mark.parametrize("program", WITH_OBJECTS)
def test_bundles_with_objects_need_none_beside_them(command: Command, program: str) -> None:
    files = WITH_OBJECTS[program]
    command.file("b.tar.xz", lzma.compress(packed(files)))
    command.file("b.zip", zipped(files))
    wanted = command("loss", DUMP, *OBJECTS, *LOSS)
    for name in ("b.tar.xz", "b.zip"):
        done = command("loss", name, *LOSS)
        assert (done.status, done.out) == (0, wanted.out), done.err
        # What was used from where.
        assert f"{name}: using " in done.err
        assert "nodes" in done.err


def test_a_folder_is_read_as_its_archive_is(command: Command) -> None:
    for path, data in {**SOS, **CLUSTER_INFO}.items():
        where = command.folder / "all" / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(data)
    (command.folder / "all" / "link").symlink_to("/etc")
    done = command("loss", "all", *LOSS)
    assert (done.status, done.out) == (0, command("loss", DUMP, *OBJECTS, *LOSS).out), done.err


def test_objects_alone_stand_for_objects(command: Command) -> None:
    command.file("state.tgz", gzip.compress(packed(CLUSTER_INFO)))
    wanted = command("loss", DUMP, *OBJECTS, *LOSS)
    for words in ((DUMP, "state.tgz"), (DUMP, "--objects", "state.tgz")):
        assert command("loss", *words, *LOSS).out == wanted.out
    done = command("loss", "state.tgz", *LOSS)
    assert (done.status, done.out) == (2, "")
    assert "state.tgz: it contains no rules" in done.err


def test_listings_are_gone_by_only_where_no_dump_is(command: Command) -> None:
    command.file("b.tar", packed(EKS))
    done = command("services", "b.tar", *OBJECTS)
    assert done.err == "b.tar: using iptables-save.txt\n"
    command.file(
        "c.tar", packed({name: data for name, data in EKS.items() if b"save" not in name.encode()})
    )
    done = command("services", "c.tar", *OBJECTS)
    assert "c.tar: using iptables-filter.txt, iptables-nat.txt\n" in done.err
    assert "incomplete-listing" in done.err or "were counted" in done.err


def nodes(*names: str) -> dict[str, bytes]:
    return {
        path.replace("worker1", name): data.replace(b"worker1", name.encode())
        if path.endswith("hostname")
        else data
        for name in names
        for path, data in RANCHER.items()
    }


def test_several_nodes_in_one_bundle_are_each_under_its_name(command: Command) -> None:
    command.file("b.tar.gz", gzip.compress(packed(nodes("worker1", "worker2"))))
    done = command("loss", "b.tar.gz", *OBJECTS, *LOSS)
    assert done.status == 0, done.err
    assert "worker1" in done.out or "2 nodes" in done.out
    done = command("services", "b.tar.gz", *OBJECTS)
    assert (done.status, done.out) == (2, "")
    assert (
        "it contains dumps of 2 nodes; choose one with --node NAME; there are worker1, worker2"
        in done.err
    )
    chosen = command("services", "b.tar.gz", *OBJECTS, "--node", "worker1")
    wanted = command("services", DUMP, *OBJECTS, "--node", "worker1")
    named = chosen.err.partition("using ")[2].split("\n")[0]
    assert "worker1" in named
    assert "worker2" not in named
    assert [*chosen.out.split("\n")][1:] == [*wanted.out.split("\n")][1:]


def test_archives_of_sos_in_an_archive_are_nodes(command: Command) -> None:
    collected = {
        f"sos-collector-1/sosreport-{name}-2026.tar.xz": lzma.compress(
            packed({path.replace("worker1", name): data.replace(b"worker1\n", f"{name}\n".encode())
                    for path, data in SOS.items()})
        )
        for name in ("worker1", "worker2")
    }  # fmt: skip
    command.file("all.tar.xz", lzma.compress(packed(collected)))
    done = command("trace", "all.tar.xz", "--from", "pod", "--to", "app")
    assert "2 nodes; choose one with --node NAME; there are worker1, worker2" in done.err
    assert command("loss", "all.tar.xz", *OBJECTS, *LOSS).status == 0


def test_a_listing_without_devices_is_named(command: Command) -> None:
    text = b"Chain INPUT (policy ACCEPT)\ntarget     prot opt source               destination\n"
    command.file("b.tar", packed({"x/iptables_-L": text}))
    done = command("loss", "b.tar", *LOSS)
    assert (done.status, done.out) == (2, "")
    assert "x/iptables_-L is a listing of `iptables -L` without -v" in done.err


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["tar", "tar.gz"])
def test_a_bundle_may_come_by_standard_input(
    command: Command, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    wanted = command("loss", DUMP, *OBJECTS, *LOSS)
    for data, objects in ((packed(SUPPORT_BUNDLE), []), (SAVED, OBJECTS)):
        file = io.BufferedReader(io.BytesIO(pack(data)))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        done = command("loss", "-", *objects, *LOSS)
        assert (done.status, done.out) == (0, wanted.out), done.err


def test_what_zstd_needs_is_said(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    command.file("b.tar.zst", zstd(packed(SOS)))
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    done = command("loss", "b.tar.zst", *LOSS)
    assert (done.status, done.out) == (2, "")
    assert "pip install '.[zstd]'" in done.err
    assert "zstd -d" in done.err


def test_the_same_rules_asked_for_twice_count_once(command: Command) -> None:
    """As cilium-bugtool has them: by the plain name, and by that of the backend."""
    counted = SAVED.replace(b"\n-A ", b"\n[7:420] -A ").replace(b"[0:0]\n", b"[3:180]\n")
    command.file("b.tar", packed({"x/iptables-legacy-save": SAVED, "x/iptables-save-c": counted}))
    done = command("services", "b.tar", *OBJECTS)
    assert (done.status, done.err) == (0, "b.tar: using iptables-legacy-save\n")


def test_dumps_in_one_folder_are_of_the_nodes_that_their_files_name(command: Command) -> None:
    """As must-gather of OpenShift SDN has them."""
    logs = {f"must-gather/network_logs/{name}_iptables": SAVED for name in ("worker1", "worker2")}
    command.file("b.tar", packed(logs | {"must-gather/network_logs/worker2_iptables": OTHER}))
    assert command("loss", "b.tar", *OBJECTS, *LOSS).status == 0
    done = command("services", "b.tar", *OBJECTS)
    assert (done.status, done.out) == (2, "")
    assert (
        "it contains dumps of 2 nodes; choose one with --node NAME; there are worker1, worker2"
        in done.err
    )
    for name, dump in (("worker1", SAVED), ("worker2", OTHER)):
        command.file("dump.txt", dump)
        wanted = command("services", "dump.txt", *OBJECTS).out.split("\n")
        assert (
            command("services", "b.tar", *OBJECTS, "--node", name).out.split("\n")[1:] == wanted[1:]
        )
