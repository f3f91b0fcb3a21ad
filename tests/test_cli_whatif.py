"""The command line of `whatif`: thresholds, what is not judged, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest

from analyzer import output
from analyzer.failure import whatif
from analyzer.reports.renderers import RENDERERS
from tests.support.captures import FIXTURES, items_of
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.dumps import cluster_ip, dump, two_endpoints
from tests.support.losses import OWN, TWO, service, with_services

ASKED = (DUMP, *OBJECTS, "--node", "worker1")


def document(command: Command, *arguments: str) -> Any:
    done = command("whatif", *arguments, "--format", "json")
    assert done.status in {0, 1}, done.err
    return json.loads(done.out)


# --- thresholds ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ("--max-loss 100%", 0),
        ("--max-loss 60%", 1),
        ("--max-loss 50% --only node --service default/app", 0),
        ("--max-loss 49.9% --only node --service default/app", 1),
        ("--max-loss 50% --service default/app", 1),  # pairs
        ("--max-loss 50% --service default/app --depth 1", 0),
        ("--max-loss 50% --only zone", 2),
        ("--min-survives 1", 1),
        ("--min-survives 1 --service default/app", 0),
        ("--min-survives 2 --service default/app", 1),
    ],
)
def test_thresholds(command: Command, options: str, status: int) -> None:
    for output_format in RENDERERS["whatif"]:
        done = command("whatif", *ASKED, *options.split(), "--format", output_format)
        assert done.status == status, done.err
        assert bool(done.out) is (status != 2)


def test_what_breaks_a_threshold_is_named(command: Command) -> None:
    done = command("whatif", *ASKED, "--max-loss", "60%", "--min-survives", "1")
    lines = done.out.splitlines()
    way = "from a pod to ClusterIP"
    assert lines[1:5] == [
        "--max-loss: losing the control plane may cost more, for example default/kubernetes:https "
        f"100.0% of the flows {way} 10.96.0.1:443.",
        "--max-loss: losing master may cost more, for example default/kubernetes:https 100.0% of "
        f"the flows {way} 10.96.0.1:443.",
        "--max-loss: losing master, worker1 may cost more, for example default/app 100.0% of the "
        f"flows {way} 10.96.18.52:80.",
        "--min-survives 1: 1 ServicePort may not survive 1 node: default/kubernetes:https.",
    ]
    broken = document(command, *ASKED, "--max-loss", "60%", "--min-survives", "1")["broken"]
    assert [each["threshold"] for each in broken] == ["max-loss"] * 3 + ["min-survives"]


def test_a_node_that_alone_breaks_a_threshold_is_named_once(command: Command) -> None:
    asked = "--service", "default/kubernetes", "--max-loss", "60%"
    lines = command("whatif", *ASKED, *asked).out.splitlines()
    assert len([each for each in lines if "losing master may cost more" in each]) == 1
    # Of pairs alone it is one of a pair that does.
    only = command("whatif", *ASKED, *asked, "--only", "set")
    assert (only.status, "losing master may cost more" in only.out) == (1, True)


def test_what_was_not_judged_breaks_thresholds(command: Command) -> None:
    given = with_services(command, OWN, service("ns/gone"))
    asked = command.file("dump.txt", TWO), *given
    assert command("whatif", *asked).status == 0
    for threshold in (["--max-loss", "100%"], ["--min-survives", "1"]):
        done = command("whatif", *asked, *threshold)
        assert done.status == 1
        assert "Not judged: 1 ServicePort of the objects without a rule in the dump" in done.out
        assert "Not everything was judged: that breaks the thresholds." in done.out
        done = command("whatif", *asked, *threshold, "--format", "prometheus")
        assert "\nkubeodds_whatif_ok 0\n" in done.out
        done = command("whatif", *asked, *threshold, "--format", "junit")
        assert ET.fromstring(done.out).findall(".//failure")  # noqa: S314  # our own
    done = command("whatif", *asked, "--format", "junit")
    assert len(ET.fromstring(done.out).findall(".//skipped")) == 1  # noqa: S314  # our own
    whole = with_services(command, OWN)
    assert command("whatif", asked[0], *whole, "--min-survives", "1").status == 0


def test_a_cut_dump_breaks_thresholds(command: Command) -> None:
    text = TWO[: TWO.index("COMMIT")]
    asked = command.file("dump.txt", text), *with_services(command, OWN)
    assert command("whatif", *asked, "--max-loss", "100%").status == 1
    assert document(command, *asked)["cut"] is True


def test_an_endpoint_without_a_node_is_survived_by_nobody_for_certain(command: Command) -> None:
    text = dump(*two_endpoints("10.0.0.1:80", "10.9.9.9:80"))
    asked = command.file("dump.txt", text), *with_services(command)
    done = command("whatif", *asked)
    assert "Node unknown for 1 endpoint: losses are ranges." in done.out
    assert command("whatif", *asked, "--min-survives", "1").status == 1
    assert command("whatif", *asked, "--max-loss", "99%", "--only", "node").status == 1
    found = document(command, *asked)
    assert found["uncertain_endpoints"] == ["10.9.9.9:80"]
    (told,) = found["services"]
    assert (told["survives"], told["survives_at_most"], told["smallest_sets"]) == (0, None, [])


def test_a_service_without_endpoints_breaks_nothing(command: Command) -> None:
    refused = TWO.replace(
        "- [0:0]\nCOMMIT",
        '- [0:0]\n-A KUBE-SERVICES -d 10.96.9.9/32 -p tcp -m comment --comment "ns/empty:http has '
        'no endpoints" -m tcp --dport 80 -j REJECT\nCOMMIT',
    )
    given = with_services(command, OWN, service("ns/empty"))
    asked = command.file("dump.txt", refused), *given
    done = command("whatif", *asked, "--min-survives", "1")
    assert done.status == 0
    assert "Without endpoints, whatever fails: ns/empty:http." in done.out
    assert document(command, *asked)["no_endpoints"] == ["ns/empty:http"]


ZONED: Final = FIXTURES / "1.24.3-iptables-legacy" / "policies" / "objects.json.gz"


def _zoned(service: str) -> Iterator[Any]:
    """Yield the nodes, and one Service of the twenty: the others would be predicted each time."""
    namespace, _, name = service.partition(":")[0].partition("/")
    label = "kubernetes.io/service-name"
    for item in items_of(ZONED):
        about = item["metadata"]
        of = about.get("labels", {}).get(label, about["name"])
        if item["kind"] == "Node" or (about["namespace"], of) == (namespace, name):
            yield item


@pytest.mark.parametrize(
    ("service", "nodes", "zones"), [("pol/two-ports:http", 2, 1), ("pol/int-local-elsewhere", 1, 0)]
)
def test_a_zone_of_several_nodes_is_one_failure(
    command: Command, service: str, nodes: int, zones: int
) -> None:
    file = command.file("objects.json", json.dumps({"items": [*_zoned(service)]}))
    asked = "--from-objects", file, "--service", service, "--depth", "1"
    (told,) = document(command, *asked)["services"]
    assert (told["survives"], told["zones"]["survives"]) == (nodes, zones)
    limits = (("--min-survives", nodes), ("--min-survives-zones", zones))
    every = [(least, *limit) for least in (1, 2) for limit in limits]
    for form, (least, option, survived) in zip(RENDERERS["whatif"], cycle(every), strict=False):
        done = command("whatif", *asked, option, str(least), "-o", form)
        assert done.status == (least > survived), (option, form)
    for least, option, survived in every:
        broken = document(command, *asked, option, str(least))["broken"]
        assert [each["threshold"] for each in broken] == [option[2:]] * (least > survived)
    done = command("whatif", *asked, "--min-survives-zones", "2")
    assert f"--min-survives-zones 2: 1 ServicePort may not survive 2 zones: {service}." in done.out


# --- what is refused -------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--only nodes", "'nodes' is not one of node, zone, control-plane, set"),
        ("--depth 0", "'0' is not a positive integer"),
        ("--top -1", "--top"),
        (
            "--only zone --min-survives 1",
            "--min-survives counts nodes, which --only zone leaves out",
        ),
        ("--min-survives-zones 1", "--min-survives-zones: no zone is known"),
        ("--min-survives-zones 0", "'0' is not a positive integer"),
        ("--min-survives x", "'x' is not a positive integer"),
        ("--max-loss 101%", "is not between 0% and 100%"),
        ("--control-plane worker9", "no such node is known"),
    ],
)
def test_bad_usage(command: Command, options: str, message: str) -> None:
    done = command("whatif", *ASKED, *options.split())
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_without_anything_that_says_where_endpoints_are_it_is_refused(command: Command) -> None:
    done = command("whatif", DUMP)
    assert (done.status, done.out) == (2, "")
    assert "it is not known which endpoints are on which node; pass --objects" in done.err


def test_node_of_and_pod_cidrs_are_enough(command: Command) -> None:
    networks = ["--node-of", "10.244.0.0/24=master,10.244.1.0/24=worker1"]
    done = command("whatif", DUMP, *networks, "--service", "default/app")
    assert done.status == 0
    assert done.out.startswith("default/app is 2 nodes from total loss (master, worker1); losing ")
    nodes = [
        {"kind": "Node", "metadata": {"name": f"n{n}"}, "spec": {"podCIDR": f"10.244.{n}.0/24"}}
        for n in (0, 1)
    ]
    objects = command.file("nodes.json", json.dumps({"items": nodes}))
    asked = DUMP, "--objects", objects, "--service", "default/app"
    done = command("whatif", *asked, "-v")
    assert done.status == 0
    assert "assumed to be on the node whose podCIDR contains them" in done.err
    codes = [each["code"] for each in document(command, *asked)["diagnostics"]]
    assert "node-by-pod-cidr" in codes


# --- names, sorting, interrupts ----------------------------------------------------

HOSTILE = 'n\x1b[31m"<&>=\\\t,'


def test_hostile_names_break_no_format(command: Command) -> None:
    name = '=ns/\x1b]0;a:<&\\"'
    text = dump(
        *two_endpoints(),
        cluster_ip("NAME", "10.96.0.2", chain="KUBE-SVC-B"),
        "-A KUBE-SVC-B -j KUBE-SEP-1",
    ).replace("NAME", name.replace("\\", "\\\\").replace('"', '\\"'))
    pods = [
        {"kind": "Pod", "spec": {"nodeName": HOSTILE}, "status": {"podIP": f"10.0.0.{n}"}}
        for n in (1, 2)
    ]
    objects = command.file("pods.json", json.dumps({"items": pods}))
    asked = command.file("dump.txt", text), "--objects", objects
    shown = {f: command("whatif", *asked, "--format", f).out for f in RENDERERS["whatif"]}
    for text in shown.values():
        assert text
        assert "\x1b" not in text
    assert json.loads(shown["json"])["failures"][0]["nodes"] == [HOSTILE]
    cases = ET.fromstring(shown["junit"]).findall(".//testcase")  # noqa: S314  # our own
    assert any('"<&>=\\' in each.attrib["name"] for each in cases)
    lines = shown["tsv"].splitlines()
    assert {line.count("\t") for line in lines} == {16}
    assert not any(cell.startswith("=") for line in lines for cell in line.split("\t"))
    for line in shown["prometheus"].splitlines():
        assert line.startswith("# ") or line.rpartition(" ")[2].replace(".", "").isdigit()
    assert '\\"<&>=\\\\' in shown["prometheus"]


def four_services() -> str:
    """Return a dump of one Service on n3 alone, and three on n1 and n2."""
    text = dump(
        *two_endpoints("10.0.0.1:80", "10.0.0.2:80"),
        cluster_ip("ns/z:http", "10.96.0.9", chain="KUBE-SVC-Z"),
        "-A KUBE-SVC-Z -j KUBE-SEP-Z",
        "-A KUBE-SEP-Z -p tcp -m tcp -j DNAT --to-destination 10.0.0.3:80",
    )
    more = [
        line.replace("ns/a:", f"ns/{name}:").replace("10.96.0.1/32", f"10.96.0.{number}/32")
        for number, name in ((2, "b"), (3, "c"))
        for line in text.splitlines(keepends=True)
        if line.startswith("-A KUBE-SERVICES") and "ns/a:" in line
    ]
    return text.replace("COMMIT\n", "".join([*more, "COMMIT\n"]), 1)


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("loss", ["n3", "n1", "n2"]),
        ("mean", ["n1", "n2", "n3"]),
        ("name", ["n1", "n2", "n3"]),
    ],
)
def test_failures_come_in_the_order_that_is_asked_for(
    command: Command, sort: str, first: list[str]
) -> None:
    asked = command.file("dump.txt", four_services()), *with_services(command)
    done = command("whatif", *asked, "--sort", sort, "--only", "node", "--all")
    _, failures, services, *_ = done.out.split("\n\n")
    assert [line.split()[1] for line in failures.splitlines()[1:]] == first
    names = [line.split()[0] for line in services.splitlines()[1:]]
    by_name = ["ns/a:http", "ns/b:http", "ns/c:http", "ns/z:http"]
    assert names == (by_name if sort == "name" else [by_name[-1], *by_name[:-1]])


def test_top_and_all_say_how_much_is_shown(command: Command) -> None:
    asked = command.file("dump.txt", four_services()), *with_services(command)
    done = command("whatif", *asked, "--top", "1")
    assert "\nThe worst: 1 of 3 nodes, 1 of 3 sets of 2 nodes. More: --all, --top N.\n" in done.out
    done = command("whatif", *asked, "--all", "--top", "9")
    assert "The worst" not in done.out
    found = document(command, *asked, "--top", "2")
    assert [each["kind"] for each in found["failures"]] == ["node"] * 3 + ["set"] * 2


def test_an_interrupt_prints_what_is_known(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(whatif, "worst_pairs", interrupt)
    done = command("whatif", *ASKED, "--max-loss", "100%")
    assert done.status == output.INTERRUPTED
    assert "Interrupted: not all sets of several nodes were judged." in done.out
    assert "\nnode master" in done.out
    assert "that breaks the thresholds" in done.out
    done = command("whatif", *ASKED, "--format", "json")
    assert done.status == output.INTERRUPTED
    assert json.loads(done.out)["interrupted"] is True
