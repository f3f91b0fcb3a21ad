"""``lab verify`` of captures with rules of others drawn beside kube-proxy's.

    python -m tests.support.lab.foreign_verify [--seconds 60] [--seed N] [--keep FOLDER]

Each dump is a captured one with one to three rows or a table of others, as the kernel lists them,
and most often something is dead. What is printed and kept: see `verified`. Exit status 1: a dump
disagrees.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from random import Random
from typing import Final

from netns_lab.namespace import Namespace, leave_host
from tests.support.foreign.ground import Ground, Grounds
from tests.support.foreign.rows import Writer
from tests.support.lab.kernel_clusters import with_chains_of_the_kubelet
from tests.support.lab.verified import Verified, options

#: Objects that rules count with would have to be made first.
_COUNTED: Final = re.compile(r" -m nfacct --nfacct-name +\S+")
#: How often a dump is of nft; something is dead; that is a node.
_RATE_OF_NFT: Final = 0.5
_RATE_OF_DEATHS: Final = 0.5
_RATE_OF_NODES: Final = 0.5
#: What rules of others change is most often all flows of a route. Those that are not understood
#: match none of the packets that are sent.
_OPTIONS: Final = ("--resolution", "10%", "--lenient")


def written(ground: Ground, draw: Random) -> str:
    """Return a capture with rules of others."""
    writer = Writer(ground, draw)
    if not ground.is_nft:
        return with_chains_of_the_kubelet(_COUNTED.sub("", writer.iptables()))
    foreign = writer.nft()
    return "".join((foreign.text, *foreign.beside))


def listed(text: str, namespace: Namespace) -> str | None:
    """Return a ruleset as nft lists it once it is loaded; None: it is refused."""
    loaded = _nft(["-f", "-"], namespace, f"flush ruleset\n{text}")
    return None if loaded.returncode else _nft(["list", "ruleset"], namespace).stdout


def _nft(
    words: list[str], namespace: Namespace, given: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["nft", *words],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=namespace.entering(),  # there are no threads
    )


def dead(ground: Ground, draw: Random) -> list[str]:
    """Return options that say what is dead: nothing, another node, or an address."""
    if draw.random() >= _RATE_OF_DEATHS:
        return []
    names = [name for name in ground.cluster.nodes if name != ground.node]
    if names and draw.random() < _RATE_OF_NODES:
        return ["--dead-node", draw.choice(names)]
    addresses = sorted(map(str, {e.address for e in ground.view(ground.text).endpoints}))
    return ["--dead", draw.choice(addresses)]


def main() -> int:
    asked = options(__doc__)
    leave_host()
    namespace, grounds = Namespace("listing"), Grounds()
    verified, until = Verified(asked.keep, asked.seed), time.monotonic() + asked.seconds
    for number in range(asked.dumps):
        if time.monotonic() > until:
            break
        draw = Random(f"{asked.seed}-{number}")
        ground = grounds.one(draw, nft=draw.random() < _RATE_OF_NFT)
        text: str | None = written(ground, draw)
        if text is not None and ground.is_nft:
            text = listed(text, namespace)
        if text is None:
            verified.counts["refused"] += 1
            continue
        (objects,) = ground.path.parent.glob("objects.json*")
        case = f"{'/'.join(ground.path.parts[-3:-1])} IPv{ground.version}"
        if ground.generated is not None:
            case += f" as of {ground.generated[0].value}"
        verified.put(text, objects, ground.node, case, [*dead(ground, draw), *_OPTIONS])
    return verified.finish()


if __name__ == "__main__":
    sys.exit(main())
