"""What each command prints for captured dumps, byte for byte."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from analyzer import cli
from analyzer.cluster.store import Store
from analyzer.reports.renderers import RENDERERS
from tests.support.captures import FIXTURES, ROOT, Capture
from tests.support.documents import golden_files, schema_name
from tests.support.gate_manifests import NODES, THRESHOLDS
from tests.support.pages.masked import masked

#: Capture, Service for `tree`, and who is dead.
_CAPTURES = (
    ("1.14.0-iptables-legacy/seed-dns", "kube-dns:dns", "--dead 10.1.0.1"),
    ("1.20.2-iptables-legacy/two-node@worker1", "default/app", "--dead-node master"),
    ("1.25.1-iptables-legacy/seed-dns", "10.2.3.4:9153", "--dead-node worker1"),
    ("1.36.2-iptables-legacy/two-node@worker1", "kube-system/kube-dns", "--dead-node master"),
    ("1.36.2-iptables-legacy/seed-dns@worker1", "kube-dns:dns-tcp", "--dead-node master"),
    ("1.36.2-iptables-nft/two-node", "kubernetes", "--dead 10.244.1.4 10.244.1.9:8080"),
    ("1.36.2-nftables/two-node@worker1", "default/app", "--dead-node master"),
    ("1.30.3-nftables/two-node", "kube-dns:dns", "--dead-node worker1"),
)
#: What is traced there: to a ClusterIP, to nobody, from the node, with a ping.
_TRACES = {
    "1.14.0-iptables-legacy/seed-dns": "--from 10.1.0.9 --to 10.2.3.4:53 --protocol udp",
    "1.20.2-iptables-legacy/two-node@worker1": "--from 203.0.113.7 --to 10.96.18.52:80",
    "1.25.1-iptables-legacy/seed-dns": "--from 10.1.0.9 --to 192.0.2.1 --protocol icmp",
    "1.36.2-iptables-legacy/two-node@worker1": "--from-node --to 10.96.0.1:443",
    "1.36.2-iptables-legacy/seed-dns@worker1": "--from 10.1.0.2 --to 10.2.3.4:53 --in-interface x",
    "1.36.2-iptables-nft/two-node": "--from 10.244.1.3 --to 10.96.0.1:443 --mark 0x4000",
    "1.36.2-nftables/two-node@worker1": "--from 203.0.113.7 --to 10.96.18.52:80",
    "1.30.3-nftables/two-node": "--from-node --to 10.96.0.10:54 --protocol udp",
}
#: What is held against a dump: versions, backends, nodes, modes; and whether something differs.
_DIFFS = {
    "1.14.0-iptables-legacy/seed-dns": ("1.36.2-iptables-legacy/seed-dns", "", 0),
    "1.36.2-iptables-legacy/two-node": (
        "1.36.2-iptables-legacy/two-node@worker1",
        "--node-b worker1",
        1,
    ),
    "1.36.2-iptables-nft/two-node": ("1.36.2-iptables-legacy/two-node", "", 0),
    "1.36.2-iptables-legacy/two-node@worker1": ("1.36.2-nftables/two-node@worker1", "", 0),
}
_DUMPS = ("*-save.txt", "nft-list-ruleset.*")
_SUFFIXES = {
    "text": "txt",
    "json": "json",
    "tsv": "tsv",
    "dot": "dot",
    "junit": "xml",
    "sarif": "sarif",
    "prometheus": "prom",
    "svg": "svg",
    "html": "html",
    "markdown": "md",
}
#: Of captures of which all endpoints are on known nodes.
_WHAT_IFS = {
    "1.36.2-iptables-legacy/two-node@worker1": ("--max-loss 60% --min-survives 1", 1),
    "1.36.2-iptables-legacy/seed-dns@worker1": ("", 0),
    "1.36.2-nftables/two-node@worker1": ("--only node,set --sort mean", 0),
    "1.30.3-nftables/two-node": ("--depth 1 --sort name --all", 0),
}
_TWO_NODES = ("1.36.2-iptables-legacy/two-node", "1.36.2-iptables-legacy/two-node@worker1")


#: Outages: frozen, healing, with a Service of each kind of cause.
_TIMELINES = {
    "1.36.2-iptables-legacy/two-node@worker1": (
        "--dead-node master --rate 200/s --slo 99.9% --api-back-after 20m"
    ),
    "1.36.2-iptables-legacy/seed-dns@worker1": "--dead-node master --healing --for 10m --all",
    "1.36.2-nftables/two-node@worker1": "--dead 10.244.1.4 --healing --start-up 10s-1m",
    "1.30.3-nftables/two-node": "--dead-node worker1 --kube-proxy-dead",
}
#: What is asked of every node, predicted from the objects of a capture.
_PREDICTED = {
    "whatif": "--min-survives 1",
    "loss-cluster": "--dead-node worker1",
    "advise": "--all",
}
#: What clients see: of each fate, with each way to end, and held to one thing that they do.
_CLIENTS = {
    "1.36.2-iptables-legacy/two-node@worker1": "--dead-node master --service default/app --all "
    "--client glibc,musl,go,tcp,http-retry,headless",
    "1.36.2-iptables-legacy/seed-dns@worker1": "--dead-node master --fate master=refused",
    "1.36.2-nftables/two-node@worker1": "--dead 10.244.0.3 --client glibc,dig --lookup app.default",
    "1.30.3-nftables/two-node": "--dead-node worker1 --service kube-dns:metrics",
}
#: Repairs: some of a Service dead, all of one, in each mode; the dumps may be of any age.
_REPAIRS = {
    "1.14.0-iptables-legacy/seed-dns": "--dead 10.1.0.1",
    "1.36.2-iptables-legacy/two-node@worker1": "--dead-node master --service app,kubernetes",
    "1.36.2-nftables/two-node@worker1": "--dead-node master",
    "1.30.3-nftables/two-node": "--dead-node worker1 --service default/app,kube-dns:dns",
}
#: Conntrack of a node where every other endpoint is silent.
_FLOWS = {
    "suspects": ("--all --conntrack examples/conntrack.txt", 1),
    "pinned": ("--dead-node master --conntrack examples/conntrack.txt", 1),
}
#: Manifests that fail, with and without a fix, and one whose pods find no node.
_GATE = (
    *(f"fixtures/manifests/{name}.yaml" for name in ("coredns", "redis-ha", "host-spread-tainted")),
    *("--nodes", NODES, *THRESHOLDS, "--seed", "1"),
)
_ANY_AGE = ("--max-age", "999999999")
#: What is asked of a store of two nodes' dumps.
_CLUSTER = {
    "cluster build": "--all",
    "cluster drift": "--all",
    "cluster timeline": "--all --dead 10.244.0.7@..2026-11-20T12:00Z --dead 10.244.1.4",
    "cluster sql": "SELECT name, protocol, count(*) AS routes FROM node_routes GROUP BY ALL "
    "ORDER BY ALL",
}
#: What is asked without a dump; its golden files are beside those of a capture all the same.
_COMPONENTS = "whatif --components"


@dataclass(frozen=True)
class Case:
    capture: Capture
    verb: str
    arguments: tuple[str, ...]
    output_format: str
    status: int = 0
    node: str = ""
    is_predicted: bool = False

    def __str__(self) -> str:
        return f"{self.capture} {self.verb} {self.output_format}"

    @property
    def expected(self) -> Path:
        name = f"{schema_name(self.verb)}.{_SUFFIXES[self.output_format]}"
        return self.capture.dump.parent / "expected" / name

    @property
    def command(self) -> list[str]:
        if self.verb == _COMPONENTS:
            return [*self.verb.split(), "--format", self.output_format]
        if self.verb == "gate" or self.verb.startswith("cluster "):
            return [*self.verb.split(), *self.arguments, "--format", self.output_format]
        # Paths stand in the output: they are told from the root of the project.
        dump, objects = (p.relative_to(ROOT) for p in (self.capture.dump, self.capture.objects))
        if self.is_predicted:
            given = ["--from-objects", str(objects), "--seed", "1", *self.arguments]
            return [self.verb.partition("-")[0], *given, "--format", self.output_format]
        given = [str(dump), *self.arguments, "--objects", str(objects)]
        given += ["--node", self.node or self.capture.node, "--format", self.output_format]
        return [self.verb.partition("-")[0], *given]


def _dump_in(folder: Path) -> Path:
    (dump,) = [path for pattern in _DUMPS for path in folder.glob(pattern)]
    return dump


def _cases() -> list[Case]:
    found = []
    for name, service, dead in _CAPTURES:
        dump = _dump_in(FIXTURES / name)
        died = tuple(dead.split())
        by_verb = {
            "services": (),
            "tree": (service, *died),
            "trace": tuple(_TRACES[name].split()),
            "loss": died,
        }
        found += [
            Case(Capture(dump), verb, arguments, output_format)
            for verb, arguments in by_verb.items()
            for output_format in RENDERERS[verb]
        ]
    return [
        *found,
        *_diffs(),
        *_what_ifs(),
        *_several_nodes(),
        *_timelines(),
        *_clients(),
        *_repairs(),
        *_flows(),
        *_components(),
        *_predicted(),
        *_cluster(),
        *_gates(),
    ]


def _gates() -> Iterator[Case]:
    """Give three manifests on nodes that are described; golden files are beside a capture's."""
    capture = Capture(_dump_in(FIXTURES / "1.36.2-iptables-legacy/two-node"))
    for output_format in RENDERERS["gate"]:
        yield Case(capture, "gate", _GATE, output_format, 1)


def _cluster() -> Iterator[Case]:
    """Give both nodes of a capture, read into a store that a test makes."""
    capture = Capture(_dump_in(FIXTURES / _TWO_NODES[0]))
    for verb, given in _CLUSTER.items():
        arguments = (given,) if verb == "cluster sql" else tuple(given.split())
        for output_format in RENDERERS[verb]:
            yield Case(capture, verb, arguments, output_format)


def _predicted() -> Iterator[Case]:
    capture = Capture(_dump_in(FIXTURES / _TWO_NODES[0]))
    for verb, options in _PREDICTED.items():
        status = int(verb == "whatif")
        for output_format in RENDERERS[verb]:
            arguments = tuple(options.split())
            yield Case(capture, verb, arguments, output_format, status, is_predicted=True)


def _several_nodes() -> Iterator[Case]:
    """Give a dump with that of another node; the pod that is dead is the first node's."""
    first, second = (_dump_in(FIXTURES / each) for each in _TWO_NODES)
    arguments = (str(second.relative_to(ROOT)), "--dead", "10.244.0.7")
    for output_format in RENDERERS["loss-nodes"]:
        yield Case(Capture(first), "loss-nodes", arguments, output_format, node="master,worker1")


def _timelines() -> Iterator[Case]:
    for name, options in _TIMELINES.items():
        capture = Capture(_dump_in(FIXTURES / name))
        for output_format in RENDERERS["timeline"]:
            yield Case(capture, "timeline", tuple(options.split()), output_format)


def _clients() -> Iterator[Case]:
    for name, options in _CLIENTS.items():
        capture = Capture(_dump_in(FIXTURES / name))
        for output_format in RENDERERS["client"]:
            yield Case(capture, "client", tuple(options.split()), output_format)


def _repairs() -> Iterator[Case]:
    for name, options in _REPAIRS.items():
        capture = Capture(_dump_in(FIXTURES / name))
        for output_format in RENDERERS["repair"]:
            yield Case(capture, "repair", (*options.split(), *_ANY_AGE), output_format)


def _flows() -> Iterator[Case]:
    capture = Capture(_dump_in(FIXTURES / "1.36.2-iptables-legacy/two-node@worker1"))
    for verb, (options, status) in _FLOWS.items():
        for output_format in RENDERERS[verb]:
            yield Case(capture, verb, tuple(options.split()), output_format, status)


def _components() -> Iterator[Case]:
    capture = Capture(_dump_in(FIXTURES / "1.36.2-iptables-legacy/two-node@worker1"))
    for output_format in RENDERERS[_COMPONENTS]:
        yield Case(capture, _COMPONENTS, (), output_format)


def _what_ifs() -> Iterator[Case]:
    for name, (options, status) in _WHAT_IFS.items():
        capture = Capture(_dump_in(FIXTURES / name))
        for output_format in RENDERERS["whatif"]:
            yield Case(capture, "whatif", tuple(options.split()), output_format, status)


def _diffs() -> Iterator[Case]:
    for name, (other, options, status) in _DIFFS.items():
        a, b = (_dump_in(FIXTURES / each) for each in (name, other))
        arguments = (str(b.relative_to(ROOT)), *options.split())
        for output_format in RENDERERS["diff"]:
            yield Case(Capture(a), "diff", arguments, output_format, status)


CASES = _cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_command_prints_what_its_golden_file_holds(
    case: Case,
    update_golden: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(ROOT)
    words = case.command
    if case.verb.startswith("cluster "):
        words = _of_store(words, tmp_path, monkeypatch)
        capsys.readouterr()
    status = cli.main(words)
    printed = capsys.readouterr()
    assert (status, printed.err) == (case.status, "")
    out = masked(printed.out) if case.output_format == "html" else printed.out
    out = out.replace(str(tmp_path), "/dumps")
    if update_golden:
        case.expected.parent.mkdir(exist_ok=True)
        case.expected.write_text(out, encoding="utf-8")
    assert case.expected.is_file(), "write it with --update-golden, and review it"
    assert out == case.expected.read_text(encoding="utf-8")


def _of_store(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the words with a store in place, which is made first where it is asked."""
    pytest.importorskip("duckdb")
    for name in _TWO_NODES:
        node = "worker1" if "worker1" in name else "master"
        shutil.copy(_dump_in(FIXTURES / name), folder / f"{node}.txt")
    objects = str(FIXTURES / _TWO_NODES[0] / "objects.json")
    monkeypatch.chdir(folder)
    # How many bytes a file of tables has, another version of the engine may say otherwise.
    monkeypatch.setattr(Store, "size", lambda _: 12_345)
    given = ["worker1.txt", "master.txt", "--objects", objects, "--into", "c", "--engine", "serial"]
    if words[:2] == ["cluster", "timeline"]:
        return [*words[:2], *_course(folder, Path(objects)), *words[2:]]
    build, more = words[:2] == ["cluster", "build"], words[2:]
    if build:
        return ["cluster", "build", *given, *more]
    assert cli.main(["cluster", "build", *given]) == 0
    return [*words[:2], "c", *more]


def _course(folder: Path, objects: Path) -> list[str]:
    """Write dumps of one node at three times, an endpoint gone from the last; return the words.

    The objects' time is that of their file.
    """
    text = (folder / "worker1.txt").read_text()
    without = text.replace("10.244.0.7", "10.244.9.9")
    (folder / "course").mkdir()
    for at, each in ((1, text), (2, text), (3, without)):
        (folder / "course" / f"worker1-20261120T1{at}0000Z.txt").write_text(each)
    own = shutil.copy(objects, folder / "objects.json")
    taken = datetime(2026, 11, 20, 10, tzinfo=UTC).timestamp()
    os.utime(own, (taken, taken))
    return [str(folder / "course"), "--objects", str(own), "--time-from", "[0-9]+T[0-9]+Z"]


def test_every_golden_file_belongs_to_a_command() -> None:
    expected = {case.expected for case in CASES}
    found = {file for suffix in _SUFFIXES.values() for file in golden_files(suffix)}
    assert found <= expected
