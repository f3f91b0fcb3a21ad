from __future__ import annotations

from collections.abc import Callable

import pytest

from analyzer.kubeproxy.fastpath.classes import Classes
from analyzer.kubeproxy.routes.source_routes import Way
from analyzer.kubeproxy.view import Frontend


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The frontends that got the answer of another one, and were not walked."""
    found: list[str] = []
    ways = Classes.ways

    def noted(
        self: Classes, frontend: Frontend, protocol: str, walked: Callable[[], tuple[Way, ...]]
    ) -> tuple[Way, ...]:
        found.append(str(frontend))

        def walk() -> tuple[Way, ...]:
            found.pop()
            return walked()

        return ways(self, frontend, protocol, walk)

    monkeypatch.setattr(Classes, "ways", noted)
    return found
