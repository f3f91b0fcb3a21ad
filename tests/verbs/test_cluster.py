"""Answers about all dumps of a cluster are those of asking each dump alone."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analyzer import cli
from analyzer.arguments.cluster import EXAMPLES
from analyzer.cluster.store import Store
from analyzer.kubeproxy.generate import FLAGS, RulesLayout, mixed, node_name
from tests.support.captures import FIXTURES
from tests.support.cluster_losses import alone_of, compared
from tests.support.cluster_reading import reader, task
from tests.support.clusters import GeneratedCluster
from tests.support.commands import Command

pytest.importorskip("duckdb")
NODES = 3
SERVICES = {"iptables": 8, "nftables": 2}
DEAD = node_name(1)


@pytest.fixture(scope="module", params=["iptables", "nftables"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dumps, objects, and a store of them, in `made`."""
    found = tmp_path_factory.mktemp(request.param)
    items = mixed(SERVICES[request.param], NODES)
    (found / "dumps").mkdir()
    for number in range(NODES):
        cluster = GeneratedCluster(items, FLAGS, RulesLayout.V1_36, 4, node_name(number))
        text = cluster.dump if request.param == "iptables" else cluster.nft
        (found / "dumps" / f"{node_name(number)}.txt").write_text(text)
    (found / "objects.json").write_text(json.dumps({"kind": "List", "items": items}))
    objects = ["--objects", str(found / "objects.json"), "--into", str(found / "made")]
    given = ["cluster", "build", str(found / "dumps"), *objects, "--engine", "serial"]
    assert cli.main(given) == 0
    return found


@pytest.fixture
def made(folder: Path, command: Command) -> str:
    shutil.copytree(folder, command.folder / "c")
    return "c/made"


@pytest.mark.deep
def test_losses_are_those_of_each_node_alone(command: Command, made: str) -> None:
    living = [node_name(number) for number in range(NODES) if node_name(number) != DEAD]
    told = ("--dead-node", DEAD, "-o", "json")
    alone = {
        node: alone_of(
            command(
                "loss", f"c/dumps/{node}.txt", "--objects", "c/objects.json", "--node", node, *told
            ).out
        )
        for node in living
    }
    done = command("cluster", "loss", made, *told)
    assert json.loads(done.out)["vantage"] == living
    assert compared(done.out, alone) > NODES


@pytest.mark.deep
def test_what_is_kept_of_a_node_is_what_its_dump_shows(command: Command, made: str) -> None:
    alone = reader(Path("c/objects.json"), shares=False)
    store = Store.open(made)
    every = store.every_node()
    store.close()
    for number in range(NODES):
        name = node_name(number)
        text = Path(f"c/dumps/{name}.txt").read_text()
        digest = alone.read(task(name, text)).nodes[0].map
        assert digest == next(n.map for n in store_nodes(made) if n.node == name)
        shown = [each.at_node(name) for each in every]
        given = [f"c/dumps/{name}.txt", "--objects", "c/objects.json", "--node", name]
        services = json.loads(command("services", *given, "-o", "json").out)["services"]
        found = [(s.name.text, s.protocol, len(s.endpoints)) for s in shown if s is not None]
        assert sorted(found) == sorted(
            (s["name"], s["protocol"], len(s["endpoints"]["address"])) for s in services
        )


def store_nodes(made: str) -> Iterator[Any]:
    store = Store.open(made)
    yield from store.nodes()
    store.close()


def test_whatif_sees_from_every_node(command: Command, made: str) -> None:
    done = command("cluster", "whatif", made, "-o", "json", "--only", "node")
    document = json.loads(done.out)
    assert document["vantage"] == [node_name(number) for number in range(NODES)]
    assert {each["nodes"][0] for each in document["failures"]} == set(document["vantage"])
    one = next(each for each in document["failures"] if each["nodes"] == [DEAD])
    lost = json.loads(command("cluster", "loss", made, "--dead-node", DEAD, "-o", "json").out)
    losses = [each["worst_loss"] for each in lost["services"] if each["worst_loss"] is not None]
    worst = max(each["upper"]["value"] for each in losses)
    assert one["worst_loss"]["upper"]["value"] == worst


@pytest.mark.deep
@pytest.mark.usefixtures("made")
def test_of_a_node_that_was_not_read_nothing_is_claimed(command: Command) -> None:
    Path("c/dumps/other.txt").write_text("nothing")
    made = "again"
    given = ["c/dumps", "--objects", "c/objects.json", "--into", made, "--engine", "serial"]
    assert command("cluster", "build", *given).status == 0
    done = command("cluster", "loss", made, "--dead-node", DEAD)
    assert "Not judged: other: " in done.out
    assert "not judged, since their rules are not known: other" in done.err
    assert command("cluster", "loss", made, "--dead-node", DEAD, "--max-loss", "100%").status == 1
    assert command("cluster", "whatif", made, "--max-loss", "100%").status == 1
    assert command("cluster", "whatif", made, "--strict").status == 3


def test_a_dump_that_lacks_a_table_is_read_only_in_part(command: Command) -> None:
    capture = FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1"
    text = (capture / "iptables-legacy-save.txt").read_text()
    rows = re.sub(r"^\*filter\n.*?^COMMIT\n", "", text, flags=re.MULTILINE | re.DOTALL)
    Path("nat").mkdir()
    Path("nat/worker1.txt").write_text(rows)
    given = ["nat", "--objects", str(capture / "objects.json"), "--into", "some"]
    done = command("cluster", "build", *given, "--engine", "serial", "--strict")
    assert (done.status, "worker1 was read only in part: its dump lacks " in done.err) == (3, True)
    done = command("cluster", "loss", "some", "--dead", "10.244.0.7", "--strict")
    assert re.search(r"read only in part, since dumps lack .*: worker1\n", done.err)


@pytest.mark.usefixtures("made")
def test_a_truncated_dump_is_read_only_in_part(command: Command) -> None:
    (dump,) = Path("c/dumps").glob("node-0000.txt")
    rows = dump.read_text().splitlines(keepends=True)
    Path("cut").mkdir()
    Path("cut/node-0000.txt").write_text("".join(rows[:-3]))
    given = ["cut", "--objects", "c/objects.json", "--into", "some", "--engine", "serial"]
    done = command("cluster", "build", *given, "--strict")
    assert (done.status, "node-0000 was read only in part" in done.err) == (3, True)
    for asked in (["loss", "some", "--dead-node", DEAD], ["whatif", "some"]):
        done = command("cluster", *asked, "--strict")
        assert done.status == 3
        assert "read only in part, since dumps are truncated: node-0000\n" in done.err


@pytest.mark.deep
@pytest.mark.usefixtures("made")
def test_of_a_node_without_a_dump_nothing_is_claimed(command: Command) -> None:
    given = ["c/dumps/node-0000.txt", "--objects", "c/objects.json", "--into", "one"]
    assert command("cluster", "build", *given, "--engine", "serial").status == 0
    done = command("cluster", "loss", "one", "--dead-node", DEAD, "-o", "json")
    # Of the dead nothing needs to be known.
    without = [node_name(number) for number in range(1, NODES) if node_name(number) != DEAD]
    assert json.loads(done.out)["dumps"]["without"] == without
    assert command("cluster", "loss", "one", "--dead-node", DEAD, "--max-loss", "100%").status == 1


def test_a_threshold_that_holds_everywhere_holds(command: Command, made: str) -> None:
    given = ["cluster", "loss", made, "--dead-node", DEAD, "--max-loss"]
    assert command(*given, "100%").status == 0
    done = command(*given, "0%")
    assert done.status == 1
    assert re.search(
        r"^--max-loss 0%: [1-9]\d* ServicePorts? may lose more: ", done.out, re.MULTILINE
    )


def test_tables_tell_what_routes_there_are(command: Command, made: str) -> None:
    asked = "SELECT count(DISTINCT node), count(DISTINCT name), count(*) FROM node_routes"
    done = command("cluster", "sql", made, asked, "-o", "json")
    nodes, names, routes = json.loads(done.out)["rows"][0]
    assert nodes == NODES
    assert names in SERVICES.values()
    assert routes > nodes * names
    asked = (
        "SELECT max(abs(1 - total)) FROM (SELECT sum(upper) AS total FROM route_endpoints "
        "GROUP BY service_port, position)"
    )
    (off,) = json.loads(command("cluster", "sql", made, asked, "-o", "json").out)["rows"][0]
    assert off < 1e-12


def test_numerators_are_exact(command: Command, made: str) -> None:
    asked = "SELECT lower_numerator, lower_exponent, lower FROM distributions"
    rows = json.loads(command("cluster", "sql", made, asked, "-o", "json").out)["rows"]
    assert rows
    for numerator, exponent, value in rows:
        assert int(numerator, 16) / 2**exponent == value


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("COPY nodes TO 'x.csv'", "one SELECT"),
        ("CREATE TABLE a (b int)", "one SELECT"),
        ("SELECT * FROM read_csv('/etc/passwd')", "/etc/passwd"),
        ("SELECT * FROM read_text('c/objects.json')", "objects.json"),
        ("SELECT * FROM read_text('{made}/objects.json.gz')", "objects.json"),
        ("SELECT * FROM glob('{made}/*')", "Cannot access file"),
        ("WITH a AS (COPY (SELECT 1) TO '{made}/nodes/x') SELECT 1", "changes nothing"),
        (
            "FROM json_execute_serialized_sql(json_serialize_sql("
            "'WITH a AS (COPY (SELECT 1) TO ''{made}/nodes/x'') FROM a'))",
            "is not allowed",
        ),
        ("SELECT now() AS at", "at has a time zone"),
        ("", "one SELECT"),
    ],
)
def test_a_question_that_is_none_is_bad_usage(
    command: Command, made: str, sql: str, says: str
) -> None:
    done = command("cluster", "sql", made, sql.replace("{made}", str(Path(made).resolve())))
    assert done.status == 2
    assert says in done.err
    assert "LINE" not in done.err
    assert "Traceback" not in done.err
    assert not Path("x.csv").exists()
    assert not (Path(made) / "nodes" / "x").exists()


def test_the_tables_need_nothing_of_ours(made: str) -> None:
    import duckdb

    db = duckdb.connect()
    db.execute(f"SET file_search_path = '{Path(made).resolve()}'")
    db.execute((Path(made) / "tables.sql").read_text())
    (count,) = db.execute("SELECT count(*) FROM nodes WHERE state = 'done'").fetchall()[0]
    assert count == NODES


@pytest.mark.parametrize("verb", [["loss", "--dead-node", "a"], ["whatif"], ["sql", "SELECT 1"]])
def test_what_is_no_store_is_bad_input(command: Command, verb: list[str]) -> None:
    name, *more = verb
    done = command("cluster", name, "nowhere", *more)
    assert done.status == 2
    assert "kubeodds cluster build" in done.err


def test_without_the_engine_it_is_said_what_to_install(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    dump = str(FIXTURES / "1.36.2-iptables-legacy" / "two-node" / "iptables-legacy-save.txt")
    done = command("cluster", "build", dump, "--into", "made")
    assert done.status == 2
    assert "pip install '.[cluster]'" in done.err
    assert not Path("made").exists()


@pytest.mark.parametrize("verb", sorted(EXAMPLES))
def test_the_examples_of_the_help_do_what_they_say(command: Command, verb: str) -> None:
    folder = FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1"
    Path("dumps").mkdir()
    shutil.copy(folder / "iptables-legacy-save.txt", "dumps/worker1.txt")
    shutil.copy(folder / "objects.json", "objects.json")
    with tarfile.open("dumps.tar", "w") as archive:
        archive.add("dumps")
    built = ["cluster", "build", "dumps", "--objects", "objects.json", "--engine", "serial"]
    for number, line in enumerate(EXAMPLES[verb]):
        program, *given = shlex.split(line)
        assert program == "kubeodds"
        if verb == "build":
            # Each builds a folder of its own; other objects are another build.
            given = [
                f"{each}{number}" if each == "cluster" and at else each
                for at, each in enumerate(given)
            ]
            given += ["--engine", "serial"]
        elif not number:
            assert command(*built, "--into", "cluster").status == 0
        done = command(*given)
        assert done.status in {0, 1}, done.err
        assert done.out


def test_every_verb_has_three_examples_and_help_ends_with_them(command: Command) -> None:
    for verb, lines in EXAMPLES.items():
        done = command("cluster", verb, "--help")
        assert done.status == 0
        assert len(lines) == 3
        assert done.out.endswith("".join(f"  {line}\n" for line in lines))
        assert command("help", "cluster", verb) == done


def test_losses_need_somebody_dead(command: Command, made: str) -> None:
    done = command("cluster", "loss", made)
    assert done.status == 2
    assert f"kubeodds cluster whatif {made}" in done.err


def test_a_dump_that_shows_no_service_is_of_a_node_that_is_not_judged(command: Command) -> None:
    capture = FIXTURES / "1.36.2-iptables-legacy" / "two-node@worker1"
    whole = (capture / "iptables-legacy-save.txt").read_text()
    rows = whole.splitlines()
    (command.folder / "d").mkdir()
    cut = "\n".join(
        rows[: next(at for at, each in enumerate(rows) if each[:2] == "-A" and at > 30)]
    )
    others = "\n".join([*(each for each in rows if "default/app" not in each), ""])
    for name, text in (("worker1", whole), ("master", f"{cut}\n"), ("worker2", others)):
        (command.folder / "d" / f"{name}.txt").write_text(text)
    given = ("d", "--objects", str(capture / "objects.json"), "--into", "s", "--engine", "serial")
    done = command("cluster", "build", *given)
    assert "master shows no Services: its rules have no Service; is the dump complete?" in done.err
    asked = ("cluster", "loss", "s", "--dead", "10.244.0.7")
    done = command(*asked)
    assert "Judged at every living node whose rules are known: 2." in done.out
    assert "loses 50.0% of new flows, on every route, at worker1." in done.out
    assert "rules are not known: master" in done.err
    assert command(*asked, "--max-loss", "99%").status == 1


def test_what_one_node_loses_already_breaks_the_limits_of_all(
    folder: Path, command: Command
) -> None:
    shutil.copytree(folder / "dumps", command.folder / "c" / "dumps")
    objects = str(folder / "objects.json")
    file = command.folder / "c" / "dumps" / f"{node_name(2)}.txt"
    text = file.read_text()
    if text.startswith("table"):
        chain = "type filter hook {} priority raw; policy drop;"
        chains = [f"chain {h} {{ {chain.format(h)} }}" for h in ("prerouting", "output")]
        text += "\ntable ip x {\n" + "\n".join(chains) + "\n}\n"
    else:
        text += "*raw\n:PREROUTING DROP [0:0]\n:OUTPUT DROP [0:0]\nCOMMIT\n"
    given = ["cluster", "build", "c/dumps", "--objects", objects, "--engine", "serial"]
    kept = json.loads(limits(command, given, "before"))
    file.write_text(text)
    assert not kept["lost_now"]
    found = json.loads(limits(command, given, "after"))
    assert len(found["lost_now"]) >= found["service_ports"] > 0
    for limit in (("--min-survives", "1"), ("--max-loss", "99%")):
        done = command("cluster", "whatif", "after", "--only", "node", *limit)
        assert done.status == 1
        assert f"{limit[0]} is already broken" in done.out


def limits(command: Command, build: list[str], store: str) -> str:
    assert command(*build, "--into", store).status == 0
    done = command("cluster", "whatif", store, "--only", "node", "-o", "json")
    assert done.status == 0, done.err
    return done.out
