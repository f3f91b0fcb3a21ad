"""`anonymise` as a user meets it: the answers stay, and the names go."""

from __future__ import annotations

import gzip
import json
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from analyzer.kubeproxy.generate import RulesLayout
from tests.support.anonymised import (
    ALWAYS_THERE,
    InFolder,
    Shown,
    Translation,
    answers_are_the_same,
    codes,
    held_in,
    of_every_cluster,
    originals,
    plain,
    shown,
    unpacked,
    words_of,
)
from tests.support.archives import packed
from tests.support.captures import FIXTURES, ROOT, items_of, text_of
from tests.support.clusters import clusters
from tests.support.commands import Command
from tests.support.documents import schema
from tests.support.effort import PROFILE, examples
from tests.support.noise import NOISE
from tests.support.pod_networks import NODES

SOAK = PROFILE == "soak"
QUICK = (
    "1.14.0-iptables-legacy/two-node",
    "1.36.2-iptables-nft/seed-dns",
    "1.36.2-nftables/two-node@worker1",
)
CASES = sorted(f"{each.parent.name}/{each.name}" for each in FIXTURES.glob("*/*") if each.is_dir())
every_capture = pytest.mark.parametrize("case", CASES if SOAK else QUICK)


def files_of(case: str) -> tuple[list[Path], Path, str]:
    """Return dumps and objects of a capture, and the node that it is of."""
    folder = FIXTURES / case
    dumps = [*folder.glob("*save.txt*"), *folder.glob("nft-list-ruleset.*")]
    (objects,) = folder.glob("objects.json*")
    return sorted(dumps), objects, json.loads((folder / "run.json").read_text())["node"]


@every_capture
def test_every_verb_answers_as_before(command: Command, case: str) -> None:
    dumps, objects, node = files_of(case)
    given = shown(command, [str(dumps[0])], str(objects))
    dead = [each["metadata"]["name"] for each in items_of(objects) if each["kind"] == "Node"]
    answers_are_the_same(command, given, "services", names=("--node", node))
    answers_are_the_same(command, given, "loss", names=("--node", node, "--dead-node", dead[0]))
    answers_are_the_same(command, given, "whatif", names=("--node", node))
    if "nftables" not in case:
        answers_are_the_same(command, given, "services", "--check", names=("--node", node))


@pytest.mark.parametrize("name", sorted(NOISE.glob("*.txt")) if SOAK else [NOISE / "calico.txt"])
def test_rules_of_other_programs_decide_as_before(command: Command, name: Path) -> None:
    given = shown(command, [str(name)], str(NOISE / "objects.json"))
    answers_are_the_same(command, given, "services", names=("--node", "worker1"))
    answers_are_the_same(
        command, given, "loss", names=("--node", "worker1", "--dead-node", "master")
    )


@pytest.mark.parametrize(
    "layout", RulesLayout if SOAK else (RulesLayout.V1_18, RulesLayout.V1_36), ids=str
)
@given(data=st.data())
@examples(2, 60)
def test_generated_clusters_fare_as_before(layout: RulesLayout, data: st.DataObject) -> None:
    cluster = data.draw(clusters(layout))
    with TemporaryDirectory() as name:
        command = InFolder(Path(name))
        objects = command.file("objects.json", json.dumps({"kind": "List", "items": cluster.items}))
        dumps = {"dump.txt": cluster.dump}
        if layout in {RulesLayout.V1_30, RulesLayout.V1_36}:
            dumps["ruleset.nft"] = cluster.nft
        for dump, text in dumps.items():
            command.file(dump, text)
            new = shown(command, [dump], objects)
            node = ("--node", cluster.node)
            answers_are_the_same(command, new, "services", names=node)
            answers_are_the_same(command, new, "loss", names=(*node, "--dead-node", NODES[0]))
            if dump == "dump.txt":
                answers_are_the_same(command, new, "services", "--check", names=node)


def test_a_packet_ends_where_it_did(command: Command) -> None:
    dumps, objects, node = files_of("1.36.2-iptables-legacy/two-node@worker1")
    given = shown(command, [str(dumps[0])], str(objects))
    for to in ("10.96.0.10:53", "10.96.0.1:443", "10.96.77.7:80"):
        names = ("--from", "10.244.1.9", "--to", to, "--node", node)
        answers_are_the_same(command, given, "trace", "--protocol", "tcp", names=names)


def test_outages_clients_and_trees_are_as_before(command: Command) -> None:
    (dump,), objects, node = files_of("1.36.2-iptables-legacy/two-node@worker1")
    given = shown(command, [str(dump)], str(objects))
    dead = ("--node", node, "--dead-node", "master")
    answers_are_the_same(command, given, "timeline", names=dead)
    answers_are_the_same(command, given, "client", names=dead)
    before, after = (
        command("tree", *given.words(after=late), "*", "-o", "json") for late in (False, True)
    )
    old, new = json.loads(before.out), json.loads(after.out)
    assert given.names.document(old) == plain(new)


@pytest.mark.parametrize(
    "cases",
    [
        ("1.36.2-iptables-legacy/two-node@worker1", "1.36.2-nftables/two-node@worker1"),
        ("1.14.0-iptables-legacy/two-node", "1.36.2-iptables-legacy/two-node@worker1"),
    ],
    ids=str,
)
def test_two_dumps_differ_as_before(command: Command, cases: tuple[str, str]) -> None:
    """Each anonymised by itself, as of nodes that never meet."""
    (one, *_), objects, _ = files_of(cases[0])
    (other, *_), _, _ = files_of(cases[1])
    command.file("salt", "s" * 16)
    rows = []
    for number, file in enumerate((one, other, objects)):
        words = ("--salt-file", "salt", "--map", f"map{number}", "--output", f"new{number}")
        assert command("anonymise", str(file), *words).status == 0
        rows += json.loads((command.folder / f"map{number}").read_text())["names"]
    names = Translation(json.dumps({"names": rows}))
    given = Shown(("new0", "new1"), "new2", names, (str(one), str(other)), str(objects))
    answers_are_the_same(command, given, "diff")
    answers_are_the_same(command, given, "diff", "--all", "--count-intended")


@pytest.mark.parametrize(
    ("case", "more"),
    [
        *((case, ()) for case in (CASES if SOAK else QUICK)),
        *((case, ("--every-name",)) for case in (CASES if SOAK else QUICK[:1])),
    ],
    ids=str,
)
def test_nothing_of_the_original_is_left(
    command: Command, case: str, more: tuple[str, ...]
) -> None:
    """Names, addresses and chains, in what was written and in every form of answers about it."""
    dumps, objects, node = files_of(case)
    for dump in dumps:
        given = shown(command, [str(dump)], str(objects), *more)
        old = originals([text_of(dump)], items_of(objects))
        old -= ALWAYS_THERE if more else of_every_cluster()
        assert len(old) > 10
        assert held_in(text_of(dump), old)
        for name, data in unpacked(command.folder / "b.tgz").items():
            assert not held_in(name, old)
            assert not held_in(data.decode(), old)
        # The reports have words of their own, as `order`, which may be names of Services too.
        assert not held_in(_answers(command, given, node), old - _own_words(command))


def _own_words(command: Command) -> set[str]:
    """Return words that answers hold whatever the cluster."""
    dump, objects = (str(ROOT / "examples" / each) for each in ("dump.txt", "objects.json"))
    return words_of(_answers(command, shown(command, [dump], objects), "worker1"))


def _answers(command: Command, given: Shown, node: str) -> str:
    """Return what verbs say of the new files, in every format."""
    said = []
    new = given.names.text(node)
    for verb, formats in (
        ("services", ("text", "json", "tsv")),
        ("loss", ("text", "json", "tsv")),
        ("whatif", ("text", "json", "tsv", "junit", "prometheus")),
    ):
        for form in formats:
            more = ("--dead-node", new) if verb == "loss" else ()
            done = command(verb, *given.words(after=True), "--node", new, *more, "-v", "-o", form)
            assert done.status == 0, done.err
            said += [done.out, done.err]
    return "\n".join(said)


def test_the_same_salt_gives_the_same_names_at_every_node(command: Command) -> None:
    folder = FIXTURES / "1.36.2-iptables-legacy"
    command.file("salt", "s" * 16)
    lines = []
    dumps = [
        str(folder / case / "iptables-legacy-save.txt") for case in ("two-node", "two-node@worker1")
    ]
    for dump in dumps:
        done = command("anonymise", dump, "--salt-file", "salt")
        assert done.status == 0
        lines.append({line for line in done.out.split("\n") if "KUBE-SVC-" in line})
    assert lines[0] == lines[1]
    # Without a salt each time has its own.
    assert command("anonymise", dumps[0]).out != command("anonymise", dumps[0]).out


def test_the_map_is_for_its_owner_only_and_never_replaces_a_file(command: Command) -> None:
    dump = str(ROOT / "examples" / "dump.txt")
    assert command("anonymise", dump, "--map", "m", "--salt-file", "new-salt").status == 0
    for name in ("m", "new-salt"):
        assert stat.S_IMODE((command.folder / name).stat().st_mode) == 0o600
    told = json.loads((command.folder / "m").read_text())
    Draft202012Validator(schema("anonymise-map")).validate(told)
    assert {"ServicePort", "address", "chain"} <= {row["kind"] for row in told["names"]}
    again = command("anonymise", dump, "--map", "m")
    assert (again.status, again.out) == (2, "")
    assert "m: it already exists" in again.err


def test_a_salt_that_is_too_short_is_refused(command: Command) -> None:
    command.file("salt", "short\n")
    done = command("anonymise", str(ROOT / "examples" / "dump.txt"), "--salt-file", "salt")
    assert (done.status, done.out) == (2, "")
    assert "a salt has at least 16 bytes" in done.err


def test_a_salt_that_others_may_read_is_named(command: Command) -> None:
    command.file("salt", "s" * 16)
    words = ("anonymise", str(ROOT / "examples" / "dump.txt"), "--salt-file", "salt")
    (command.folder / "salt").chmod(0o640)
    assert command(*words).err == (
        "kubeodds: salt: others can read this salt, and find names with it: chmod 600\n"
    )
    (command.folder / "salt").chmod(0o600)
    assert command(*words).err == ""


def test_a_map_of_what_could_not_be_written_is_not_left(command: Command) -> None:
    dump = str(ROOT / "examples" / "dump.txt")
    done = command("anonymise", dump, "--map", "m", "--output", "no/folder")
    assert (done.status, done.out) == (2, "")
    assert "no/folder: No such file or directory" in done.err
    assert not (command.folder / "m").exists()


def test_an_empty_file_is_said_to_be_empty(command: Command) -> None:
    command.file("nothing", "")
    done = command("anonymise", "nothing")
    assert (done.status, done.err) == (2, "kubeodds: nothing: the file is empty\n")


def test_what_nobody_understands_is_refused_or_removed(command: Command) -> None:
    command.file("prose.txt", "our customer Acme has a problem at 203.0.113.9\n")
    done = command("anonymise", "prose.txt")
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == done.err.count("prose.txt") == 1
    command.file(
        "odd.txt",
        "*nat\n:PREROUTING ACCEPT [0:0]\n:ACME - [0:0]\n"
        "-A PREROUTING -m acme --secret 203.0.113.9 -j ACME\n"
        '-A ACME -m string --string "acme" --algo bm --to 65535 -j LOG --log-prefix "acme: "\n'
        "-A ACME -s acme.example -j ACMETARGET --acme\n"
        "acme was here\nCOMMIT\n# acme\n",
    )
    done = command("anonymise", "odd.txt", "--strict")
    assert done.status == 3
    assert "acme" not in done.out.lower()
    assert "203.0.113.9" not in done.out
    assert "not understood and left out" in done.err
    command.file("new.txt", done.out)
    before, after = (command("services", name, "-o", "json") for name in ("odd.txt", "new.txt"))
    assert codes(json.loads(before.out)) == codes(json.loads(after.out))


FOLDER = FIXTURES / "1.36.2-iptables-legacy"
ADDRESSES = (
    '[{"ifindex":2,"ifname":"eth0","address":"00:1b:44:11:3a:b7","addr_info":'
    '[{"family":"inet","local":"192.168.0.11","prefixlen":24,"scope":"global"}]}]\n'
)
ROUTES = '[{"dst":"10.244.0.0/24","gateway":"192.168.0.10","dev":"eth0","flags":[]}]\n'
NEIGHBOURS = '[{"dst":"192.168.0.10","dev":"eth0","state":["FAILED"]}]\n'
FLOW = "tcp 6 9 ESTABLISHED src=10.244.1.9 dst=10.96.0.1 sport=4 dport=5 [UNREPLIED] use=1\n"
SETS = "create acme hash:ip family inet hashsize 1024 maxelem 65536\nadd acme 10.244.1.9\n"


def manifest(node: str, *rows: str) -> str:
    head = f"# kubeodds collect 0.1.0, format 1\n# node {node}, begun 2026-11-22T07:02:00Z\n"
    return head + "".join(f"{row}\t0\t0.01\t0.02\t9\tok\tcat /home/acme/{row}\n" for row in rows)


def bundle() -> bytes:
    """Return a bundle of two nodes, as `collect` takes them, and of more than anybody reads."""
    files: dict[str, bytes] = {"objects.json": (FOLDER / "two-node" / "objects.json").read_bytes()}
    for node, case in (("master", "two-node"), ("worker1", "two-node@worker1")):
        dump = (FOLDER / case / "iptables-legacy-save.txt").read_bytes()
        for name, data in {
            "iptables-legacy-save.txt": dump,
            "again/iptables-legacy-save.txt": dump,
            "MANIFEST": manifest(node, "iptables-legacy-save.txt", "acme.txt").encode(),
            "addresses.json": ADDRESSES.encode(),
            "routes.json": ROUTES.encode(),
            "neighbours.json": NEIGHBOURS.encode(),
            "conntrack-ipv4.txt": FLOW.encode(),
            "ipset-save.txt": SETS.encode(),
            "resolv.conf": b"search acme.example\n",
            "kernel.txt": b"Linux acme-host 6.1\n",
        }.items():
            files[f"kubeodds-{node}-20261122T070200Z/{name}"] = data
    return gzip.compress(packed(files))


def test_a_bundle_of_several_nodes_stays_one(command: Command) -> None:
    command.file("old.tgz", bundle())
    command.file("salt", "s" * 16)
    words = ("--salt-file", "salt", "--map", "map", "--output", "new.tgz")
    assert command("anonymise", "old.tgz", *words).status == 0
    files = unpacked(command.folder / "new.tgz")
    names = Translation((command.folder / "map").read_text())
    folders = {name.partition("/")[0] for name in files if "/" in name}
    assert folders == {names.of("node", "master"), names.of("node", "worker1")}
    assert {name.partition("/")[2] for name in files if "/" in name} == {
        *("MANIFEST", "addresses.json", "routes.json", "neighbours.json", "conntrack-ipv4.txt"),
        *("ipset-save.txt", "iptables-legacy-save.txt", "again/iptables-legacy-save.txt"),
    }
    text = "".join(name + data.decode() for name, data in files.items())
    assert not held_in(text, ("master", "worker1", "acme", "10.244.1.9", "192.168.0.11", "app"))
    assert "44:11" not in text
    given = Shown(("new.tgz",), None, names, ("old.tgz",), None)
    answers_are_the_same(command, given, "loss", names=("--dead-node", "master"))
    answers_are_the_same(command, given, "services", names=("--node", "worker1"))
    answers_are_the_same(
        command, given, "trace", names=("--node", "worker1", "--from-node", "--to", "10.96.0.1:443")
    )


def test_what_is_not_whole_stays_so(command: Command) -> None:
    files = {
        "n/MANIFEST": manifest("n1", "iptables-legacy-save.txt").encode(),
        "n/iptables-legacy-save.txt.part": b"*nat\n",
    }
    command.file("old.tgz", gzip.compress(packed(files)))
    assert command("anonymise", "old.tgz", "--output", "new.tgz").status == 0
    before, after = (command("services", name) for name in ("old.tgz", "new.tgz"))
    assert (before.status, after.status) == (2, 2)
    assert "iptables-legacy-save.txt is incomplete" in before.err
    assert "iptables-legacy-save.txt is incomplete" in after.err


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", ADDRESSES), ("r.json", ROUTES), ("c.txt", FLOW), ("i.txt", SETS)],
)
def test_other_files_of_a_node_by_themselves(command: Command, name: str, text: str) -> None:
    command.file(name, text)
    done = command("anonymise", name)
    assert done.status == 0, done.err
    assert done.out
    assert not held_in(done.out, originals([text], []) | {"acme", "10.244.1.9", "192.168.0.11"})


def test_names_of_files_tell_nodes_and_go(command: Command) -> None:
    dumps = {
        f"{node}-iptables-save.txt": (FOLDER / case / "iptables-legacy-save.txt").read_bytes()
        for node, case in (("master", "two-node"), ("worker1", "two-node@worker1"))
    }
    command.file("old.tgz", packed(dumps))
    command.file("salt", "s" * 16)
    words = ("--salt-file", "salt", "--map", "map", "--output", "new.tgz")
    assert command("anonymise", "old.tgz", *words).status == 0
    names = Translation((command.folder / "map").read_text())
    given = Shown(("new.tgz",), None, names, ("old.tgz",), None)
    answers_are_the_same(command, given, "loss", names=("--dead", "10.244.0.3"))
    answers_are_the_same(command, given, "services", names=("--node", "worker1"))
