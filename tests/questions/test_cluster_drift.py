"""``cluster drift`` finds what is different, names it, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from analyzer import cli
from analyzer.cluster.drift_kinds import WORDS, DriftKind
from analyzer.kubeproxy.generate import FLAGS, RulesLayout, mixed, node_name
from tests.support.captures import FIXTURES
from tests.support.clusters import GeneratedCluster
from tests.support.commands import Command
from tests.support.documents import rows as rows_of_page
from tests.support.drifts import SEEDED, node_of, write

pytest.importorskip("duckdb")

#: node, drift, ServicePort, protocol, what.
Row = tuple[str, ...]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("drift")
    (found / "dumps").mkdir()
    objects = write(found / "dumps")
    given = [str(found / "dumps"), "--objects", str(objects), "--into", str(found / "made")]
    assert cli.main(["cluster", "build", *given, "--engine", "serial"]) == 0
    return found / "made"


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[Row]:
    output = folder.parent / "drift.tsv"
    given = ["cluster", "drift", str(folder), "-o", "tsv", "--output", str(output)]
    assert cli.main(given) == 1
    return [tuple(line.split("\t")) for line in output.read_text().split("\n")[1:-1]]


@pytest.mark.alike
@pytest.mark.parametrize("at", range(len(SEEDED)), ids=lambda at: f"{at}-{SEEDED[at].drift.value}")
def test_a_difference_is_found_where_it_is(rows: list[Row], at: int) -> None:
    seeded = SEEDED[at]
    found = [row[1:] for row in rows if row[0] == node_of(at)]
    assert [row[:2] for row in found] == [(seeded.drift.value, seeded.service)]
    assert seeded.what in found[0][3]


def test_nothing_else_is_found(rows: list[Row]) -> None:
    assert {row[0] for row in rows} == {node_of(at) for at in range(len(SEEDED))}


def test_every_kind_of_difference_is_seeded_or_has_a_test_of_its_own() -> None:
    others = {DriftKind.MISSING_FAMILY, DriftKind.EXTRA_ENDPOINT}
    assert {each.drift for each in SEEDED} | others == set(DriftKind)
    assert set(WORDS) == set(DriftKind)


def test_the_page_lists_just_the_kinds_that_there_are() -> None:
    told = rows_of_page("Drift", "cluster.md")
    assert told == {each.value: WORDS[each] for each in DriftKind}


def test_without_objects_most_nodes_tell(folder: Path, command: Command) -> None:
    done = command("cluster", "drift", str(folder), "--against", "majority", "-o", "tsv")
    found = [line.split("\t") for line in done.out.split("\n")[1:-1]]
    assert done.status == 1
    stale = [row[1:3] for row in found if row[4] == "10.244.2.200:8080"]
    assert stale == [["stale-endpoint", "ns/plain:http"]]
    # Endpoints of its own differ from node to node: nobody knows which are right.
    assert {row[0] for row in found if row[2] == "ns/local:http"} == {"*"}


def build(command: Command, *dumps: tuple[str, str], objects: str = "") -> None:
    folder = command.folder / "d"
    folder.mkdir()
    for name, text in dumps:
        (folder / name).write_text(text)
    given = ["d", "--into", "made", "--engine", "serial"]
    assert (
        command("cluster", "build", *given, *(["--objects", objects] if objects else ())).status
        == 0
    )


def plain_dump(node: int, nodes: int = 4) -> str:
    items = mixed(12, nodes)
    for each in items:
        if each["kind"] == "Service":
            each["spec"].update(internalTrafficPolicy="Cluster", type="ClusterIP")
            each["spec"].pop("externalTrafficPolicy", None)
            each["spec"]["sessionAffinity"] = "None"
            each["spec"]["ports"][0].pop("nodePort", None)
            each["status"] = {"loadBalancer": {}}
    return GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(node)).dump


def test_without_any_objects_an_endpoint_that_few_have_is_extra(command: Command) -> None:
    dumps = [(f"{node_name(at)}.txt", plain_dump(at)) for at in range(4)]
    rows = dumps[3][1].split("\n")
    end = next(row for row in rows if " -j DNAT " in row).rpartition(" ")[2]
    dumps[3] = (dumps[3][0], dumps[3][1].replace(end, "10.1.2.3:8080"))
    build(command, *dumps)
    done = command("cluster", "drift", "made", "-o", "json")
    document = json.loads(done.out)
    assert document["against"] == "majority"
    assert document["drifting"] == [node_name(3)]
    codes = {each["code"] for each in document["differences"]}
    assert {"extra-endpoint", "missing-endpoint"} <= codes


def test_a_node_that_the_objects_do_not_have_has_no_extra_services(command: Command) -> None:
    items = mixed(12, 2)
    dumps = [
        GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(at)).dump for at in (0, 1)
    ]
    objects = command.file("o.json", json.dumps({"kind": "List", "items": items}))
    build(command, (f"{node_name(0)}.txt", dumps[0]), ("other.txt", dumps[1]), objects=objects)
    done = command("cluster", "drift", "made", "-o", "json")
    assert {each["code"] for each in json.loads(done.out)["differences"]} == set()
    assert "which have no such node: other" in done.err
    assert command("cluster", "drift", "made", "--strict").status == 3


def test_other_rules_of_one_of_two_nodes_are_not_judged(command: Command) -> None:
    items = mixed(12, 2)
    objects = command.file("o.json", json.dumps({"kind": "List", "items": items}))
    one, other = (
        GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(at)).dump for at in (0, 1)
    )
    end = next(row for row in one.split("\n") if " -j DNAT " in row).rpartition(" ")[2]
    host, _, port = end.rpartition(":")
    drop = f"-A FORWARD -s {host}/32 -p tcp -m tcp --sport {port} -j DROP\n-A FORWARD "
    one = one.replace("-A FORWARD ", drop, 1)
    build(command, (f"{node_name(0)}.txt", one), (f"{node_name(1)}.txt", other), objects=objects)
    found = json.loads(command("cluster", "drift", "made", "-o", "json").out)
    assert (found["differences"], len(found["not_judged"])) == ([], 1)


def test_where_the_objects_have_none_of_the_nodes_nothing_is_claimed(command: Command) -> None:
    items = mixed(12, 1)
    dump = GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(0)).dump
    objects = command.file("o.json", json.dumps({"kind": "List", "items": items}))
    build(command, ("other.example.com.txt", dump), objects=objects)
    done = command("cluster", "drift", "made")
    assert done.status == 2
    assert "--name-from" in done.err


def test_a_node_without_the_other_ip_version_is_named(command: Command) -> None:
    dumps = [(f"{node_name(at)}.txt", plain_dump(at)) for at in range(4)]
    six = (
        "# Generated by ip6tables-save v1.8.9\n*nat\n:PREROUTING ACCEPT [0:0]\n"
        ":OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n"
        ":KUBE-SVC-A - [0:0]\n:KUBE-SEP-A - [0:0]\n-A PREROUTING -j KUBE-SERVICES\n"
        '-A KUBE-SERVICES -d fd00::1/128 -p tcp -m comment --comment "ns/six cluster IP" -m tcp '
        "--dport 80 -j KUBE-SVC-A\n-A KUBE-SVC-A -j KUBE-SEP-A\n-A KUBE-SEP-A -p tcp -m tcp -j "
        "DNAT --to-destination [fd00:1::2]:80\nCOMMIT\n"
    )
    dumps += [(f"{node_name(at)}-ip6tables-save.txt", six) for at in range(3)]
    build(command, *dumps)
    done = command("cluster", "drift", "made", "-o", "tsv")
    assert done.out.split("\n")[1:-1] == [f"{node_name(3)}\tmissing-family\t\t\tIPv6"]
    text = command("cluster", "drift", "made").out
    assert text.startswith(f"1 of 4 nodes differs: {node_name(3)}.")


def test_a_cluster_of_all_kinds_of_services_does_not_drift(command: Command) -> None:
    items = mixed(12, 4)
    objects = command.file("objects.json", json.dumps({"kind": "List", "items": items}))
    dumps = []
    for at in range(4):
        cluster = GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(at))
        dumps.append((f"{node_name(at)}.txt", cluster.dump))
    build(command, *dumps, objects=objects)
    done = command("cluster", "drift", "made")
    assert (done.status, done.err) == (0, "")
    assert "No difference at 4 nodes." in done.out
    assert "Compared 48 ServicePorts, counted at each node," in done.out


def test_only_what_was_asked_for_is_told(folder: Path, command: Command) -> None:
    given = ["cluster", "drift", str(folder), "-o", "tsv"]
    done = command(*given, "--only", "stale-endpoint,foreign-endpoint")
    assert {line.split("\t")[1] for line in done.out.split("\n")[1:-1]} == {
        "stale-endpoint",
        "foreign-endpoint",
    }
    done = command(*given, "--service", "sticky")
    # What is of a node is of each Service there.
    assert {line.split("\t")[2] for line in done.out.split("\n")[1:-1]} == {"", "ns/sticky:http"}
    assert command(*given, "--only", "none").status == 2
    assert command(*given, "--only", "no-services", "--service", "sticky").status == 1
    assert command(*given, "--only", "stale-endpoint", "--service", "sticky").status == 0


def _without(text: str, prefix: str) -> str:
    return "".join(f"{line}\n" for line in text.split("\n") if not line.startswith(prefix))


WITHOUT_KUBE_PROXY: dict[str, Callable[[str], str]] = {
    "no chain of kube-proxy": lambda text: "".join(
        f"{line}\n" for line in text.split("\n") if "KUBE" not in line
    ),
    "chains without rules": lambda text: _without(text, "-A"),
    "the filter table alone": lambda _: "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n",
    "tables without chains": lambda _: "*nat\nCOMMIT\n*filter\nCOMMIT\n",
    "nft of others": lambda _: "table inet fw {\n}\n",
    "an empty table of kube-proxy": lambda _: "table ip kube-proxy {\n}\n",
    "chains of the kubelet": lambda _: (
        "*nat\n:POSTROUTING ACCEPT [0:0]\n:KUBE-MARK-MASQ - [0:0]\n:KUBE-POSTROUTING - [0:0]\n"
        "-A POSTROUTING -j KUBE-POSTROUTING\n"
        "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000\nCOMMIT\n"
    ),
}


@pytest.mark.alike(1)
@pytest.mark.parametrize("kind", WITHOUT_KUBE_PROXY)
def test_a_dump_without_rules_of_kube_proxy_is_one_difference(command: Command, kind: str) -> None:
    items = mixed(4, 3)
    dumps = [
        (
            f"{node_name(at)}.txt",
            GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(at)).dump,
        )
        for at in range(3)
    ]
    dumps[2] = (dumps[2][0], WITHOUT_KUBE_PROXY[kind](dumps[2][1]))
    objects = command.file("o.json", json.dumps({"kind": "List", "items": items}))
    build(command, *dumps, objects=objects)
    done = command("cluster", "drift", "made", "-o", "tsv")
    found = [line.split("\t")[:2] for line in done.out.split("\n")[1:-1]]
    assert (done.status, found) == (1, [[node_name(2), "no-services"]])


def test_what_tells_no_ip_version_is_not_called_extra(command: Command) -> None:
    items = mixed(12, 3)
    dumps = [
        (
            f"{node_name(at)}.txt",
            GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(at)).dump,
        )
        for at in range(3)
    ]
    dumps[2] = (dumps[2][0], _without(dumps[2][1], "-A KUBE-SERVICES"))
    objects = command.file("o.json", json.dumps({"kind": "List", "items": items}))
    build(command, *dumps, objects=objects)
    done = command("cluster", "drift", "made", "-o", "tsv")
    found = [line.split("\t")[:2] for line in done.out.split("\n")[1:-1]]
    assert [node_name(2), "missing-family"] in found
    assert "extra-service" not in {code for _, code in found}
    assert ["*", "not-judged"] in found


def test_a_service_that_few_nodes_have_is_not_said_to_be_at_every_node(
    folder: Path, command: Command
) -> None:
    words = ["cluster", "loss", str(folder), "--dead-node", "node-01"]
    document = json.loads(command(*words, "-o", "json").out)
    (former,) = (each for each in document["services"] if each["name"] == "ns/former:http")
    own = [name for each in former["at"] for name in each["nodes"]]
    assert (own, former["mean_loss"]["nodes"]) == ([node_of(10)], 1)
    lines = [line.split("\t") for line in command(*words, "-o", "tsv").out.splitlines()]
    (row,) = (line for line in lines if line[3] == "ns/former:http" and line[0] != "*")
    assert row[0] == node_of(10)


@pytest.mark.alike(1)
@pytest.mark.parametrize("is_nft", [False, True], ids=["iptables", "nftables"])
@pytest.mark.parametrize("part", [0.02, 0.3, 0.8, 0.97])
def test_what_a_cut_dump_lacks_is_not_missing(
    command: Command, part: float, *, is_nft: bool
) -> None:
    items = mixed(8, 3)
    objects = command.file("objects.json", json.dumps({"kind": "List", "items": items}))
    dumps = []
    for at in range(3):
        cluster = GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(at))
        text = cluster.nft if is_nft else cluster.dump
        dumps.append((f"{node_name(at)}.txt", text[: int(len(text) * part)] if at == 1 else text))
    build(command, *dumps, objects=objects)
    for reference in ("objects", "majority"):
        done = command("cluster", "drift", "made", "--against", reference, "-o", "json")
        document = json.loads(done.out)
        assert document["differences"] == []
        assert "incomplete-dump" in {each["code"] for each in document["diagnostics"]}
    assert command("cluster", "drift", "made", "--strict").status == 3
    done = command("cluster", "drift", "made")
    assert f"Not judged: rules missing at {node_name(1)}, whose dump is incomplete" in done.out


def test_what_a_cut_dump_shows_and_should_not_is_a_difference(command: Command) -> None:
    dumps = [(f"{node_name(at)}.txt", plain_dump(at)) for at in range(3)]
    name, text = dumps[1]
    end = next(row for row in text.split("\n") if " -j DNAT " in row).rpartition(" ")[2]
    half = text[: text.rindex("-A KUBE-SVC")].replace(end, "10.1.2.3:8080")
    dumps[1] = (name, half)
    build(command, *dumps)
    done = command("cluster", "drift", "made", "-o", "json")
    told = [(each["code"], each["what"]) for each in json.loads(done.out)["differences"]]
    assert told == [("extra-endpoint", "10.1.2.3:8080")]


def test_dumps_that_are_cut_are_no_majority(command: Command) -> None:
    dumps = [(f"{node_name(at)}.txt", plain_dump(at)) for at in range(4)]
    cut = [(name, text[: text.rindex("-A KUBE-SVC")]) for name, text in dumps[1:]]
    build(command, dumps[0], *cut)
    done = command("cluster", "drift", "made", "-o", "json")
    assert json.loads(done.out)["differences"] == []


@pytest.mark.parametrize("layout", [RulesLayout.V1_30, RulesLayout.V1_36])
def test_chains_of_endpoints_on_the_node_are_of_their_service_in_nftables_mode(
    command: Command, layout: RulesLayout
) -> None:
    """A node without such an endpoint has none, whatever most others have."""
    items = mixed(12, 3)
    dumps = [
        (f"{node_name(at)}.txt", GeneratedCluster(items, FLAGS, layout, 4, node_name(at)).nft)
        for at in range(3)
    ]
    assert len({text.count("\tchain local-") for _, text in dumps}) > 1
    objects = command.file("o.json", json.dumps({"kind": "List", "items": items}))
    build(command, *dumps, objects=objects)
    asked = ("--mode", "nftables", "--kube-proxy", layout.value, "--cluster-cidr", "10.0.0.0/9")
    done = command("cluster", "drift", "made", *asked, "-o", "json")
    assert json.loads(done.out)["differences"] == []
    assert done.status == 0


@pytest.mark.parametrize("versions", [(6,), (4, 6)])
def test_a_difference_is_of_one_ip_version(command: Command, versions: tuple[int, ...]) -> None:
    folder = FIXTURES.parent / "check" / "1.36.2-iptables-legacy" / "dual-stack"
    dumps = []
    for version, program in ((4, "iptables"), (6, "ip6tables")):
        lines = (folder / f"{program}-legacy-save.txt").read_text().splitlines(keepends=True)
        kept = [each for each in lines if version not in versions or "ds/ep-2" not in each]
        dumps.append((f"node-a1-{program}-save.txt", "".join(kept)))
    build(command, *dumps, objects=str(folder / "objects.json"))
    names = {4: "ds/ep-2", 6: "ds/ep-2 (IPv6)"}
    out = command("cluster", "drift", "made").out
    found = [line for line in out.splitlines() if line.startswith("missing-service  ")]
    wanted = [["missing-service", *names[each].split(), "node-a1"] for each in versions]
    assert [line.split() for line in found] == wanted
    told = json.loads(command("cluster", "drift", "made", "-o", "json").out)["differences"]
    families = {4: "ip", 6: "ip6"}
    assert [(each["family"], each["nodes"]) for each in told] == [
        (families[each], ["node-a1"]) for each in versions
    ]
    lines = command("cluster", "drift", "made", "-o", "tsv").out.splitlines()[1:]
    protocols = {4: "tcp", 6: "tcp6"}
    assert [each.split("\t")[3] for each in lines] == [protocols[each] for each in versions]
