"""Looks for questions that notice the seeded faults: ``python -m tests.support.seeded.search``.

Each fault is looked for among random questions of a new seed. With ``--write`` the smallest
question that was found is stored for each fault that has none, or whose stored one notices it no
more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from analyzer.errors import ParseError
from tests.support.seeded.stored import read_file, write_file
from tests.support.seeded.suites import SUITES, Suite

#: Questions looked at for one fault; the rarest, of 111, were found among 3,000.
_MOST: Final = 20_000


def found(suite: Suite, name: str, seed: int, *, smallest: bool = False) -> str | None:
    """A question, as text, that notices a fault; None: none was found.

    With `smallest` it is made as small as can be, which takes long.
    """
    phases = [Phase.generate, *([Phase.shrink] if smallest else [])]
    wanted = settings(
        max_examples=_MOST,
        phases=phases,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    def noticed(question: Any) -> bool:
        try:
            return suite.is_broken_by(suite.write(question))
        except ParseError:  # for instance the negation of a match that nobody can read
            return False

    with pytest.MonkeyPatch.context() as patch:
        suite.faults[name](patch)
        try:
            chosen = find(
                suite.questions(name),
                noticed,
                settings=wanted,
                random=Random(seed),  # no secret
            )
        except NoSuchExample:
            return None
        text = suite.write(chosen)
    # Else it is the property itself that does not hold.
    assert not suite.is_broken_by(text), text
    return text


def notices(suite: Suite, name: str, text: str) -> bool:
    """Whether a stored question notices a fault."""
    with pytest.MonkeyPatch.context() as patch:
        suite.faults[name](patch)
        return suite.is_broken_by(text)


def store(suite: Suite, seed: int) -> Iterator[str]:
    """Store a question for each fault that has none that notices it; say what was done."""
    stored = {k: v for k, v in read_file(suite.file).items() if k in suite.faults}
    for name in suite.faults:
        if name in stored and notices(suite, name, stored[name]):
            continue
        text = found(suite, name, seed, smallest=True)
        if text is None:
            yield f"{suite.name}: nothing notices: {name}"
            continue
        stored[name] = text
        suite.file.parent.mkdir(exist_ok=True)
        write_file(suite.file, stored)
        yield f"{suite.name}: {name}: stored"


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, or store what is missing; 1 where a fault is noticed by nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", choices=SUITES, help="only this one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="then begin no more")
    parser.add_argument("--write", action="store_true", help="store what is missing")
    options = parser.parse_args(arguments)
    suites = [SUITES[options.suite]] if options.suite else list(SUITES.values())
    missed = searched = 0
    until = time.monotonic() + options.seconds
    if options.write:
        for suite in suites:
            for line in store(suite, options.seed):
                print(line, flush=True)
                missed += "nothing notices" in line
        return int(missed > 0)
    pairs = [(suite, name) for suite in suites for name in suite.faults]
    Random(options.seed).shuffle(pairs)  # no secret
    for suite, name in pairs:
        if time.monotonic() > until:
            break
        searched += 1
        if found(suite, name, options.seed) is None:
            missed += 1
            print(f"{suite.name}: nothing notices: {name}", flush=True)
    print(f"{searched} of {len(pairs)} seeded faults searched for, {missed} not noticed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
