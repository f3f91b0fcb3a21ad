"""How long the largest pages take: ``python -m release.bench_pages`` prints it.

Of 10,000 Services on 1,000 nodes, from objects alone; with ``--cluster`` of the dumps of 200 nodes
with 1,000 Services: seconds to write each page, its size, seconds from opening it to its second
frame in Chromium, and from a click on a check-box to the next.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

from analyzer import cli
from analyzer.kubeproxy.generate import mixed, node_name
from netns_lab.bench_cluster import Dumps
from release.browser import Browser, browser

#: Of each Service of 10 endpoints, with what leads to it.
_RULES = 32


def measured(found: Browser, page: Path, words: Sequence[str]) -> str:
    """Return the figures of the page of one command."""
    begun = time.monotonic()
    with redirect_stderr(StringIO()):
        cli.main([*words, "--format", "html", "--output", str(page)])
    written = time.monotonic() - begun
    opened = found.open(page)
    boxes = "document.querySelector('input[data-kind=node]')"
    clicked = ""
    if found.run(f"return {boxes} !== null"):
        begun = time.monotonic()
        found.run(f"{boxes}.click()")
        found.drawn()
        clicked = f", recomputes in {time.monotonic() - begun:.2f} s"
    size = page.stat().st_size / 1e6
    return f"written in {written:.1f} s, {size:.1f} MB, opens in {opened:.2f} s{clicked}"


def of_objects(found: Browser, folder: Path, services: int, nodes: int) -> Iterator[str]:
    """Give the figures of `whatif` from objects."""
    objects = folder / "objects.json"
    items = mixed(services, nodes)
    objects.write_text(json.dumps({"kind": "List", "items": items}), encoding="ascii")
    words = ["whatif", "--from-objects", str(objects), "--only", "node,zone"]
    yield f"whatif: {measured(found, folder / 'page.html', words)}"


def of_dumps(found: Browser, folder: Path, services: int, nodes: int) -> Iterator[str]:
    """Give the figures of the pages of `cluster`."""
    (folder / "dumps").mkdir()
    Dumps(_RULES * services, nodes).write(folder / "dumps", nodes)
    made = str(folder / "made")
    objects = folder / "dumps" / "objects.json"
    build = [str(folder / "dumps" / "*.txt"), "--objects", str(objects), "--into", made]
    with redirect_stderr(StringIO()):
        cli.main(["cluster", "build", *build, "--output", str(folder / "said.txt")])
    for words in (
        ["loss", made, "--dead-node", node_name(3)],
        ["whatif", made, "--only", "node,zone"],
        ["drift", made],
    ):
        told = measured(found, folder / "page.html", ["cluster", *words])
        yield f"cluster {words[0]}: {told}"


def main(words: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m release.bench_pages", description=__doc__)
    parser.add_argument("--cluster", action="store_true", help="pages of dumps of all nodes")
    parser.add_argument("--services", type=int)
    parser.add_argument("--nodes", type=int)
    asked = parser.parse_args(words)
    services = asked.services or (1_000 if asked.cluster else 10_000)
    nodes = asked.nodes or (200 if asked.cluster else 1_000)
    figures = of_dumps if asked.cluster else of_objects
    with tempfile.TemporaryDirectory() as folder, browser() as found:
        found.size(1280, 900)
        sys.stdout.write(f"{services:,} Services, {nodes:,} nodes\n")
        for line in figures(found, Path(folder), services, nodes):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
