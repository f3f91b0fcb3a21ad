"""Files of the project that are made of the program: ``python -m release.generated`` writes them.

They are kept beside what they are made of, so that a package is built without the tools that make
them; a test holds that each is what its generator gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from release import completion, inventory, manual, picture

ROOT: Final = Path(__file__).parents[1]


def generated() -> Iterator[tuple[Path, str]]:
    """Give each file's place below the root of the project, and what belongs there."""
    yield from completion.scripts()
    yield from manual.pages()
    yield inventory.inventory()
    yield from picture.pictures()


def stale() -> list[str]:
    """Return what differs from what its generator gives, is missing, or comes of none."""
    wanted = dict(generated())
    folders = (completion.FOLDER, manual.FOLDER, picture.FOLDER)
    there = {p.relative_to(ROOT) for folder in folders for p in (ROOT / folder).glob("*")}
    wrong = there - wanted.keys()
    wrong |= {path for path, text in wanted.items() if _content(ROOT / path) != text}
    return sorted(map(str, wrong))


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def main() -> None:
    """Write every generated file."""
    for name in stale():
        (ROOT / name).unlink(missing_ok=True)
    for path, text in generated():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
