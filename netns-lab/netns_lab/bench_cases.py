"""Further comparisons of `make bench`: kinds of Services, verbs, formats and sizes.

Each case prints ratios between our own commands, so that a regression of one of them shows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from analyzer.kubeproxy.generate import (
    FLAGS,
    GeneratedService,
    RulesLayout,
    api_objects,
    iptables_save,
    mixed,
    node_name,
    proxy_config,
    render_nft,
    render_rules,
    service_ports,
    services,
)
from analyzer.model.value import replace
from netns_lab.bench_noise import noise
from netns_lab.bench_walk import walk
from netns_lab.contender import Contender, alternate, kubeodds

#: Services in the dumps compared with another dump or with the objects.
_SERVICES: Final = 10_000
#: ServicePorts of ten endpoints each: 250,000 endpoints.
_LARGE: Final = 25_000
#: Commands for the case of a single large Service, one for each format that differs.
_OF_ONE: Final = (
    ("services", "--format", "text"),
    ("services", "--format", "tsv"),
    ("services", "--format", "json"),
    ("loss", "--dead", "10.0.0.2", "--format", "text"),
    ("loss", "--dead", "10.0.0.2", "--format", "json"),
    ("tree", "--format", "text"),
    ("tree", "--format", "json"),
    ("tree", "--format", "dot"),
    ("trace", "--from", "10.3.0.9", "--to", "10.128.0.1:80", "--format", "json"),
)


def _realistic(folder: Path, rounds: int) -> None:
    """Compare clusters with Services of all kinds with clusters of as many ClusterIP Services."""
    print("Services of all kinds (NodePort, LoadBalancer, Local, affinity, external IPs) as text")
    took: dict[tuple[str, int], tuple[float, int]] = {}
    for count, nodes in ((312, 100), (3_125, 300)):
        items = mixed(count, nodes)
        config = proxy_config(items, FLAGS, node=node_name(1), layout=RulesLayout.V1_36)
        ports = list(service_ports(items, RulesLayout.V1_36))
        text = render_rules(ports, config)
        rules = text.count("\n-A ")
        endpoints = [len(each.endpoints) for each in ports]
        plain = iptables_save(list(services(len(ports), endpoints=tuple(endpoints))))
        runs: dict[str, Contender] = {}
        for kind, held in (("mixed", text), ("plain", plain), ("nft", render_nft(ports, config))):
            runs[kind] = kubeodds("services", _written(folder / f"{kind}-{count}", held))
        alternate([*runs.values()], rounds)
        told = {kind: each.median for kind, each in runs.items()}
        took.update({(kind, count): (each.median, rules) for kind, each in runs.items()})
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
    """Compare a Service of 5,000 endpoints with one of 1,000, in each verb and format."""
    print("One Service of 5,000 endpoints to one of 1,000: time and size")
    given = {count: list(services(1, endpoints=(count,))) for count in (1_000, 5_000)}
    paths = [_written(folder / f"one-{n}", iptables_save(each)) for n, each in given.items()]
    for verb, *options in _OF_ONE:
        name = [given[1_000][0].name] if verb == "tree" else []
        runs = [kubeodds(verb, path, *name, *options) for path in paths]
        alternate(runs, rounds)
        some, many = (each.printed() for each in runs)
        print(
            f"  {verb + ' ' + options[-1]:14} {runs[1].median / runs[0].median:6.2f}x, "
            f"{runs[1].median:7.3f} s; {many / some:6.2f}x, {many / 1e6:.2f} MB"
        )
    print()


def _large_json(folder: Path, rounds: int) -> None:
    """Compare JSON with text for a cluster of 250,000 endpoints."""
    print("JSON of 25,000 Services with 250,000 endpoints to text")
    path = _written(folder / "large", iptables_save(list(services(_LARGE))))
    told, text = (kubeodds("services", path, "--format", form) for form in ("json", "text"))
    alternate([told, text], rounds)
    print(
        f"  {told.median:.2f} s, {told.median / text.median:.2f}x; {told.peak / 1024:.0f} MiB, "
        f"{told.peak / text.peak:.2f}x; {told.printed() / 1e6:.1f} MB\n"
    )


def _diff(folder: Path, rounds: int) -> None:
    """Compare `diff` of two dumps with reading both."""
    before = list(services(_SERVICES))
    after = [
        replace(each, endpoints=each.endpoints[:-1]) if at % 10 == 0 else each
        for at, each in enumerate(services(_SERVICES + 50))
        if at % 500
    ]
    paths = [
        _written(folder / f"diff-{name}", iptables_save(given))
        for name, given in (("a", before), ("b", after))
    ]
    both = [kubeodds("services", path, "--format", "tsv") for path in paths]
    _told(
        f"diff of {_SERVICES:,} Services to reading both as tsv",
        kubeodds("diff", *paths),
        both,
        rounds,
    )


def _check(folder: Path, rounds: int) -> None:
    """Compare `services --check` with objects to `services` without the check."""
    given: list[GeneratedService] = list(services(_SERVICES))
    dump = _written(folder / "check", iptables_save(given))
    objects = _written(folder / "objects", json.dumps({"items": api_objects(given)}))
    ours, plain = (
        kubeodds("services", dump, *more, "--objects", objects) for more in (["--check"], [])
    )
    _told(
        f"services --check of {_SERVICES:,} Services with objects to text without --check",
        ours,
        [plain],
        rounds,
    )


def _told(title: str, ours: Contender, others: Sequence[Contender], rounds: int) -> None:
    alternate([ours, *others], rounds)
    together = sum(each.median for each in others)
    print(f"{title}\n  {ours.median:.2f} s, {ours.median / together:.2f}x\n")


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="ascii")
    return path


#: Cases run when no dump is given; the arguments are a folder for files, and the rounds.
CASES: Final[tuple[Callable[[Path, int], None], ...]] = (
    _realistic,
    _one_service,
    _large_json,
    _diff,
    _check,
    noise,
    walk,
)
