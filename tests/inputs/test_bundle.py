"""A bundle of `collect` in place of a dump: what is in it counts as if it had been named."""

from __future__ import annotations

import gzip
from collections.abc import Mapping

import pytest

from tests.support.archives import packed
from tests.support.captures import FIXTURES
from tests.support.commands import CAPTURE, DUMP, OBJECTS, Command

LEGACY = (CAPTURE / "iptables-legacy-save.txt").read_bytes()
NFT = (FIXTURES / "1.36.2-nftables/two-node@worker1/nft-list-ruleset.txt").read_bytes()
FILES = {
    "iptables-legacy-save.txt": LEGACY,
    "objects.json": (CAPTURE / "objects.json").read_bytes(),
}
LOSS = ("--dead-node", "master", "-q")


def manifest(**results: str) -> bytes:
    rows = [f"{name}\t1\t0.00\t0.01\t0\t{says}\tcommand" for name, says in results.items()]
    return "\n".join(["# kubeodds collect", *rows, ""]).encode()


def bundle(files: Mapping[str, bytes], says: bytes = b"") -> bytes:
    every = {**files, "MANIFEST": says}
    return gzip.compress(packed({f"node1/{name}": data for name, data in every.items()}))


def test_an_archive_and_a_folder_are_asked_as_their_files_are(command: Command) -> None:
    wanted = command("loss", DUMP, *OBJECTS, *LOSS)
    assert wanted.status == 0
    command.file("node1.tar.gz", bundle(FILES))
    done = command("loss", "node1.tar.gz", *LOSS)
    assert (done.status, done.out) == (0, wanted.out)
    told = "using iptables-legacy-save.txt, objects.json\n"
    assert done.err == f"node1.tar.gz: {told}" + wanted.err.replace(
        DUMP, "node1.tar.gz:iptables-legacy-save.txt"
    )
    (command.folder / "node1").mkdir()
    for name, data in FILES.items():
        command.file(f"node1/{name}", data)
    done = command("loss", "node1", *LOSS)
    assert (done.status, done.out) == (0, wanted.out)
    assert f"node1: {told}" in done.err


def test_every_verb_takes_a_bundle(command: Command) -> None:
    command.file("b.tar.gz", bundle(FILES))
    dump, objects = DUMP, OBJECTS
    for verb, *words in (
        ("services",),
        ("whatif",),
        ("trace", "--from", "pod", "--to", "app"),
    ):
        done = command(verb, "b.tar.gz", *words)
        wanted = command(verb, dump, *objects, *words)
        assert (done.status, wanted.status) == (0, 0)
        assert done.out.replace("b.tar.gz:iptables-legacy-save.txt", dump) == wanted.out
    assert command("tree", "b.tar.gz", "app").out == command("tree", dump, *objects, "app").out
    assert command("diff", "b.tar.gz", dump, *objects).status == 0
    assert command("diff", dump, "b.tar.gz", *objects).status == 0


def test_trace_takes_the_addresses_of_the_node_unless_it_is_told_others(command: Command) -> None:
    addresses = b'[{"ifname":"eth0","addr_info":[{"family":"inet","local":"192.168.0.77"}]}]\n'
    command.file("addresses.json", addresses)
    command.file("b.tar.gz", bundle({**FILES, "addresses.json": addresses}))
    asked = ("--from", "10.9.9.9", "--to", "192.168.0.77:31000")
    named = "b.tar.gz:iptables-legacy-save.txt"
    with_file = command("trace", DUMP, *OBJECTS, *asked, "--addresses", "addresses.json")
    done = command("trace", "b.tar.gz", *asked)
    assert (done.status, done.out.replace(named, DUMP)) == (0, with_file.out)
    with_option = command("trace", DUMP, *OBJECTS, *asked, "--node-ip", "10.0.0.1")
    done = command("trace", "b.tar.gz", *asked, "--node-ip", "10.0.0.1")
    assert (done.status, done.out.replace(named, DUMP)) == (0, with_option.out)
    assert with_file.out != with_option.out


def test_objects_that_are_named_count_and_those_of_the_bundle_do_not(command: Command) -> None:
    command.file(
        "b.tar.gz", bundle({**FILES, "objects.json": b'{"apiVersion": "v1", "items": [] }'})
    )
    done = command("loss", "b.tar.gz", *OBJECTS, *LOSS)
    assert done.out == command("loss", DUMP, *OBJECTS, *LOSS).out
    assert "using iptables-legacy-save.txt\n" in done.err


def test_one_form_of_nft_is_enough(command: Command) -> None:
    text, both = {"nft-list-ruleset.txt": NFT}, {"nft-list-ruleset.json.part": b'{"nftables": ['}
    command.file("one.tar.gz", bundle(text))
    command.file("both.tar.gz", bundle({**text, **both}))
    one, two = command("services", "one.tar.gz"), command("services", "both.tar.gz")
    assert (one.status, one.out.replace("one.", "both.")) == (two.status, two.out)
    assert "kube-dns" in one.out


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"iptables-nft-save.txt.part": b"*nat\n"}, b""),
        ({"nft-list-ruleset.txt.part": b"table ip nat {\n"}, b""),
        ({}, manifest(**{"iptables-nft-save.txt": "timed out"})),
        ({}, manifest(**{"ip6tables-nft-save.txt": "left out: no time left"})),
    ],
)
def test_rules_that_are_not_whole_are_refused(
    command: Command, files: dict[str, bytes], says: bytes
) -> None:
    command.file("b.tar.gz", bundle({**FILES, **files}, says))
    done = command("loss", "b.tar.gz", *LOSS)
    assert (done.status, done.out) == (2, "")
    assert "is incomplete; collect again with a greater --timeout" in done.err


def test_rules_that_could_not_be_taken_are_told_and_are_none_under_strict(command: Command) -> None:
    says = manifest(**{"nft-list-ruleset.txt": "failed", "ip6tables-nft-save.txt": "not installed"})
    command.file("b.tar.gz", bundle(FILES, says))
    done = command("loss", "b.tar.gz", *LOSS)
    assert done.status == 0
    assert "objects.json; could not be collected: nft-list-ruleset.txt\n" in done.err
    done = command("loss", "b.tar.gz", "--strict", *LOSS)
    assert (done.status, done.out) == (2, "")


def test_no_rules_of_nft_are_no_dump(command: Command) -> None:
    none = {
        "nft-list-ruleset.txt": b"",
        "nft-list-ruleset.json": b'{"nftables": [{"metainfo": {}}]}',
    }
    command.file("b.tar.gz", bundle({**FILES, **none}))
    done = command("loss", "b.tar.gz", *LOSS)
    assert done.status == 0
    assert "using iptables-legacy-save.txt, objects.json\n" in done.err


@pytest.mark.parametrize("files", [{}, {"iptables-legacy-save.txt": b""}, {"a.txt": b"hello\n"}])
def test_a_bundle_without_rules_is_bad_input(command: Command, files: dict[str, bytes]) -> None:
    command.file("b.tar.gz", bundle(files))
    done = command("loss", "b.tar.gz", *LOSS)
    assert (done.status, done.out) == (2, "")
    assert "b.tar.gz: it contains no rules" in done.err


def test_a_second_look_is_left_aside(command: Command) -> None:
    command.file("b.tar.gz", bundle({**FILES, "again/iptables-legacy-save.txt": LEGACY}))
    assert command("loss", "b.tar.gz", *LOSS).status == 0


def test_a_bomb_is_bounded(command: Command) -> None:
    command.file("b.tar.gz", bundle({**FILES, "zeros": bytes(1 << 24)}))
    done = command("loss", "b.tar.gz", "--max-input", "2M", *LOSS)
    assert (done.status, done.out) == (2, "")
    assert "b.tar.gz: more than 8 MiB" in done.err


def test_hostile_archives_are_refused_and_nothing_is_written(command: Command) -> None:
    command.file("b.tar.gz", gzip.compress(packed({"../out": LEGACY})))
    done = command("loss", "b.tar.gz", *LOSS)
    assert (done.status, done.out) == (2, "")
    assert "leads out of it" in done.err
    assert [each.name for each in command.folder.iterdir()] == ["b.tar.gz"]
