"""Pages about a whole cluster in a real browser: node by node, and where nodes differ."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from analyzer import cli
from release.browser import Browser
from tests.pages.conftest import Write
from tests.support.pages.commands import asked

pytestmark = pytest.mark.packages

_ROWS = """\
return [...document.querySelectorAll('#losses tbody tr[data-service]')].map((row) =>
  [row.dataset.service, row.dataset.protocol, row.dataset.state,
   ...[...row.cells].slice(4).map((cell) => cell.textContent)]);
"""
_MATRIX = """\
const heads = [...document.querySelectorAll('#matrix thead th')].map((cell) => cell.textContent);
return [...document.querySelectorAll('#matrix tbody tr')].flatMap((row) =>
  [...row.cells].slice(1).map((cell, at) => [row.dataset.node, heads[at + 1], cell.textContent])
    .filter((each) => each[2]));
"""
_DIFFERENCES = """\
return [...document.querySelectorAll('#differences tbody tr')].map((row) =>
  [...row.cells].map((cell) => cell.textContent));
"""


def share(text: str) -> list[float]:
    """Return the bounds that a text of percentages gives."""
    found = [float(each) / 100 for each in re.findall(r"[\d.]+", text)]
    return [found[0], found[-1]]


def check(shown: Browser, document: Any) -> None:
    """Hold the rows of a page against the document with the same dead."""
    rows = {(row[0], row[1]): row[2:] for row in shown.run(_ROWS)}
    services = {(each["name"], each["protocol"]): each for each in document["services"]}
    assert rows.keys() == services.keys()
    alive = len(document["vantage"])
    for key, service in services.items():
        state, lost, _, _, at, hit, mean = rows[key]
        assert state == service["state"]
        worst = service["worst_loss"]
        assert share(lost) == pytest.approx(
            [worst[end]["value"] for end in ("lower", "upper")], abs=0.0005
        )
        number = service["mean_loss"]["nodes"]
        there = [
            each
            for each in service["at"]
            if each["worst_loss"] and each["worst_loss"]["upper"]["value"]
        ]
        hurt = sum(number if each["nodes"] is None else len(each["nodes"]) for each in there)
        assert hit == f"{hurt:,} of {number:,}"
        means = [service["mean_loss"][end] for end in ("lower", "upper")]
        assert share(mean) == pytest.approx(means, abs=0.0005)
        if not worst["upper"]["value"]:
            assert at == ""
        elif service["nodes"] is None:
            assert (at, number) == ("every node", alive)
        else:
            assert at.startswith(service["nodes"][0])


def test_a_page_says_of_all_nodes_what_the_json_says(
    store: str, write: Write, shown: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["cluster", "loss", store]
    shown.open(write(*words, "--dead-node", "node-01"))
    check(shown, asked(capsys, *words, "--dead-node", "node-01"))
    shown.run(
        """
        for (const box of document.querySelectorAll('input[data-kind=node]')) {
          const name = box.parentElement.textContent;
          if (name === 'node-00' || name === 'node-01') box.click();
        }"""
    )
    shown.drawn()
    check(shown, asked(capsys, *words, "--dead-node", "node-00"))
    assert shown.complaints() == []
    assert shown.requests() == []


def test_the_map_of_nodes_says_what_each_of_them_loses(
    store: str, write: Write, shown: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["cluster", "loss", store, "--dead-node", "node-01"]
    shown.open(write(*words))
    document = asked(capsys, *words)
    at = {
        (service["name"], node): each
        for service in document["services"]
        for each in service["at"]
        for node in each["nodes"] or document["vantage"]
    }
    told = shown.run(
        """
        const canvas = [...document.querySelectorAll('canvas')][1];
        const said = document.getElementById('at-cell');
        const press = (key) => {
          canvas.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
          return said.textContent;
        };
        const told = [];
        for (let row = 0; row < arguments[0]; row += 1) {
          for (let back = 0; back < arguments[1]; back += 1) press('ArrowLeft');
          told.push(said.textContent);
          for (let on = 1; on < arguments[1]; on += 1) told.push(press('ArrowRight'));
          press('ArrowDown');
        }
        return told;""",
        len(document["services"]),
        len(document["vantage"]) + 1,
    )
    assert len(told) == len(document["services"]) * (len(document["vantage"]) + 1)
    seen = 0
    for text in told[1:]:
        name, node, says = re.fullmatch(r"(\S+) \(\w+\) at (\S+): (.*)\.", text).groups()  # type: ignore[union-attr]  # then it fails here
        found = at.get((name, node))
        if node == "node-01":
            assert says == "it is marked dead"
        elif found is None:
            assert says == "its rules do not have it"
        elif found["state"] == "no-endpoints":
            assert says == "its rules have no endpoint for it"
        else:
            bounds = [found["worst_loss"][end]["value"] for end in ("lower", "upper")]
            assert share(says) == pytest.approx(bounds, abs=0.0005)
            seen += 1
    assert seen > len(document["vantage"])


@pytest.fixture
def findings(store: str, tmp_path: Path) -> list[list[str]]:
    """Every difference at each node, as tsv has it."""
    output = tmp_path / "drift.tsv"
    assert cli.main(["cluster", "drift", store, "-o", "tsv", "--output", str(output)]) == 1
    return [line.split("\t") for line in output.read_text().split("\n")[1:-1]]


def test_the_page_of_drift_has_each_difference_where_it_is(
    store: str, findings: list[list[str]], write: Write, shown: Browser
) -> None:
    shown.open(write("cluster", "drift", store))
    counted = Counter((row[0], row[1]) for row in findings)
    assert {(node, kind): int(n) for node, kind, n in shown.run(_MATRIX)} == counted
    rows = shown.run(_DIFFERENCES)
    assert Counter((row[5], *row[:4]) for row in rows) == Counter(tuple(row) for row in findings)
    assert shown.complaints() == []
    assert shown.requests() == []


_FILL = """\
const field = document.getElementById(arguments[0]);
field.value = arguments[1];
field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input'));
"""


def test_differences_are_filtered_by_node_kind_and_service(
    store: str, findings: list[list[str]], write: Write, shown: Browser
) -> None:
    shown.open(write("cluster", "drift", store))
    for field, value, at in (
        ("of-node", "node-1", 0),
        ("of-kind", "missing-endpoint", 1),
        ("of-service", "STICKY", 2),
    ):
        shown.run(_FILL, field, value)
        wanted = [row for row in findings if value.lower() in row[at].lower()]
        found = shown.run(_DIFFERENCES)
        assert 0 < len(found) == len(wanted)
        number = f"{len(wanted)} of {len(findings)} differences"
        assert shown.run("return document.querySelector('.verdict').textContent").startswith(number)
        shown.run(_FILL, field, "")
    node, kind, number = shown.run(_MATRIX)[3]
    shown.run(
        "[...document.querySelectorAll('#matrix button')].find((each) => "
        "each.getAttribute('aria-label').includes(` at ${arguments[0]}:`)).click()",
        node,
    )
    assert [row[0] for row in shown.run(_DIFFERENCES)] == [kind] * int(number)
    assert shown.run("return document.activeElement.id") == "each-title"
    assert shown.complaints() == []


def test_differences_sort(store: str, write: Write, shown: Browser) -> None:
    shown.open(write("cluster", "drift", store))
    heads = "document.querySelectorAll('#differences th button')"
    shown.run(f"{heads}[0].click()")
    kinds = [row[0] for row in shown.run(_DIFFERENCES)]
    assert kinds == sorted(kinds)
    shown.run(f"{heads}[0].click()")
    assert [row[0] for row in shown.run(_DIFFERENCES)] == kinds[::-1]
    assert shown.run("return document.querySelector('#differences th').ariaSort") == "descending"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_numbers_in_the_matrix_can_be_read_however_many(
    dark: bool, store: str, write: Write, window: Browser, built: Path
) -> None:
    window.size(1280, 900, dark=dark)
    window.open(write("cluster", "drift", store))
    window.run(
        "document.querySelectorAll('#matrix td.heat-1')"
        ".forEach((cell, at) => (cell.className = `heat-${(at % 3) + 1}`))"
    )
    window.run((built / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    told = window.driver.execute_async_script(
        "const done = arguments[0]; axe.run('#matrix', {runOnly: ['color-contrast']})"
        ".then((f) => done([f.violations.map((v) => v.nodes.length), f.passes.length]));"
    )
    assert told == [[], 1]


HOSTILE = "</script><img src=x onerror=document.title='owned'>\u202e\x1b[31m=1+1"


def test_hostile_names_of_nodes_and_services_are_inert(
    write: Write, shown: Browser, tmp_path: Path
) -> None:
    from tests.support import drifts

    (tmp_path / "dumps").mkdir()
    objects = drifts.write(tmp_path / "dumps")
    text = objects.read_text().replace('"node-28"', json.dumps(HOSTILE))
    objects.write_text(text)
    named = tmp_path / "dumps" / f"{HOSTILE.replace('/', ':')}.txt"
    named.write_text((tmp_path / "dumps" / "node-12-iptables-save.txt").read_text())
    for path in (tmp_path / "dumps").glob("*-save.txt"):
        dump = path.read_text().replace("ns/former", "ns/<img/src=x>")
        path.write_text(dump)
    made = str(tmp_path / "made")
    given = [str(tmp_path / "dumps"), "--objects", str(objects), "--into", made]
    assert cli.main(["cluster", "build", *given, "--engine", "serial"]) == 0
    for words in (["drift", made], ["loss", made, "--dead-node", "node-01"]):
        shown.open(write("cluster", *words))
        shown.run(
            """
            for (const each of document.querySelectorAll('#matrix button')) each.click();
            for (const each of document.querySelectorAll('input[type=checkbox]')) each.click();"""
        )
        shown.drawn()
        assert shown.run("return document.title").endswith(" - kubeodds")
        assert shown.run("return document.querySelectorAll('img,iframe,a[href]').length") == 0
        said = shown.run("return document.documentElement.textContent")
        assert not set("\x1b\u202e") & set(said)
        assert "<img" in shown.run("return document.body.innerText")
        assert shown.complaints() == []
        assert shown.requests() == []


def test_without_scripts_the_page_of_drift_has_the_matrix_and_every_difference(
    store: str, findings: list[list[str]], write: Write, shown: Browser
) -> None:
    page = write("cluster", "drift", store)
    text = page.read_text(encoding="utf-8")
    page.write_text(re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL), encoding="utf-8")
    shown.driver.get(page.as_uri())
    rows = "return document.querySelectorAll(arguments[0]).length"
    assert shown.run(rows, "#nodes tbody tr") == len({row[0] for row in findings})
    assert shown.run(rows, "#each tbody tr") == len(findings)
    assert "the rules still send flows there" in shown.run("return document.body.innerText")
    assert shown.complaints() == []
