"""What the fuzzer starts from: pieces of captures, and a rule for each case of each match."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def seeds(into: Path) -> None:
    for number, path in enumerate(sorted((ROOT / "fixtures/captures").glob("*/*/ip*-save.txt"))):
        text = path.read_text(encoding="utf-8")
        head = "*nat\n:PREROUTING ACCEPT [0:0]\n"
        (into / f"{number}.txt").write_text(head + text[-3500:], encoding="utf-8")
    for path in (ROOT / "fixtures/xt").glob("*.t"):
        words = [line.partition(" ; ")[0] for line in path.read_text().splitlines()]
        rows = [f"-A INPUT -p tcp -m {path.stem} {each} -j DROP" for each in words]
        text = "*filter\n:INPUT ACCEPT [0:0]\n" + "\n".join(rows) + "\nCOMMIT\n"
        (into / f"{path.stem}.txt").write_text(text, encoding="utf-8")
