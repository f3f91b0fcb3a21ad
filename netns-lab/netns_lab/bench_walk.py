"""Cost of the general walk: the rules of a whole node read with the fast path off, and on.

``python -m netns_lab.bench_walk DUMP [off]`` measures one reading and prints it as JSON; `walk`, a
case of `make bench`, compares both for each backend.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from analyzer.kubeproxy.generate import iptables_save, nft_text, services
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.iptables import traverse
from analyzer.semantics.iptables.matching import match_all
from analyzer.semantics.nft.rule import RuleWalk
from analyzer.semantics.positions import Walks

#: Services of ten endpoints each, as in the captures named `scale-1000`.
_SERVICES: Final = 1_000


def walk(folder: Path, rounds: int) -> None:
    """Compare reading a dump with the fast path off to the same with it, and print both."""
    print(f"the general walk: {_SERVICES:,} Services read with the fast path off")
    given = list(services(_SERVICES))
    for mode, text in (("iptables", iptables_save(given)), ("nftables", nft_text(given))):
        path = folder / f"walk-{mode}"
        path.write_text(text, encoding="ascii")
        print(f"  {_compared(mode, path, rounds)}")
    print()


def _compared(mode: str, path: Path, rounds: int) -> str:
    runs = [(_run(path), _run(path, "off")) for _ in range(rounds)]
    ratio = statistics.median(off["seconds"] / on["seconds"] for on, off in runs)
    met = _run(path, "count")["met"]
    walked = statistics.median(off["walked"] for _, off in runs)
    chains = statistics.median(off["chains"] for _, off in runs)
    return (
        f"{mode} mode: {statistics.median(off['seconds'] for _, off in runs):.2f} s, "
        f"{ratio:.1f}x of the fast path; {met:,} rules met, {1_000 * chains / met:.3f} ms each "
        f"in chains, {1_000 * walked / met:.3f} ms with all that follows"
    )


def _run(path: Path, *how: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "netns_lab.bench_walk", str(path), *how]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _counted() -> list[None]:
    """Return a list that grows by an item for each rule that a packet comes to from now on."""
    met: list[None] = []
    walk = RuleWalk.walk

    def matched(*given: Any) -> Any:
        met.append(None)
        return match_all(*given)

    def walked(self: RuleWalk, first: int, packet: Any) -> Any:
        if not first:
            met.append(None)
        return walk(self, first, packet)

    vars(traverse)["match_all"] = matched
    RuleWalk.walk = walked  # type: ignore[method-assign]  # only while it is counted
    return met


def _timed() -> list[float]:
    """Return a list that gets the CPU seconds of each traversal of chains from now on."""
    took: list[float] = []
    tree = Walks.tree

    def timed(self: Walks, chain: str, packet: Any) -> Any:
        begun, inner = time.process_time(), len(took)
        try:
            return tree(self, chain, packet)
        finally:
            took[inner:] = [time.process_time() - begun]  # those within it are part of it

    Walks.tree = timed  # type: ignore[method-assign]
    return took


def _view(path: Path, *, plainly: bool) -> View:
    ruleset = read_ruleset(path.read_bytes(), path.name)
    if isinstance(ruleset, Ruleset):
        return Recogniser(ruleset, Cluster(), plainly=plainly).view()
    return NftRecogniser(ruleset, Cluster(), plainly=plainly).view()


def main(words: Sequence[str]) -> int:
    """Read a dump and all shares; print the CPU seconds of the process, and the rules evaluated."""
    path, *how = words
    gc.disable()  # as the program does
    met = _counted() if how == ["count"] else []
    took = _timed()
    begun = time.process_time()
    view = _view(Path(path), plainly=not how)
    shares = sum(len(route.shares) for each in view.services for route in each.routes)
    done = time.process_time()
    told = {"seconds": done, "walked": done - begun, "chains": sum(took), "shares": shares}
    sys.stdout.write(json.dumps({**told, "met": len(met)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
