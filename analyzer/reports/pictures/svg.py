"""SVG elements, with all text escaped.

A picture in a page takes its colours from the page. Alone it has a style of its own, light and
dark; it loads nothing and holds no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.reports.pages.blocks import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Of a character of text, in sizes of the font, about.
_WIDTH: Final = 0.6
_STYLE: Final = """\
svg { color-scheme: light dark; background: #ffffff; }
text { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328; }
.small { font-size: 10px; }
.strong { font-weight: 600; }
.faint { fill: #57606a; }
.line { stroke: #57606a; fill: none; }
.branch rect { fill: #e3e7ee; } .branch text { fill: #1f2328; }
.alive rect { fill: #cfe5f7; } .alive text { fill: #10324d; }
.dead rect { fill: #b23a2e; } .dead text { fill: #ffffff; }
.other rect { fill: #ffe3b0; } .other text { fill: #4d3000; }
.lost { fill: #b23a2e; } .perhaps { fill: #e9b0a9; }
.heat-0 { fill: #f6f8fa; } .heat-1 { fill: #fdd0a2; } .heat-2 { fill: #c2410c; }
.heat-3 { fill: #7f1d0a; } text.much { fill: #ffffff; }
.predicted { fill: #1f2328; } .measured { stroke: #0550ae; fill: #0550ae; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117; }
text { fill: #e6edf3; } .faint { fill: #9da7b3; } .line { stroke: #9da7b3; }
.branch rect { fill: #21262d; } .branch text { fill: #e6edf3; }
.alive rect { fill: #12395c; } .alive text { fill: #d6ebff; }
.dead rect { fill: #ff938a; } .dead text { fill: #2b0000; }
.other rect { fill: #5a4300; } .other text { fill: #ffe9bd; }
.lost { fill: #ff938a; } .perhaps { fill: #7a3a35; }
.heat-0 { fill: #161b22; } .heat-1 { fill: #5c2a12; } .heat-2 { fill: #c2571a; }
.heat-3 { fill: #ffd8a8; } text.much { fill: #0d1117; }
.predicted { fill: #e6edf3; } .measured { stroke: #79c0ff; fill: #79c0ff; }
}
"""


def picture(
    width: float, height: float, title: str, inside: Iterable[str], *, alone: bool
) -> Iterator[str]:
    """Yield a picture with its name; `alone` for a file of its own."""
    size = f'viewBox="0 0 {number(width)} {number(height)}" width="{number(width)}"'
    kind = 'xmlns="http://www.w3.org/2000/svg"' if alone else 'class="chart"'
    yield f'<svg {kind} {size} role="img"><title>{escape(title)}</title>\n'
    if alone:
        yield f"<style>\n{_STYLE}</style>\n"
    yield from inside
    yield "</svg>\n"


def number(value: float) -> str:
    """Return a length, rounded to a hundredth."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def rect(x: float, y: float, width: float, height: float, kind: str = "") -> str:
    """Return a rectangle."""
    of = f' class="{kind}"' if kind else ""
    return (
        f'<rect{of} x="{number(x)}" y="{number(y)}" width="{number(max(width, 0.1))}" '
        f'height="{number(max(height, 0.1))}"/>'
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return text anchored at its start, middle, or end."""
    of = f' class="{kind}"' if kind else ""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text{of} x="{number(x)}" y="{number(y)}"{at}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a line."""
    ends = " ".join(
        f'{name}="{number(each)}"'
        for name, each in (("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2))
    )
    return f'<line class="line" {ends}/>'


def fitting(words: str, width: float, size: float = 12) -> str:
    """Return a text shortened in the middle to about that width."""
    room = int(width / (size * _WIDTH))
    if len(words) <= room:
        return words
    if room <= 1:
        return ""
    head = room // 2
    return f"{words[:head]}\u2026{words[len(words) - (room - head - 1) :]}"
