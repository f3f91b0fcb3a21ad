"""Pages of captures in a browser: numbers of the JSON, and nothing that a console complains of.

    KUBEODDS_CAPTURES=FOLDER python -m tests.support.pages.every_capture [--only NAME] [--seed N]

Of each capture the pages of loss, whatif, tree, trace, timeline and diff. A line for each: pages,
numbers compared, console messages. Exit status 1: a number is another, or something complains.
With a seed one capture alone is taken, drawn by it.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from analyzer import cli
from release.browser import Browser, browser
from tests.support.lab.every_capture import dumps

VERBS: Final = ("loss", "whatif", "tree", "trace", "timeline", "diff")
#: Nodes of a page of whatif that are marked one after the other.
_MOST_MARKED: Final = 3
_ROUNDED: Final = 0.0005 + 1e-9
_ALL_ROWS: Final = """\
const more = [...document.querySelectorAll('#explorer p.bar button')].at(-1);
for (let left = 1000; left && !more.hidden; left -= 1) more.click();
return [...document.querySelectorAll('#losses tbody tr[data-service]')].map((row) =>
  [row.dataset.service, row.dataset.protocol, row.dataset.state, row.cells[4].textContent]);
"""
_MARK: Final = """\
for (const box of document.querySelectorAll('input[data-kind=node]')) {
  if (box.checked !== arguments[0].includes(box.parentElement.textContent)) box.click();
}"""
_LEAVES: Final = """\
const leaves = (cell) => cell.c ? cell.c.flatMap(leaves) : [[cell.t, cell.s]];
const drawn = [...document.querySelectorAll('.icicle')].map((tree) =>
  [...tree.querySelectorAll('g.node')].filter((each) => !each.__data__.children)
    .map((each) => each.getAttribute('aria-label')));
return [JSON.parse(document.getElementById('data-trees').textContent).map(leaves), drawn];
"""
_TABLES: Final = """\
return [...document.querySelectorAll('.rest table')].map((table) =>
  [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent)));
"""


@dataclass
class Seen:
    """What was held against each other.

    Attributes:
        numbers: of pages that were compared with the JSON.
        wrong: what differs, or complains, in words.
    """

    pages: int = 0
    numbers: int = 0
    wrong: list[str] = field(default_factory=list)

    def share(self, what: str, text: str, lower: float, upper: float) -> None:
        """Hold a percentage, or a range of two, against a share and its bounds."""
        self.numbers += 1
        found = [float(each.replace(",", "")) / 100 for each in re.findall(r"\d[\d.,]*", text)]
        if not found or any(
            abs(of_page - share) > _ROUNDED
            for of_page, share in zip((found[0], found[-1]), (lower, upper), strict=True)
        ):
            self.wrong.append(f"{what}: {text!r} is not {lower} to {upper}")

    def same(self, what: str, of_page: object, of_json: object) -> None:
        """Hold something else against the JSON."""
        self.numbers += 1
        if of_page != of_json:
            self.wrong.append(f"{what}: {str(of_page)[:200]} is not {str(of_json)[:200]}")


def captures(folder: Path) -> list[Path]:
    """Return the captures of every version, backend and node with objects, small ones first."""
    found = sorted(path.parent for path in folder.glob("*/*/objects.json*"))
    return sorted(found, key=lambda each: sum(file.stat().st_size for file in each.iterdir()))


def partner(capture: Path, every: Sequence[Path]) -> Path:
    """Return what a capture is compared with: the same cluster of the next version or backend."""
    alike = [each for each in every if each.name == capture.name] or [capture]
    return alike[(alike.index(capture) + 1) % len(alike)]


class Pages:
    """The pages of one capture.

    Attributes:
        given: the words that name its dumps, its objects, and its node.
        seen: what was found.
    """

    def __init__(self, capture: Path, other: Path, window: Browser, folder: Path) -> None:
        self._window = window
        self._folder = folder
        self.objects = next(capture.glob("objects.json*"))
        node = json.loads((capture / "run.json").read_text(encoding="utf-8")).get("node")
        self.given = [*dumps(capture), "--objects", str(self.objects)]
        self.given += ["--node", node] if node else []
        self._both = [*dumps(capture)[:1], *dumps(other)[:1], *self.given[-4 if node else -2 :]]
        self.seen = Seen()
        self._dead = self._first_dead()

    def _first_dead(self) -> list[str]:
        """Return what to mark as dead: the first node with an endpoint, or an endpoint."""
        data = self.objects.read_bytes()
        text = gzip.decompress(data) if self.objects.suffix == ".gz" else data
        ends = [end for item in json.loads(text)["items"] for end in item.get("endpoints") or ()]
        nodes = sorted({end["nodeName"] for end in ends if end.get("nodeName")})
        if nodes:
            return ["--dead-node", nodes[0]]
        return ["--dead", min(address for end in ends for address in end["addresses"])]

    def check(self, verb: str) -> None:
        """Open the page of one verb, and hold it against the JSON of the same."""
        begun = len(self.seen.wrong)
        {
            "loss": self._loss,
            "whatif": self._whatif,
            "tree": self._tree,
            "trace": self._trace,
            "timeline": self._timeline,
            "diff": self._diff,
        }[verb]()
        self.seen.pages += 1
        self.seen.wrong += [f"console: {each}" for each in self._window.complaints()]
        self.seen.wrong += [f"asked for: {each}" for each in self._window.requests()]
        self.seen.wrong[begun:] = [f"{verb}: {each}" for each in self.seen.wrong[begun:]]

    def _open(self, *words: str) -> Any:
        """Open the page that a command prints, and return the document that it prints."""
        page, document = self._folder / "page.html", self._folder / "document.json"
        for path, form in ((page, "html"), (document, "json")):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                status = cli.main([*words, "--format", form, "--output", str(path)])
            if status not in {0, 1}:
                raise SystemExit(f"{' '.join(words)}: {said.getvalue()}")
        self._window.open(page)
        return json.loads(document.read_text(encoding="utf-8"))

    def _loss(self) -> None:
        document = self._open("loss", *self.given, *self._dead)
        rows = self._window.run(_ALL_ROWS)
        of_page = {(name, protocol): rest for name, protocol, *rest in rows}
        services = {(each["name"], each["protocol"]): each for each in document["services"]}
        self.seen.same("ServicePorts", sorted(of_page), sorted(services))
        # Both IP versions of a ServicePort have one name: then rows are counted, not told apart.
        twice = {key for key, n in Counter((row[0], row[1]) for row in rows).items() if n > 1}
        for key, service in services.items():
            if key in twice or key not in of_page:
                continue
            state, lost = of_page[key]
            worst = service["worst_loss"]
            self.seen.same(f"{key} state", state, service["state"])
            ends = (worst[end]["value"] if worst else 0.0 for end in ("lower", "upper"))
            self.seen.share(f"{key} loss", lost, *ends)

    def _whatif(self) -> None:
        document = self._open("whatif", *self.given, "--only", "node")
        singles = [each for each in document["failures"] if each["kind"] == "node"]
        for failure in singles[:_MOST_MARKED]:
            self._window.run(_MARK, failure["nodes"])
            self._window.drawn()
            rows = self._window.run(_ALL_ROWS)
            worst = next(row for row in rows if row[0] == failure["worst"])
            ends = (failure["worst_loss"][end]["value"] for end in ("lower", "upper"))
            self.seen.share(f"{failure['nodes']} worst", worst[3], *ends)
            silenced = {row[0] for row in rows if row[2] == "silenced"}
            self.seen.same(f"{failure['nodes']} silenced", silenced, set(failure["silenced"]))

    def _service(self) -> dict[str, Any]:
        """Return the ServicePort with most endpoints of those with a ClusterIP."""
        output = self._folder / "services.json"
        with contextlib.redirect_stderr(io.StringIO()):
            cli.main(["services", *self.given, "--format", "json", "--output", str(output)])
        found = json.loads(output.read_text(encoding="utf-8"))["services"]
        inside = [e for e in found if any(f["kind"] == "ClusterIP" for f in e["frontends"])]
        most: dict[str, Any] = max(inside, key=lambda each: len(each["endpoints"]["address"]))
        return most

    def _tree(self) -> None:
        name = str(self._service()["name"])
        document = self._open("tree", *self.given, name, *self._dead)
        told, drawn = self._window.run(_LEAVES)
        self.seen.same("trees", len(told), len(document["trees"]))
        for at, tree in enumerate(document["trees"]):
            self._leaves(f"tree {at}", told[at], drawn[at], [*ends(tree)])

    def _trace(self) -> None:
        service = self._service()
        (frontend, *_) = [f for f in service["frontends"] if f["kind"] == "ClusterIP"]
        address = frontend["address"]
        to = (
            f"[{address}]:{frontend['port']}" if ":" in address else f"{address}:{frontend['port']}"
        )
        words = ["--from", "pod", "--to", to, "--protocol", service["protocol"], *self._dead]
        document = self._open("trace", *self.given, *words)
        ((told,), (drawn,)) = self._window.run(_LEAVES)
        sums: defaultdict[str, float] = defaultdict(float)
        for title, share in told:
            sums[title.split(" ")[0]] += float(re.findall(r"[\d.]+", share)[-1])
        for each in document["outcomes"]:
            if each["outcome"] != "endpoint" or each["lower"] != each["upper"]:
                continue
            host = f"[{each['address']}]" if ":" in each["address"] else each["address"]
            key = f"{host}:{each['port']}"
            if key in sums and len(told) == len(document["outcomes"]):
                self.seen.share(key, f"{sums[key]}", each["lower"], each["upper"])
        self.seen.same("drawn", len(drawn) > 0, True)

    def _leaves(
        self,
        what: str,
        told: Sequence[Sequence[str]],
        drawn: Sequence[str],
        wanted: Sequence[tuple[str, float, float]],
    ) -> None:
        """Hold the ends of a tree against those of the JSON, in their order."""
        whole = [each for each in told if "more branch" not in each[0]]
        if len(whole) == len(told):
            self.seen.same(f"{what} ends", len(told), len(wanted))
        for (title, share), (text, lower, upper) in zip(whole, wanted, strict=False):
            self.seen.same(f"{what} end", title.startswith(text) or not text, True)
            self.seen.share(
                f"{what} {title}", share.rpartition("/")[2].partition(" ")[2] or share, lower, upper
            )
        labels = {f"{title}; {share} of new flows" for title, share in told}
        self.seen.same(f"{what} drawn", [each for each in drawn if each not in labels], [])

    def _timeline(self) -> None:
        document = self._open("timeline", *self.given, *self._dead, "--frozen")
        services = {(each["name"], each["protocol"]): each for each in document["services"]}
        for table in self._window.run(_TABLES):
            head, *rows = table
            if "AT ONCE" not in head:
                continue
            at = head.index("AT ONCE")
            for row in rows:
                once = services[row[0], row[1]]["at_once"]
                ends = (once[end]["value"] for end in ("lower", "upper"))
                self.seen.share(f"{row[0]} at once", row[at], *ends)
        said = self._window.run("return document.querySelector('main').innerText")
        self.seen.same("services", bool(services) or "no" in said.lower(), True)

    def _diff(self) -> None:
        document = self._open("diff", *self._both)
        names = {each["name"] for each in document["services"]}
        tables = self._window.run(_TABLES)
        shown = {row[0] for table in tables if table[0][0] == "SERVICE PORT" for row in table[1:]}
        shown.discard("")
        if len(document["services"]) <= 60:
            self.seen.same("ServicePorts", sorted(shown), sorted(names))
        else:
            self.seen.same("ServicePorts", shown <= names, True)
        said = self._window.run("return document.querySelector('.head').innerText")
        for side in ("a", "b"):
            number = document[side]["services"]
            self.seen.same(side, f"{number:,} ServicePort" in said, True)


def ends(tree: dict[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Give the ends of a tree in their order, each with bounds on its share of the new flows."""
    rest = [(0, 1.0, 1.0)]
    while rest:
        at, lower, upper = rest.pop()
        node = tree["nodes"][at]
        if "outcome" in node:
            told = tree["outcomes"][node["outcome"]]
            address = told.get("address")
            host = f"[{address}]" if address and ":" in address else address
            yield (f"{host}:{told['port']}" if address else ""), lower, upper
        elif "chance" in node:
            shares = node["chance"]["values"]
            branches = [
                (each, lower * s, upper * s)
                for each, s in zip(node["branches"], shares, strict=True)
            ]
            rest += reversed(branches)
        else:
            rest += reversed([(each, 0.0, upper) for each in node["either"]])


def main() -> int:
    """Check captures, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", help="names of clusters")
    parser.add_argument("--seed", type=int, help="take one capture, drawn by this")
    options = parser.parse_args()
    every = captures(Path(os.environ["KUBEODDS_CAPTURES"]))
    found = [each for each in every if not options.only or each.name in options.only]
    if options.seed is not None:
        found = [random.Random(options.seed).choice(found)]
    total = Seen()
    with browser() as window, tempfile.TemporaryDirectory() as folder:
        window.size(1280, 900)
        for capture in found:
            pages = Pages(capture, partner(capture, every), window, Path(folder))
            seconds = {}
            for verb in VERBS:
                since = time.monotonic()
                pages.check(verb)
                seconds[verb] = round(time.monotonic() - since, 1)
            seen = pages.seen
            total.pages += seen.pages
            total.numbers += seen.numbers
            total.wrong += seen.wrong
            line = {"capture": "/".join(capture.parts[-2:]), "pages": seen.pages}
            line |= {"numbers": seen.numbers, "seconds": seconds, "wrong": seen.wrong[:5]}
            sys.stdout.write(f"{json.dumps(line)}\n")
            sys.stdout.flush()
    told = f"{total.pages} pages of {len(found)} captures, {total.numbers:,} numbers, "
    sys.stdout.write(f"{told}{len(total.wrong)} wrong\n")
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
