"""Pages in a real browser without a network: numbers, check-boxes, hostile names, access."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from release.browser import Browser
from tests.pages.conftest import Write
from tests.support.answers import Answers
from tests.support.captures import FIXTURES, ROOT
from tests.support.pages.commands import SMALL, asked, given

pytestmark = pytest.mark.packages

CAPTURES = sorted(path.parent for path in FIXTURES.glob("*/*/objects.json"))
captures = pytest.mark.parametrize(
    "capture", CAPTURES, ids=lambda each: f"{each.parent.name}/{each.name}"
)
_ROWS = """\
return [...document.querySelectorAll('#losses tbody tr[data-service]')].map((row) => ({
  name: row.dataset.service, protocol: row.dataset.protocol, state: row.dataset.state,
  cells: [...row.cells].map((cell) => cell.textContent)}));
"""


def nodes_of(capture: Path) -> list[str]:
    """Return the nodes of a capture's objects that carry any endpoint."""
    items = json.loads((capture / "objects.json").read_text(encoding="utf-8"))["items"]
    ends = [end for each in items for end in each.get("endpoints") or ()]
    return sorted({end["nodeName"] for end in ends if end.get("nodeName")})


def check_rows(found: Sequence[Any], document: Any) -> None:
    """Hold the rows of a page against the document with the same dead."""
    of_page = {(row["name"], row["protocol"]): row for row in found}
    services = {(each["name"], each["protocol"]): each for each in document["services"]}
    assert of_page.keys() == services.keys()
    for key, service in services.items():
        row, worst = of_page[key], service["worst_loss"]
        assert row["state"] == service["state"], key
        dead = sum(end["dead"] is True for end in service["endpoints"])
        number = len(service["endpoints"])
        assert row["cells"][2] == (f"{dead:,} of {number:,}" if number else "")
        lower, upper = (worst[end]["value"] if worst else 0.0 for end in ("lower", "upper"))
        told = re.findall(r"[<>]?[\d.]+", row["cells"][4])
        for value, text in zip((lower, upper), (told[0], told[-1]), strict=True):
            assert abs(float(text.strip("<>")) / 100 - value) < 0.0005 + 1e-9, (key, text)


@captures
def test_a_page_of_loss_has_the_numbers_of_the_json_and_recomputes_them(
    capture: Path, write: Write, shown: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = nodes_of(capture)
    if not nodes:
        pytest.skip("no endpoint is on a known node")
    words = given(capture)
    page = write("loss", *words, "--dead-node", nodes[0])
    shown.open(page)
    check_rows(shown.run(_ROWS), asked(capsys, "loss", *words, "--dead-node", nodes[0]))
    for died in ([nodes[-1]], nodes):
        mark(shown, died)
        dead = [word for name in died for word in ("--dead-node", name)]
        check_rows(shown.run(_ROWS), asked(capsys, "loss", *words, *dead))
    assert shown.complaints() == []
    assert shown.requests() == []


def mark(shown: Browser, names: Sequence[str]) -> None:
    """Click check-boxes until just these nodes are marked dead."""
    shown.run(
        """
        for (const box of document.querySelectorAll('input[data-kind=node]')) {
          const wanted = arguments[0].includes(box.parentElement.textContent);
          if (box.checked !== wanted) box.click();
        }""",
        list(names),
    )
    shown.drawn()


def test_a_page_of_whatif_says_of_each_node_what_the_json_says(
    write: Write, shown: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    words = given(SMALL)
    shown.open(write("whatif", *words))
    document = asked(capsys, "whatif", *words)
    singles = [each for each in document["failures"] if each["kind"] == "node"]
    assert singles
    for failure in singles:
        mark(shown, failure["nodes"])
        rows = shown.run(_ROWS)
        worst = next(row for row in rows if row["name"] == failure["worst"])
        assert worst["cells"][4] == f"{100 * failure['worst_loss']['upper']['value']:.1f}%"
        silenced = {row["name"] for row in rows if row["state"] == "silenced"}
        assert silenced == set(failure["silenced"])
    assert shown.complaints() == []


def test_a_page_about_every_node_says_what_loss_says_there(
    write: Write, shown: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = str((SMALL / "objects.json").relative_to(ROOT))
    words = ["--from-objects", objects, "--seed", "1"]
    for verb, dead in (("whatif", []), ("loss", ["--dead-node", "master"])):
        shown.open(write(verb, *words, *dead))
        for died in (["worker1"], ["master"], ["master", "worker1"]):
            mark(shown, died)
            named = [word for name in died for word in ("--dead-node", name)]
            wanted = asked(capsys, "loss", *words, *named, "--count", "dead")
            found = {(row["name"], row["protocol"]): row for row in shown.run(_ROWS)}
            for service in wanted["services"]:
                row = found[service["name"], service["protocol"]]
                share = service["worst_loss"]["upper"]["value"]
                assert row["cells"][4] == f"{100 * share:.1f}%"
        assert shown.complaints() == []


def test_several_nodes_are_each_asked_while_they_live(
    write: Write, shown: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    other = FIXTURES / "1.36.2-iptables-legacy" / "two-node"
    dumps = [given(each)[0] for each in (other, SMALL)]
    words = [*dumps, "--objects", given(SMALL)[2], "--node", "master,worker1"]
    shown.open(write("loss", *words, "--dead", "10.244.0.7"))
    told = asked(capsys, "loss", *words, "--dead", "10.244.0.7")
    found = {(row["name"], row["protocol"]): row for row in shown.run(_ROWS)}
    for service in told["services"]:
        row = found[service["name"], service["protocol"]]
        assert row["cells"][4] == f"{100 * service['worst_loss']['upper']['value']:.1f}%"
    assert shown.complaints() == []


_VERDICT = "return document.querySelector('.verdict').textContent"


def test_a_page_says_when_the_node_that_is_asked_is_marked_dead(
    write: Write, shown: Browser
) -> None:
    shown.open(write("loss", *given(SMALL), "--dead-node", "master"))
    assert "it sends no flows" not in shown.run(_VERDICT)
    mark(shown, ["worker1"])
    assert "This dump is from worker1, which is marked dead" in shown.run(_VERDICT)


def test_a_page_of_a_dump_that_is_cut_off_is_no_all_clear(
    write: Write, shown: Browser, tmp_path: Path
) -> None:
    dump, *rest = given(SMALL)
    text = (ROOT / dump).read_text(encoding="utf-8")
    cut = tmp_path / "cut.txt"
    cut.write_text(text[: text.index("-A KUBE-SERVICES") + 300], encoding="utf-8")
    shown.open(write("loss", str(cut), *rest, "--dead-node", "master"))
    for died in ([], ["master"], ["master", "worker1"]):
        mark(shown, died)
        assert "Some ServicePorts are not judged" in shown.run(_VERDICT)
    assert "cut.txt" in shown.run("return document.querySelector('.warnings').textContent")


HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=document.title='owned'>",
    "\u202eevil\u202d\x1b[31m\x07",
    "=HYPERLINK(1)",
    "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}",
    "__proto__",
)


@pytest.fixture
def hostile(tmp_path: Path) -> list[str]:
    """A dump and objects whose names do harm where they are not taken for text."""
    dump, _, objects, *_ = given(SMALL)
    text = (ROOT / dump).read_text(encoding="utf-8")
    names = (ROOT / objects).read_text(encoding="utf-8")
    text = text.replace("default/app", f"default/{HOSTILE[0].replace(' ', '')}")
    text = text.replace("kube-system/kube-dns", f"kube-system/{HOSTILE[1].replace(' ', '/')}")
    items = json.loads(names)
    encoded = json.dumps(items)
    for old, new in (("worker1", HOSTILE[0] + HOSTILE[2]), ("master", HOSTILE[1] + HOSTILE[4])):
        encoded = encoded.replace(f'"{old}"', json.dumps(new))
    (tmp_path / "dump.txt").write_text(text, encoding="utf-8")
    (tmp_path / "objects.json").write_text(encoded, encoding="utf-8")
    return [str(tmp_path / "dump.txt"), "--objects", str(tmp_path / "objects.json")]


@pytest.mark.parametrize("verb", ["loss", "whatif", "tree", "timeline"])
def test_hostile_names_are_inert(
    verb: str, hostile: list[str], write: Write, shown: Browser
) -> None:
    dead = [] if verb == "whatif" else ["--dead-node", HOSTILE[1] + HOSTILE[4]]
    dead += ["--frozen"] if verb == "timeline" else ["*"] if verb == "tree" else []
    shown.open(write(verb, *hostile, *dead))
    shown.run("document.querySelectorAll('button.open').forEach((each) => each.click())")
    shown.run("document.querySelectorAll('input[type=checkbox]').forEach((each) => each.click())")
    shown.drawn()
    assert shown.run("return document.title").endswith(" - kubeodds")
    assert shown.run("return document.querySelectorAll('img,iframe,a[href]').length") == 0
    assert shown.run("return document.scripts.length") <= 2
    text = shown.run("return document.body.innerText")
    assert not set("\x1b\x07\u202e\u202d") & set(text)
    assert "<img" in text
    assert shown.complaints() == []
    assert shown.requests() == []


def test_a_table_that_is_copied_has_no_formula(write: Write, shown: Browser) -> None:
    shown.open(write("loss", *given(SMALL), "--dead-node", "master"))
    copied = shown.run("return kubeodds.tsv([['=1+1', '@a', 'b\\tc'], ['-', 'x', '+2']])")
    assert copied == "'=1+1\t'@a\tb c\n'-\tx\t'+2\n"


def test_tables_sort_and_filter(write: Write, shown: Browser) -> None:
    shown.open(write("loss", *given(SMALL), "--dead-node", "master"))
    head = "document.querySelectorAll('#losses th button')"
    shown.run(f"{head}[4].click()")
    losses = [float(row["cells"][4].rstrip("%")) for row in shown.run(_ROWS)]
    assert losses == sorted(losses)
    shown.run(f"{head}[4].click()")
    assert [float(r["cells"][4].rstrip("%")) for r in shown.run(_ROWS)] == losses[::-1]
    shown.run(
        """
        const field = document.querySelector('#explorer .bar input');
        field.value = 'KUBE-DNS'; field.dispatchEvent(new Event('input'));"""
    )
    names = {row["name"] for row in shown.run(_ROWS)}
    assert names
    assert all("kube-dns" in name for name in names)


def test_the_heat_map_says_in_words_what_a_cell_shows(write: Write, shown: Browser) -> None:
    shown.open(write("whatif", *given(SMALL)))
    told = shown.run(
        """
        const canvas = document.querySelector('canvas');
        canvas.focus();
        for (const key of ['ArrowDown', 'ArrowUp', 'ArrowRight', 'ArrowLeft'])
          canvas.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
        return document.getElementById('heat-cell').textContent;"""
    )
    assert re.search(r"^\S+ \(\w+\): with \w+ dead, loses [\d.]+% of new flows; \d of \d ", told)
    shown.run(
        """document.querySelector('canvas').dispatchEvent(
             new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));"""
    )
    assert shown.run("return document.querySelectorAll('input:checked').length") == 1


def test_on_a_telephone_the_losses_are_seen_without_scrolling(
    write: Write, window: Browser
) -> None:
    window.size(360, 740)
    window.open(write("loss", *given(SMALL), "--dead-node", "master"))
    right, told = window.run(
        """
        const cell = document.querySelector('#losses tbody tr').cells[4];
        return [cell.getBoundingClientRect().right, cell.textContent];"""
    )
    assert told == "100.0%"
    assert 0 < right <= 360


def test_on_a_telephone_letters_of_a_chart_can_be_read(write: Write, window: Browser) -> None:
    window.size(360, 740)
    words = [*given(SMALL), "--dead-node", "master", "--api-back-after", "20m"]
    window.open(write("timeline", *words))
    heights = window.run(
        "return [...document.querySelectorAll('.chart text')]"
        ".map((text) => text.getBoundingClientRect().height)"
    )
    assert min(heights) >= 8


def test_the_page_of_diff_begins_with_the_verdict(write: Write, shown: Browser) -> None:
    other = FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt"
    for assumed in ([], ["--assume-nothing"]):
        dump, *rest = given(SMALL)
        shown.open(write("diff", dump, str(other.relative_to(ROOT)), *rest, *assumed))
        first = shown.run("return document.querySelector('.head p').textContent")
        assert first.startswith(("No Service changes", "No definite change"))
        said = shown.run("return document.querySelector('main').innerText")
        assert said.count(first) == 1


def test_on_paper_links_and_buttons_are_words(write: Write, window: Browser) -> None:
    window.size(800, 1100, paper=True)
    window.open(write("loss", *given(SMALL), "--dead-node", "master"))
    styles = window.run(
        """
        const style = getComputedStyle(document.querySelector('button.open'));
        const row = document.querySelector('#losses tbody tr');
        const tops = [...row.cells].map((cell) => {
          const range = document.createRange();
          range.selectNodeContents(cell);
          return range.getBoundingClientRect().top;
        });
        return [style.textDecorationLine, Math.max(...tops) - Math.min(...tops)];"""
    )
    assert styles[0] == "none"
    assert styles[1] <= 2


_WITHOUT_SCRIPTS = re.compile(r"<script>.*?</script>", re.DOTALL)


def test_without_scripts_a_page_says_what_the_text_says(write: Write, shown: Browser) -> None:
    page = write("loss", *given(SMALL), "--dead-node", "master")
    text = page.read_text(encoding="utf-8")
    page.write_text(_WITHOUT_SCRIPTS.sub("", text), encoding="utf-8")
    shown.driver.get(page.as_uri())
    told = shown.run("return document.body.innerText")
    for words in ("Total loss: default/kubernetes:https.", "10.244.0.7:8080", "50.0%", "What now"):
        assert words in told
    assert shown.complaints() == []


#: A command for each kind of page.
COMMANDS = {
    "loss": "loss {given} --dead-node master",
    "loss at every node": "loss --from-objects {objects} --seed 1 --dead-node master",
    "whatif": "whatif {given}",
    "whatif at every node": "whatif --from-objects {objects} --seed 1",
    "timeline": "timeline {given} --dead-node master --api-back-after 20m",
    "tree": "tree {given} kube-dns --dead-node master",
    "trace": "trace {given} --from pod --to kube-dns:dns --protocol udp --dead-node master",
    "diff": "diff {dump} {other} --objects {objects} --node worker1",
    "lab": "lab judge {lab}",
    "cluster loss": "cluster loss {store} --dead-node node-01",
    "cluster whatif": "cluster whatif {store} --only node",
    "cluster drift": "cluster drift {store}",
}


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest, tmp_path: Path, store: str) -> list[str]:
    """A command that prints a page."""
    words = given(SMALL)
    other = FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt"
    lab = tmp_path / "lab.json"
    lab.write_text(Answers().json("lab run"), encoding="utf-8")
    told = {
        "given": " ".join(words),
        "dump": words[0],
        "objects": words[2],
        "other": str(other.relative_to(ROOT)),
        "lab": str(lab),
        "store": store,
    }
    return COMMANDS[request.param].format(**told).split()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(
    command: list[str], dark: bool, write: Write, window: Browser, built: Path
) -> None:
    window.size(1280, 900, dark=dark)
    window.open(write(*command))
    window.run((built / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    found, passed = window.driver.execute_async_script(
        "const done = arguments[0]; axe.run().then((f) => done([f.violations, f.passes.length]));"
    )
    told = [(each["id"], each["impact"], [n["html"] for n in each["nodes"]]) for each in found]
    assert told == []
    assert passed > 10


@pytest.mark.parametrize(("width", "height"), [(360, 740), (1280, 900), (2560, 1300)])
def test_a_page_is_as_wide_as_the_window_and_says_nothing_to_the_console(
    command: list[str], width: int, height: int, write: Write, window: Browser
) -> None:
    window.size(width, height)
    window.open(write(*command))
    assert window.run("return document.documentElement.scrollWidth") <= width
    assert window.complaints() == []
    assert window.requests() == []


def test_a_page_is_printed_without_what_paper_cannot_do(
    command: list[str], write: Write, window: Browser
) -> None:
    window.size(800, 1100, dark=True, paper=True)
    window.open(write(*command))
    shown = "[...document.querySelectorAll(arguments[0])].filter((e) => e.offsetParent).length"
    assert window.run(f"return {shown}", "button.copy, fieldset, input") == 0
    assert window.run("return document.documentElement.scrollWidth") <= 800
    assert window.run("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    assert window.complaints() == []
