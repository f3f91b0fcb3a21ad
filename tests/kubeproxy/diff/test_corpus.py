"""Public dumps with all their noise: none differs from itself, and none breaks the comparison."""

from __future__ import annotations

from pathlib import Path

from analyzer.errors import AnalyzerError
from analyzer.kubeproxy.diff.difference import Conclusion
from tests.support.comparing import compared, side_of

_LARGE = 2_000_000


def test_no_public_dump_differs_from_itself(corpus: Path) -> None:
    compared_dumps = 0
    for path in sorted(p for p in corpus.rglob("*") if p.is_file()):
        if path.stat().st_size > _LARGE:
            continue
        try:
            sides = [(side_of(path.read_bytes(), version=version), version) for version in (4, 6)]
        except AnalyzerError:
            continue  # no dump, which other tests look at
        for side, version in sides:
            if not any(
                f.address is not None and f.address.version == version
                for s in side.view.services
                for f in s.frontends
            ):
                continue
            found = compared(side, side, version)
            # What a dump that is cut off had besides nobody knows.
            verdict = Conclusion.UNKNOWN if version in side.view.cut else Conclusion.SAME
            assert (found.changes, found.beside, found.verdict) == ((), (), verdict), path
            compared_dumps += 1
    assert compared_dumps > 10
