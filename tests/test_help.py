"""Help: it is found however it is asked for, and its examples do what they say."""

from __future__ import annotations

import shlex
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from analyzer.arguments.examples import EXAMPLES
from tests.support.captures import FIXTURES, ROOT
from tests.support.commands import CAPTURE, Command
from tests.support.lab.running import kubeodds

VERBS = sorted(EXAMPLES)
NFT = FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt"
FILES = {
    "dump.txt": CAPTURE / "iptables-legacy-save.txt",
    "objects.json": CAPTURE / "objects.json",
    "later.txt": CAPTURE.with_name("two-node") / "iptables-legacy-save.txt",
    "master.txt": CAPTURE.with_name("two-node") / "iptables-legacy-save.txt",
    "ruleset.nft": NFT,
    "manifests.yaml": ROOT / "examples" / "manifests.yaml",
    "nodes.json": CAPTURE / "objects.json",
    "conntrack.txt": ROOT / "examples" / "conntrack.txt",
}


def words_of(line: str, folder: Path) -> list[str]:
    """Return what a line of help asks, where the files are that it names.

    What is behind a pipe, or in which file it ends, is no affair of ours.
    """
    for name, source in FILES.items():
        shutil.copy(source, folder / name)
    program, *words = shlex.split(line.partition(" | ")[0].partition(" > ")[0])
    assert program == "kubeodds"
    return words


#: They take the whole terminal: tests/test_explorer.py runs them.
_SCREENS = {"explore"}


@pytest.mark.alike
@pytest.mark.parametrize(
    "line", [line for verb in VERBS if verb not in _SCREENS for line in EXAMPLES[verb]]
)
def test_an_example_of_the_help_does_what_it_says(command: Command, line: str) -> None:
    done = command(*words_of(line, command.folder))
    assert done.status in {0, 1}, done.err
    assert done.out
    assert "kubeodds:" not in done.err


def _capture(path: Path) -> None:
    """Write what somebody may have captured: flows of one pod to a Service of the example."""
    inet, utils = import_module("scapy.layers.inet"), import_module("scapy.utils")
    flow = inet.IP(src="10.244.1.77", dst="10.96.18.52") / inet.TCP(dport=80, flags="S")
    packets = [flow.copy() for _ in range(200)]
    for at, packet in enumerate(packets):
        packet[inet.TCP].sport = 40_000 + at
    utils.wrpcap(str(path), packets)


def _of_the_lab() -> list[list[str]]:
    """Return the examples in groups: what one writes another reads, clients wait for long."""
    every = [
        line for lines in import_module("netns_lab.arguments").EXAMPLES.values() for line in lines
    ]
    clients = [line for line in every if line.startswith("kubeodds lab clients")]
    return [*([line] for line in clients), [line for line in every if line not in clients]]


@pytest.mark.deep
@pytest.mark.lab
@pytest.mark.parametrize("lines", _of_the_lab(), ids=lambda lines: lines[0])
def test_the_examples_of_the_labs_help_do_what_they_say(lines: list[str], tmp_path: Path) -> None:
    _capture(tmp_path / "flows.pcap")
    for line in lines:
        # In a process of its own: the lab leaves the host's network.
        done = kubeodds(*words_of(line, tmp_path), where=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_help_ends_with_three_examples(command: Command, verb: str) -> None:
    done = command(verb, "--help")
    assert done.status == 0
    assert len(EXAMPLES[verb]) == 3
    assert done.out.endswith("".join(f"  {line}\n" for line in EXAMPLES[verb]))
    assert command("help", verb) == done


def test_help_without_a_verb_lists_them(command: Command) -> None:
    done = command("help")
    assert (done.status, done) == (0, command("--help"))
    for verb in VERBS:
        assert f"\n    {verb} " in done.out


@pytest.mark.parametrize("asked", [("help", "los"), ("los",), ("los", "--help")])
def test_a_verb_misspelt_is_suggested(command: Command, asked: tuple[str, ...]) -> None:
    done = command(*asked)
    assert done.status == 2
    assert done.err == "kubeodds: error: no verb 'los'; did you mean loss?\nSee kubeodds --help.\n"


def test_an_option_misspelt_is_suggested(command: Command) -> None:
    done = command("loss", "dump.txt", "--dead-nodes=master")
    assert done.status == 2
    assert "unrecognized arguments: --dead-nodes=master; did you mean --dead-node or" in done.err
    done = command("loss", "dump.txt", "--xyzzy")
    assert done.err.splitlines()[0].endswith("unrecognized arguments: --xyzzy")


@pytest.mark.parametrize("verbs", [("cluster", "loss"), ("lab", "verify")])
def test_a_verb_of_verbs_refuses_an_option_in_its_own_name(
    command: Command, verbs: tuple[str, str]
) -> None:
    done = command(*verbs, "x", "--dead-nodes")
    name, wrong = " ".join(verbs), "unrecognized arguments: --dead-nodes; did you mean --dead-node"
    assert done.status == 2
    assert done.err.startswith(f"kubeodds {name}: error: {wrong}")
    assert done.err.endswith(f"See kubeodds {name} --help.\n")


def test_a_dump_alone_is_the_overview(command: Command) -> None:
    dump = str(FILES["dump.txt"])
    assert command(dump) == command("loss", dump)
    assert command(dump).out.startswith("Nothing marked dead.\n")
    (command.folder / "tree").write_bytes(Path(dump).read_bytes())
    done = command("tree")  # a verb is a verb, whatever the folder holds
    assert (done.status, "required: DUMP, SERVICE" in done.err) == (2, True)


def test_options_stand_before_and_behind_the_dump(command: Command) -> None:
    dump, objects = str(FILES["dump.txt"]), str(FILES["objects.json"])
    wanted = command("loss", dump, "--objects", objects, "--dead-node", "master", "-q")
    assert wanted.status == 0
    dead, given = ["-q", "--dead-node", "master"], ["--objects", objects]
    assert command("loss", *dead, dump, *given) == wanted
    assert command("loss", *dead, *given, dump) == wanted
    assert command("loss", *given, dump, *dead) == wanted
    assert command(*dead, dump, *given) == wanted
    assert command(dump, *given, *dead) == wanted
