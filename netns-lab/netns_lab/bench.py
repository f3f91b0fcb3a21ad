"""``make bench``: kubeodds compared with what a user has today, on the same dump, in turn.

Prints CPU seconds of whole processes, their ratios, and the peak memory of each. Seconds are the
median of several rounds. A ratio is the median of the ratios within each round, because other load
on the machine affects neighbouring runs alike. It judges nothing and never fails a build.
"""

from __future__ import annotations

import argparse
import compileall
import gzip
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from operator import truediv
from pathlib import Path
from typing import Final

import analyzer
from analyzer.kubeproxy.generate import (
    iptables_save,
    nft_json,
    nft_text,
    services,
)
from analyzer.parsers.formats import read_ruleset
from netns_lab import bench_objects, bench_whatif
from netns_lab.bench_cases import CASES
from netns_lab.command import program
from netns_lab.contender import Contender, kubeodds
from netns_lab.namespace import Namespace, leave_host

_LOAD: Final = "import json, sys\njson.load(open(sys.argv[1]))\n"
_SPLIT: Final = "import sys\nfor line in open(sys.argv[1]):\n    line.split()\n"
#: Runs shorter than this many seconds get more rounds, since these cost little.
_SHORT: Final = 0.2
_MORE: Final = 5
#: Rules of a generated Service: per endpoint, and besides.
_PER_ENDPOINT: Final = 3
_PER_SERVICE: Final = 2
#: Services in the nft rulesets.
_NFT_SERVICES: Final = 10_000
_MIX: Final = (1, 2, 3, 10, 10, 10, 10, 34)


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
            for case in CASES:
                case(Path(folder), options.rounds)
            print("\nwhatif: every node, zone and pair of nodes")
            for line in bench_whatif.compare(options.rounds):
                print(line)
            print("\nwhatif --from-objects: the same without a dump, at every node")
            for line in bench_objects.compare(options.rounds):
                print(line)
    return 0


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
    """Print the time of each program; return the dump's format, and our seconds on it."""
    ours, *formats = (
        kubeodds("services", path, "--format", form) for form in ("tsv", "text", "json")
    )
    data = path.read_bytes()
    ruleset = read_ruleset(data, name)
    rows = ruleset.rules
    others = [
        *formats,
        Contender("python -c pass", [sys.executable, "-c", "pass"]),
        *(Contender(each, [*command, str(path)]) for each, command in _others(data)),
    ]
    print(f"{name}: {rows:,} rules, {path.stat().st_size / 1e6:.1f} MB")
    # One run to fill the file caches, and with compiled modules, as an installed program has.
    compileall.compile_dir(str(Path(analyzer.__file__).parent), quiet=1)
    ours.run(namespace)
    if ours.seconds.pop() < _SHORT:
        rounds *= _MORE
    for _ in range(rounds):
        for each in (ours, *others):
            each.run(namespace)
    for each in (ours, *others):
        took = f"  {each.name:32} {each.median:8.3f} s  {each.peak / 1024:7.1f} MiB"
        ratio = statistics.median(map(truediv, ours.seconds, each.seconds))
        own = each is ours or each in formats
        print(took if own else f"{took}   kubeodds takes {ratio:.2f}x")
    told = [
        f"{each.name.rpartition(' ')[2]} {each.median / others[-1].median:.2f}x"
        for each in (ours, *formats)
    ]
    print(f"  {', '.join(told)} of {others[-1].name}")
    each_rule = (ours.peak * 1024 - 15e6) / max(rows, 1)
    print(f"  above 15 MB, kubeodds holds {each_rule / 1000:.2f} kB a rule\n")
    return ruleset.input_format, ours.median


def _others(data: bytes) -> list[tuple[str, list[str]]]:
    """Return the other programs a user has that read a dump: name, and command without the file."""
    loop = "line.split() loop", [sys.executable, "-c", _SPLIT]
    if data.lstrip().startswith(b"{"):
        return [("json.load", [sys.executable, "-c", _LOAD])]
    if b"\n-A " not in data:
        return [loop]  # `nft --check -f` takes no listing of nft's own
    return [
        loop,
        ("iptables-legacy-restore --test", [program("iptables-legacy-restore"), "--test"]),
    ]


if __name__ == "__main__":
    sys.exit(main())
