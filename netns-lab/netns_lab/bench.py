"""``make bench``: kubeodds beside what a user has today, on the same dump, in alternation.

Prints CPU seconds of whole processes, their ratios, and the peak memory of each. Seconds are the
median of several rounds; a ratio is the median of each round's own, since what else a machine
does comes and goes and hits the neighbours in a round alike. It judges nothing and never fails a
build.
"""

from __future__ import annotations

import argparse
import compileall
import gzip
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import truediv
from pathlib import Path
from typing import Final

import analyzer
from analyzer.kubeproxy.generate import (
    FLAGS,
    Layout,
    iptables_save,
    mixed,
    nft_json,
    nft_text,
    node_name,
    proxy_config,
    render_nft,
    render_rules,
    service_ports,
    services,
)
from analyzer.parsers.formats import read_ruleset
from netns_lab.command import program
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace, leave_host

_LOAD: Final = "import json, sys\njson.load(open(sys.argv[1]))\n"
_SPLIT: Final = "import sys\nfor line in open(sys.argv[1]):\n    line.split()\n"
#: Where a run takes less than so many seconds there are more rounds: it costs little.
_SHORT: Final = 0.2
_MORE: Final = 5
#: Rules that the generated layout has for a Service of n endpoints, and besides.
_PER_ENDPOINT: Final = 3
_PER_SERVICE: Final = 2
#: Services of the rulesets of nft.
_NFT_SERVICES: Final = 10_000
_MIX: Final = (1, 2, 3, 10, 10, 10, 10, 34)
#: The children of one process share one accounting, whose maximum only grows.
_MEASURE: Final = """
import json, os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                      stderr=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss, done.returncode, done.stderr]))
"""


@dataclass
class Contender:
    """A command, and what its runs took."""

    name: str
    command: list[str]
    seconds: list[float] = field(default_factory=list)
    peak: int = 0

    @property
    def median(self) -> float:
        """The median of the runs, CPU seconds."""
        return statistics.median(self.seconds)

    def run(self, namespace: Namespace | None) -> None:
        """Run once, and note CPU seconds and the peak of memory in KiB.

        Raises:
            LabError: it failed.
        """
        import json

        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, *self.command],
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=namespace.entering() if namespace else None,
        )
        seconds, peak, status, error = json.loads(done.stdout)
        if status:
            raise LabError(f"{self.name} fails: {error.strip()}")
        self.seconds.append(seconds)
        self.peak = max(self.peak, peak)


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options = _parser().parse_args(words)
    leave_host()
    namespace = Namespace("bench")
    print(f"{_machine()}; medians of {options.rounds} rounds or more, CPU seconds\n")
    with tempfile.TemporaryDirectory() as folder:
        took: dict[str, float] = {}
        for name, path in _dumps(options, Path(folder)):
            kind, seconds = _compare(name, path, options.rounds, namespace)
            took[kind] = seconds
        if {"nft", "nft-json"} <= took.keys():
            ratio = took["nft"] / took["nft-json"]
            print(f"the text of nft takes {ratio:.2f}x of what its JSON does\n")
        if not options.dump:
            _realistic(Path(folder), options.rounds)
            _one_service(Path(folder), options.rounds)
    return 0


def _realistic(folder: Path, rounds: int) -> None:
    """Compare clusters with Services of all kinds to clusters with as many of the plain kind."""
    print("Services of all kinds (NodePort, LoadBalancer, Local, affinity, external IPs) as text")
    took: dict[tuple[str, int], tuple[float, int]] = {}
    for count, nodes in ((312, 100), (3_125, 300)):
        items = mixed(count, nodes)
        config = proxy_config(items, FLAGS, node=node_name(1), layout=Layout.V1_36)
        ports = list(service_ports(items, Layout.V1_36))
        text = render_rules(ports, config)
        rules = text.count("\n-A ")
        endpoints = [len(each.endpoints) for each in ports]
        plain = iptables_save(list(services(len(ports), endpoints=tuple(endpoints))))
        runs = []
        for kind, held in (("mixed", text), ("plain", plain), ("nft", render_nft(ports, config))):
            path = folder / f"{kind}-{count}"
            path.write_text(held, encoding="ascii")
            runs.append((kind, Contender(kind, [*_kubeodds(), "services", str(path)])))
        for _ in range(rounds):
            for _, each in runs:
                each.run(None)
        told = {kind: each.median for kind, each in runs}
        took.update({(kind, count): (each.median, rules) for kind, each in runs})
        print(
            f"  {rules:7,} rules: {told['mixed']:7.3f} s, "
            f"{told['mixed'] / told['plain']:.2f}x of plain ones; in nftables mode "
            f"{told['nft']:7.3f} s"
        )
    for kind in ("mixed", "nft"):
        (less, few), (more, many) = took[kind, 312], took[kind, 3_125]
        exponent = math.log(more / less) / math.log(many / few)
        print(f"  {kind}: grows with the power {exponent:.2f}")
    print()


def _one_service(folder: Path, rounds: int) -> None:
    """Compare one Service of 5,000 endpoints to one of 1,000, in each format."""
    print("One Service of 5,000 endpoints to one of 1,000")
    for form in ("text", "json", "tsv"):
        runs = []
        for count in (1_000, 5_000):
            path = folder / f"one-{count}"
            path.write_text(iptables_save(list(services(1, endpoints=(count,)))), encoding="ascii")
            words = [*_kubeodds(), "services", str(path), "--format", form]
            runs.append(Contender(f"{form}", words))
        for _ in range(rounds):
            for each in runs:
                each.run(None)
        print(f"  {form:5} {runs[1].median / runs[0].median:6.2f}x, {runs[1].median:7.3f} s")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("dump", nargs="*", help="dumps to take, not generated ones")
    parser.add_argument(
        "--rules",
        type=int,
        nargs="+",
        default=[1_000, 100_000],
        help="sizes to generate of iptables",
    )
    parser.add_argument("--mix", action="store_true", help="Services of 1 to 34 endpoints")
    parser.add_argument("--rounds", type=int, default=5)
    return parser


def _machine() -> str:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        "unknown processor",
    )
    python = sys.version.split()[0]
    return f"{os.cpu_count()} x {model}, Linux {os.uname().release}, Python {python}"


def _dumps(options: argparse.Namespace, folder: Path) -> list[tuple[str, Path]]:
    found = []
    for name in options.dump:
        path = Path(name)
        if path.suffix == ".gz":  # the others read no compressed files
            plain = folder / path.stem
            plain.write_bytes(gzip.decompress(path.read_bytes()))
            path = plain
        found.append((name, path))
    if found:
        return found
    endpoints = _MIX if options.mix else (10,)
    mean = sum(endpoints) / len(endpoints)
    for rules in options.rules:
        count = max(1, round(rules / (_PER_SERVICE + _PER_ENDPOINT * mean)))
        path = folder / f"{rules}.save"
        path.write_text(iptables_save(list(services(count, endpoints=endpoints))), encoding="ascii")
        found.append((f"{rules:,} rules", path))
    given = list(services(_NFT_SERVICES, endpoints=endpoints))
    for kind, text in (("text", nft_text(given)), ("JSON", nft_json(given))):
        path = folder / f"nft.{kind}"
        path.write_text(text, encoding="ascii")
        found.append((f"{_NFT_SERVICES:,} Services of nftables mode, {kind}", path))
    return found


def _compare(name: str, path: Path, rounds: int, namespace: Namespace) -> tuple[str, float]:
    """Print what each takes; return the dump's format, and seconds that it takes to analyse."""
    words = [*_kubeodds(), "services", str(path)]
    kubeodds = Contender("kubeodds services --format tsv", [*words, "--format", "tsv"])
    data = path.read_bytes()
    ruleset = read_ruleset(data, name)
    rows = ruleset.rules
    formats = [
        Contender(f"kubeodds services --format {form}", [*words, "--format", form])
        for form in ("text", "json")
    ]
    others = [
        *formats,
        Contender("python -c pass", [sys.executable, "-c", "pass"]),
        *(Contender(each, [*command, str(path)]) for each, command in _others(data)),
    ]
    print(f"{name}: {rows:,} rules, {path.stat().st_size / 1e6:.1f} MB")
    # Once for the caches of files, and compiled, as an installed program is.
    compileall.compile_dir(str(Path(analyzer.__file__).parent), quiet=1)
    kubeodds.run(namespace)
    if kubeodds.seconds.pop() < _SHORT:
        rounds *= _MORE
    for _ in range(rounds):
        for each in (kubeodds, *others):
            each.run(namespace)
    for each in (kubeodds, *others):
        took = f"  {each.name:32} {each.median:8.3f} s  {each.peak / 1024:7.1f} MiB"
        ratio = statistics.median(map(truediv, kubeodds.seconds, each.seconds))
        ours = each is kubeodds or each in formats
        print(took if ours else f"{took}   kubeodds takes {ratio:.2f}x")
    told = [
        f"{each.name.rpartition(' ')[2]} {each.median / others[-1].median:.2f}x"
        for each in (kubeodds, *formats)
    ]
    print(f"  {', '.join(told)} of {others[-1].name}")
    each_rule = (kubeodds.peak * 1024 - 15e6) / max(rows, 1)
    print(f"  above 15 MB, kubeodds holds {each_rule / 1000:.2f} kB a rule\n")
    return ruleset.input_format, kubeodds.median


def _others(data: bytes) -> list[tuple[str, list[str]]]:
    """Return what else a user has that takes a dump, without its name."""
    loop = "line.split() loop", [sys.executable, "-c", _SPLIT]
    if data.lstrip().startswith(b"{"):
        return [("json.load", [sys.executable, "-c", _LOAD])]
    if b"\n-A " not in data:
        return [loop]  # `nft --check -f` takes no listing of nft's own
    return [
        loop,
        ("iptables-legacy-restore --test", [program("iptables-legacy-restore"), "--test"]),
    ]


def _kubeodds() -> list[str]:
    installed = Path(sys.executable).with_name("kubeodds")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "analyzer"]


if __name__ == "__main__":
    sys.exit(main())
