"""Looks for wrong numbers: ``python -m tests.support.foreign --seed N --seconds S``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import monotonic

from tests.support.captures import FIXTURES
from tests.support.foreign.ground import Grounds
from tests.support.foreign.trying import TRIALS, Found, tried


def main() -> int:
    """Try one dump after the other; print each failure with what repeats it, and keep its dump."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--once", action="store_true", help="only that one seed")
    parser.add_argument("--kind", help="only this kind of trial", choices=TRIALS)
    parser.add_argument("--captures", type=Path, default=FIXTURES, help="a folder of captures")
    options = parser.parse_args()
    grounds = Grounds(options.captures)
    until = monotonic() + options.seconds
    seed, failed = options.seed, 0
    while True:
        found = tried(seed, options.kind, grounds)
        if found is not None:
            failed += 1
            _told(found, options.captures)
        seed += 1
        if options.once or monotonic() > until:
            break
    sys.stdout.write(f"{seed - options.seed} dumps, {failed} answered wrongly\n")
    return 1 if failed else 0


def _told(found: Found, captures: Path) -> None:
    files = found.kept()
    again = f"python -m tests.support.foreign --seed {found.seed} --once"
    again += "" if captures == FIXTURES else f" --captures {captures}"
    kind = "" if found.asked_kind is None else f" --kind {found.asked_kind}"
    lines = [f"seed {found.seed}, {found.kind}, {found.ground}", *found.faults[:4]]
    sys.stdout.write("\n  ".join([*lines, f"dumps: {' '.join(files)}", f"again: {again}{kind}"]))
    sys.stdout.write("\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
