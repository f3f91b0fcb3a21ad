"""How long the largest page takes: ``python -m release.bench_pages`` prints it.

Of 10,000 Services on 1,000 nodes, from objects alone: seconds to write the page, its size, seconds
from opening it to its second frame in Chromium, and from a click on a check-box to the next.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from analyzer import cli
from analyzer.kubeproxy.generate import mixed
from release.browser import browser


def main(words: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m release.bench_pages", description=__doc__)
    parser.add_argument("--services", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder, browser() as found:
        objects, page = Path(folder, "objects.json"), Path(folder, "page.html")
        items = mixed(asked.services, asked.nodes)
        objects.write_text(json.dumps({"kind": "List", "items": items}), encoding="ascii")
        begun = time.monotonic()
        given = ["--from-objects", str(objects), "--only", "node,zone"]
        cli.main(["whatif", *given, "--format", "html", "--output", str(page)])
        written = time.monotonic() - begun
        found.size(1280, 900)
        opened = found.open(page)
        begun = time.monotonic()
        found.run("document.querySelector('input[data-kind=node]').click()")
        found.drawn()
        clicked = time.monotonic() - begun
        size = page.stat().st_size / 1e6
    sys.stdout.write(
        f"{asked.services:,} Services, {asked.nodes:,} nodes: written in {written:.1f} s, "
        f"{size:.1f} MB, opens in {opened:.2f} s, recomputes in {clicked:.2f} s\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
