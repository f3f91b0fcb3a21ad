"""``lab verify`` of captures with rules of others drawn beside kube-proxy's.

    python -m tests.support.lab.foreign_verify [--seconds 60] [--seed N] [--keep FOLDER]

Each dump is a captured one with one to three rows or a table of others, as the kernel lists them:
what is predicted of all routes is measured on the kernel. A line of JSON says how many dumps and
routes there were; one before it for each dump of which a verdict is not "agrees", with the dump's
name in the folder. Exit status 1: there is such a dump.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from netns_lab.namespace import Namespace, leave_host
from tests.support.foreign.ground import Ground, Grounds
from tests.support.foreign.rows import Writer

#: Objects that rules count with would have to be made first.
_COUNTED: Final = re.compile(r" -m nfacct --nfacct-name +\S+")
#: How often a dump is of nft; something is dead; that is a node.
_RATE_OF_NFT: Final = 0.5
_RATE_OF_DEATHS: Final = 0.5
_RATE_OF_NODES: Final = 0.5
#: Large enough for a few flows a route; what rules of others change is most often all of them.
_RESOLUTION: Final = "10%"


def written(ground: Ground, draw: random.Random) -> str:
    """Return a capture with rules of others."""
    writer = Writer(ground, draw)
    if not ground.is_nft:
        return _COUNTED.sub("", writer.iptables())
    foreign = writer.nft()
    return "".join((foreign.text, *foreign.beside))


def listed(text: str, namespace: Namespace) -> str | None:
    """Return a ruleset as nft lists it, which is loaded in a namespace; None: it is refused."""
    loaded = _run(["nft", "-f", "-"], namespace, f"flush ruleset\n{text}")
    if loaded.returncode:
        return None
    return _run(["nft", "list", "ruleset"], namespace).stdout


def _run(
    words: list[str], namespace: Namespace, given: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # nft
        words,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=namespace.entering(),  # there are no threads
    )


def dead(ground: Ground, draw: random.Random) -> list[str]:
    """Return options that say what is dead: most often nothing, or another node, or an address."""
    if draw.random() >= _RATE_OF_DEATHS:
        return []
    names = [name for name in ground.cluster.nodes if name != ground.node]
    if names and draw.random() < _RATE_OF_NODES:
        return ["--dead-node", draw.choice(names)]
    addresses = sorted(map(str, {e.address for e in ground.view(ground.text).endpoints}))
    return ["--dead", draw.choice(addresses)]


def verified(dump: Path, ground: Ground, more: list[str]) -> tuple[int, dict[str, Any], str]:
    """Return exit status, document and messages of `lab verify`."""
    (objects,) = ground.path.parent.glob("objects.json*")
    given = [str(dump), "--objects", str(objects), "--node", ground.node]
    words = [*given, *more, "--resolution", _RESOLUTION]
    done = subprocess.run(  # ours
        [sys.executable, "-m", "analyzer", "lab", "verify", *words, "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dumps", type=int, default=1_000_000, help="how many at most")
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for dumps that disagree")
    options = parser.parse_args()
    leave_host()
    namespace = Namespace("listing")
    grounds, until = Grounds(), time.monotonic() + options.seconds
    keep = options.keep or Path(tempfile.mkdtemp(prefix="foreign-"))
    keep.mkdir(exist_ok=True)
    counts: Counter[str] = Counter()
    for number in range(options.dumps):
        if time.monotonic() > until:
            break
        seed = f"{options.seed}-{number}"
        draw = random.Random(seed)
        ground = grounds.one(draw, nft=draw.random() < _RATE_OF_NFT)
        text: str | None = written(ground, draw)
        if text is not None and ground.is_nft:
            text = listed(text, namespace)
        if text is None:
            counts["refused"] += 1
            continue
        dump = keep / f"{seed}.txt"
        dump.write_text(text)
        more = dead(ground, draw)
        status, told, says = verified(dump, ground, more)
        counts["dumps"] += 1
        counts["routes"] += told.get("routes", 0)
        counts["left_out"] += len(told.get("left_out", ()))
        if status == 0 and told.get("agrees"):
            dump.unlink()
            continue
        counts["disagree"] += 1
        case = "/".join(ground.path.parts[-3:-1])
        line: dict[str, Any] = {"dump": str(dump), "case": case, "dead": more, "status": status}
        line["says"] = says.strip()[:300]
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{json.dumps(counts)}\n")
    return 1 if counts["disagree"] else 0


if __name__ == "__main__":
    sys.exit(main())
