"""Files that go with ``watch``: alerts, a dashboard and manifests use what is written."""

from __future__ import annotations

import json
import re
import subprocess  # noqa: TID251  # as a service manager runs it
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from analyzer.arguments.watch import FILES
from analyzer.verbs.watch import file_of
from tests.support.captures import ROOT
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.watches import looked


@pytest.fixture(scope="module")
def every_metric(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Each metric that a watch can write, with the names of its labels."""
    folder = tmp_path_factory.mktemp("metrics")
    text = Path(DUMP).read_text()
    end = re.findall(r"--to-destination (10\.\S+)", text)[0]
    (folder / "dump.txt").write_text(text.replace(end, "10.9.9.9:99"))
    (folder / "dead").write_text("node master\n")
    into = folder / "page.prom"
    words = [
        "--rules",
        str(folder / "dump.txt"),
        *OBJECTS,
        "--node",
        "worker1",
        "--into",
        str(into),
    ]
    process = subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-m", "analyzer", "watch", *words, "--dead-file", str(folder / "dead")],
        cwd=ROOT,
    )
    found = looked(into, "judged", 1)
    process.terminate()
    assert process.wait(20) == 0
    return {
        name: {key for labels in each.samples for key, _ in labels} for name, each in found.items()
    }


#: What Prometheus adds, and what node exporters and scrapes do.
ADDED = {"instance", "job"}


def _check(expression: str, known: dict[str, set[str]]) -> None:
    names = set(re.findall(r"\bkubeodds_\w+", expression))
    assert names, expression
    assert names <= known.keys(), expression
    labels = {key for name in names for key in known[name]} | ADDED
    inside = re.findall(r"\{([^{}]*)\}", expression)
    used = {key for each in inside for key in re.findall(r"(\w+)\s*[=!]~?", each)}
    groups = re.findall(r"\b(?:by|on|without|ignoring)\s*\(([^()]*)\)", expression)
    used |= {key.strip() for each in groups for key in each.split(",")}
    assert used <= labels, expression
    assert expression.count("(") == expression.count(")"), expression


def test_alerts_ask_for_what_is_written(every_metric: dict[str, set[str]]) -> None:
    yaml = pytest.importorskip("yaml")
    (group,) = yaml.safe_load(file_of("alerts"))["groups"]
    assert len(group["rules"]) > 5
    for rule in group["rules"]:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        _check(rule["expr"], every_metric)
        names = re.findall(r"kubeodds_\w+", rule["expr"])
        labels = set.union(*(every_metric[name] for name in names)) | ADDED
        told = re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"]))
        assert set(told) <= labels


def test_an_alert_of_a_loss_says_that_it_is_of_one_route() -> None:
    """The metric is the loss on the worst route: other routes may lose nothing."""
    alerts = re.split(r"- alert: ", file_of("alerts"))[1:]
    of_loss = [each for each in alerts if re.search(r"expr:.*_loss_(lower|upper)_ratio", each)]
    assert len(of_loss) == 4
    for each in of_loss:
        (summary,) = re.findall(r"summary: (.*)", each)
        assert " route" in summary


def test_the_dashboard_asks_for_what_is_written(every_metric: dict[str, set[str]]) -> None:
    found = json.loads(file_of("dashboard"))
    expressions = [target["expr"] for panel in found["panels"] for target in panel["targets"]]
    assert len(expressions) > 10
    for panel in found["panels"]:
        for target in panel["targets"]:
            _check(target["expr"].replace('"$instance"', '"a"'), every_metric)
            names = re.findall(r"kubeodds_\w+", target["expr"])
            labels = set.union(*(every_metric[name] for name in names)) | ADDED
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels
    places = [each["gridPos"] for each in found["panels"]]
    assert all(each["x"] + each["w"] <= 24 for each in places)
    assert len({each["id"] for each in found["panels"]}) == len(found["panels"])


def test_every_metric_is_in_the_docs(every_metric: dict[str, set[str]]) -> None:
    text = (ROOT / "docs" / "watch.md").read_text()
    told = dict(re.findall(r"^\| `(kubeodds_\w+)` \|([^|]*)\|", text, re.MULTILINE))
    assert {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in told.items()} == (
        every_metric
    )


@pytest.mark.parametrize("name", FILES)
def test_what_goes_with_it_is_printed_and_asks_for_options_that_there_are(
    command: Command, name: str
) -> None:
    done = command("watch", "--print", name)
    assert done.status == 0
    words: list[str] = []
    if name == "daemonset":
        yaml = pytest.importorskip("yaml")
        spec = yaml.safe_load(done.out)["spec"]["template"]["spec"]
        words = spec["containers"][0]["args"]
        mounts = {each["name"] for each in spec["containers"][0]["volumeMounts"]}
        assert mounts == {each["name"] for each in spec["volumes"]}
    elif name == "npd":
        rule = json.loads(done.out)["rules"][0]
        words = rule["args"]
        assert all(before != "--into" for before, _ in pairwise(words))
    elif name == "service":
        line = re.search(r"^ExecStart=\S+ (.*)$", done.out, re.MULTILINE)
        assert line is not None
        words = line[1].split()
        # /run as a whole has the sockets of the container runtime.
        paths = re.findall(r"^ReadWritePaths=(.*)$", done.out, re.MULTILINE)
        assert paths == ["/var/lib/node_exporter/textfile_collector -/run/xtables.lock"]
    if words:
        from analyzer.arguments.command_line import parse as parse_words

        assert parse_words(words).verb == "watch"
