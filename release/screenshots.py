"""Screenshots of pages in docs/: ``python -m release.screenshots`` makes them anew.

Pages are those of the example, in Debian's Chromium, light and dark. They are looked at by people:
which pixels come out depends on the browser and its fonts, so that no test compares them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from analyzer import cli
from release.browser import Browser, browser

ROOT: Final = Path(__file__).parents[1]
#: Below the root of the project.
FOLDER: Final = Path("docs", "screenshots")
_GIVEN: Final = (
    *("examples/dump.txt", "--objects", "examples/objects.json"),
    *("--node", "worker1"),
)
#: By name: the command, without its format, and how high a window shows what matters.
PAGES: Final = {
    "loss": (("loss", *_GIVEN, "--dead-node", "master"), 880),
    "whatif": (("whatif", *_GIVEN), 720),
    "tree": (("tree", *_GIVEN, "default/app", "--dead-node", "master"), 640),
}
THEMES: Final = ("light", "dark")
WIDTH: Final = 1100


def screenshots(found: Browser, folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Give each picture's place below the root of the project, and its bytes."""
    for name, (words, height) in PAGES.items():
        page = folder / f"{name}.html"
        cli.main([*words, "--format", "html", "--output", str(page)])
        for theme in THEMES:
            found.size(WIDTH, height, dark=theme == "dark")
            found.open(page)
            yield FOLDER / f"{name}-{theme}.png", found.picture()


def main() -> None:
    """Make every picture anew; examples are named from the root of the project."""
    with browser() as found, tempfile.TemporaryDirectory() as folder:
        for path, content in screenshots(found, Path(folder)):
            (ROOT / path).write_bytes(content)


if __name__ == "__main__":
    main()
