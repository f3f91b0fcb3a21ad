"""Cost of `whatif --from-objects` beyond reading the JSON, on a mixed cluster.

``python -m netns_lab.bench_objects MODE`` measures one mode and prints CPU seconds and memory as
JSON; `compare` measures both modes and yields a line of text for each.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from analyzer.arguments.command_line import parse
from analyzer.failure.whatif import WhatIfOptions, what_if
from analyzer.inputs.api_objects import ApiObjects
from analyzer.kubeproxy.generate import mixed
from analyzer.questions.predicting import everywhere

_SERVICES: Final = 1_000
_NODES: Final = 1_000
_READ: Final = """
import sys
from netns_lab.bench_objects import of_file
of_file(*sys.argv[1:])
"""


def compare(rounds: int) -> Iterator[str]:
    """Yield one line per mode: medians over some rounds."""
    for mode in ("iptables", "nftables"):
        runs = sorted((_run(mode) for _ in range(rounds)), key=lambda each: each["beyond"])
        found = runs[len(runs) // 2]
        yield (
            f"  {found['nodes']:,} nodes, {found['services']:,} Services, {found['endpoints']:,} "
            f"endpoints, {mode} mode: predicted at every node in {found['predicted']:.3f} s, "
            f"what any failure costs in {found['whatif']:.3f} s, together "
            f"{found['beyond']:.3f} s and {found['memory']:.0f} MiB beyond reading "
            f"({found['reading']:.3f} s, {found['before']:.0f} MiB)"
        )


def _run(mode: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "objects.json"
        items = mixed(_SERVICES, _NODES)
        path.write_text(json.dumps({"kind": "List", "items": items}), encoding="ascii")
        # In another process, because memory used to make the objects is not returned to the system.
        command = [sys.executable, "-c", _READ, str(path), mode]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of_file(path: str, mode: str) -> None:
    """Print the cost of reading a file of objects, of predicting, and of judging all failures."""
    gc.disable()  # as the program does
    begun = time.process_time()
    options = parse(["whatif", "--from-objects", path, "--mode", mode, "--seed", "1"])
    objects = ApiObjects(options)
    read = time.process_time()
    before = _peak()
    found = everywhere(options, objects)
    predicted = time.process_time()
    answer = what_if(found.asked, objects.cluster, WhatIfOptions(top=10), None, found.services)
    done = time.process_time()
    told = {
        "nodes": len(answer.vantages),
        "services": len(found.services),
        "endpoints": sum(len(each.together.endpoints) for each in found.services),
        "reading": read - begun,
        "predicted": predicted - read,
        "whatif": done - predicted,
        "beyond": done - read,
        "before": before,
        "memory": _peak() - before,
    }
    sys.stdout.write(json.dumps(told) + "\n")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(words: Sequence[str]) -> int:
    """Measure one mode and print the result."""
    sys.stdout.write(json.dumps(_run(words[0])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
