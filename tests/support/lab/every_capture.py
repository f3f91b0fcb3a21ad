"""``lab verify`` of captures: every route of each, measured on this kernel or named with a reason.

    KUBEODDS_CAPTURES=FOLDER python -m tests.support.lab.every_capture [--only NAME] [--seed N]

A line for each capture: routes measured, routes left out by reason, verdict. Exit status 1: one of
them disagrees, or could not be loaded. With a seed one of them alone is taken, drawn by it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.lab.running import kubeodds

#: Those whose clusters are small enough for every route; scale-1000 goes by itself.
NAMES: Final = ("seed-dns", "two-node", "features", "dual-stack")


def captures(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Give the captures of these clusters, of every version, backend and node."""
    for path in sorted(folder.glob("*/*/run.json")):
        if path.parent.name.partition("@")[0].partition("+")[0] in names:
            yield path.parent


def dumps(capture: Path) -> list[str]:
    """Return the dumps of a capture: of both IP versions, where iptables has written them."""
    if "nftables" in capture.parent.name:
        return [str(next(capture.glob("nft-list-ruleset.txt*")))]
    found = [*capture.glob("iptables-*-save.txt*"), *capture.glob("ip6tables-*-save.txt*")]
    return [str(each) for each in found]


def verified(capture: Path, resolution: str) -> tuple[int, dict[str, Any], str]:
    """Return exit status, document and messages of `lab verify`."""
    node = json.loads((capture / "run.json").read_text())["node"]
    objects = str(next(capture.glob("objects.json*")))
    words = [*dumps(capture), "--objects", objects, "--node", node, "--resolution", resolution]
    done = kubeodds("lab", "verify", *words, "-o", "json")
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", help="names of clusters")
    parser.add_argument("--resolution", default="5%", help="what is noticed (default: 5%%)")
    parser.add_argument("--seed", type=int, help="take one capture, drawn by this")
    options = parser.parse_args()
    folder = Path(os.environ["KUBEODDS_CAPTURES"])
    found = list(captures(folder, options.only or NAMES))
    if options.seed is not None:
        found = [random.Random(options.seed).choice(found)]
    failed = 0
    for capture in found:
        begun = time.monotonic()
        status, told, says = verified(capture, options.resolution)
        left = Counter(each["reason"] for each in told.get("left_out", ()))
        failed += status != 0
        line = json.dumps(
            {
                "capture": "/".join(capture.parts[-2:]),
                "seconds": round(time.monotonic() - begun, 1),
                "routes": told.get("routes", 0),
                "left out": dict(left),
                "agrees": told.get("agrees"),
                **({"says": says.strip()[:300]} if not told else {}),
            }
        )
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
