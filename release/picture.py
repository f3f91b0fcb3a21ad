"""The picture of a terminal in the README, dark and light: what the program prints, as SVG.

It loads nothing, no font either; each run of text has its width, so that any monospaced font fits.
"""

from __future__ import annotations

import html
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT: Final = Path(__file__).parents[1]
#: Below the root of the project.
FOLDER: Final = Path("docs", "images")
#: What is typed in the root of the project.
COMMAND: Final = (
    "kubeodds loss examples/dump.txt --objects examples/objects.json --dead-node master"
)
#: Of the terminal.
_COLUMNS: Final = 90
#: As rich has it, without the fonts that it would load.
_FORMAT: Final = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>%(title)s</title>
<style>
.{unique_id}-matrix {{
font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px;
line-height: {line_height}px;
}}
.{unique_id}-title {{ display: none }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
#: Black to white, in the order of the terminal: red is a total loss, magenta a partial one.
_DARK: Final = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [
        (72, 79, 88),
        (255, 123, 114),
        (63, 185, 80),
        (210, 153, 34),
        (88, 166, 255),
        (210, 168, 255),
        (57, 197, 207),
        (177, 186, 196),
    ],
)
_LIGHT: Final = TerminalTheme(
    (255, 255, 255),
    (31, 35, 40),
    [
        (36, 41, 47),
        (207, 34, 46),
        (17, 99, 41),
        (77, 45, 0),
        (9, 105, 218),
        (130, 80, 223),
        (27, 124, 131),
        (110, 119, 129),
    ],
)
#: The colour of its frame.
_FRAME: Final = "rgba(255,255,255,0.35)"
THEMES: Final = {"dark": _DARK, "light": _LIGHT}


_BLANK: Final = "\u00a0"
_TEXT: Final = re.compile(
    r'<text (?P<before>[^>]*)x="(?P<x>[^"]+)"(?P<between>[^>]*)textLength="(?P<length>[^"]+)"'
    r"(?P<after>[^>]*)>(?P<text>[^<]*)</text>"
)
#: Words with one blank between them.
_WORDS: Final = re.compile(rf"[^{_BLANK}]+(?:{_BLANK}[^{_BLANK}]+)*")


def printed() -> str:
    """Return what the program prints for COMMAND on a terminal, with its colours."""
    _, *words = COMMAND.split()
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-m", "analyzer", *words],
        cwd=ROOT,
        env={
            "PYTHONPATH": str(ROOT),
            "FORCE_COLOR": "1",
            "COLUMNS": str(_COLUMNS),
            "PATH": os.environ.get("PATH", ""),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def pictures() -> Iterator[tuple[Path, str]]:
    """Give each picture and where it is kept, below the root of the project."""
    console = Console(width=_COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bold"), COMMAND), soft_wrap=True)
    console.print(Text.from_ansi(printed()))
    for name, theme in THEMES.items():
        made = console.export_svg(
            title="",
            theme=theme,
            clear=False,
            code_format=_FORMAT.replace("%(title)s", COMMAND),
            unique_id=f"kubeodds-{name}",
        )
        # The frame of rich is made for dark pages only; on white ones it would not be seen.
        made = made.replace(_FRAME, "rgba(128,128,128,0.5)")
        made = _TEXT.sub(_words, made)
        lines = [line.rstrip() for line in made.splitlines()]
        yield FOLDER / f"loss-{name}.svg", "\n".join(filter(None, lines)) + "\n"


def _words(found: re.Match[str]) -> str:
    """Return a run of text in pieces, each at its own place, without blanks that make columns.

    Not every program that shows SVG keeps blanks at the beginning of a text.
    """
    text = html.unescape(found["text"])
    width = float(found["length"]) / len(text)
    return "".join(
        f'<text {found["before"]}x="{float(found["x"]) + width * piece.start():.1f}"'
        f'{found["between"]}textLength="{width * len(piece[0]):.1f}"{found["after"]}>'
        f"{html.escape(piece[0], quote=False)}</text>"
        for piece in _WORDS.finditer(text)
    )
