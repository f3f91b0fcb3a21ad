"""The command line: what it says to bad input, in whichever verb, and that it exits with 2."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import pytest

from analyzer.semantics.assumed import BY_NAME
from tests.support.answers import RICH
from tests.support.commands import DUMP, OBJECTS, Command, Done

WANTED = "expected the output of `kubectl get services,endpointslices,nodes,pods -A -o json`"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file contains only blanks"),
        (b"*nat\n\0\n", "a binary file, not a dump of rules"),
        (
            b"hello\n",
            "not a dump of rules; run `iptables-save` on the node, or `nft list ruleset` if "
            "kube-proxy runs in nftables mode, and pass its output",
        ),
        (
            b"Chain INPUT (policy ACCEPT)\ntarget prot opt source destination\n",
            "a listing of `iptables -L` without -v, which leaves out the devices that rules "
            "match on: any rule may be restricted to some of them; run `iptables-save` on the "
            "node, or `iptables -t nat -nvL`, and pass its output",
        ),
        (
            gzip.compress(b"*nat\nCOMMIT\n" * 99, mtime=0)[:-9],
            "damaged compressed data: Compressed file ended before the end-of-stream marker was "
            "reached",
        ),
    ],
)
def test_what_is_no_dump_is_refused_in_one_line(
    command: Command, content: bytes, message: str
) -> None:
    done = command("services", command.file("dump.txt", content))
    assert done == Done(2, "", f"kubeodds: dump.txt: {message}\n")


def test_a_ruleset_of_nft_without_services_says_so(command: Command) -> None:
    done = command("services", command.file("dump.txt", "table ip filter {\n}\n"))
    assert done.status == 0
    assert "kube-proxy in nftables mode has not written these rules" in done.err
    done = command("services", command.file("dump.txt", "table ip kube-proxy {\n}\n"))
    assert (done.status, done.err) == (0, "")
    assert "0 ServicePorts in 0 rules" in done.out


def test_a_missing_file_is_named(command: Command) -> None:
    done = command("services", "missing.txt")
    assert done == Done(2, "", "kubeodds: missing.txt: No such file or directory\n")
    for words in ([""], [DUMP, "--objects", ""]):
        done = command("services", *words)
        assert done == Done(2, "", "kubeodds: '': No such file or directory\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["loss", "default/app", DUMP], "; to select a Service: --service default/app"),
        (["services", DUMP, "default/app"], "; to select a Service: --service default/app"),
        (["tree", "default/app", DUMP], "; a Service goes after the dump: "),
        (["services", "default/app.txt"], ""),
        (["services", DUMP, "--objects", "default/app"], ""),
    ],
)
def test_a_service_in_the_place_of_a_dump_is_told_its_place(
    command: Command, words: list[str], says: str
) -> None:
    done = command(*words)
    assert done.status == 2
    assert done.err.count("\n") == 1
    before, _, after = done.err.partition(": No such file or directory")
    assert before.startswith("kubeodds: default/app")
    assert after.startswith(says or "\n")


def test_a_directory_is_no_dump(command: Command) -> None:
    assert command("services", ".") == Done(
        2, "", "kubeodds: .: it contains no rules; collect as root, on a node\n"
    )


def test_a_probability_above_1_is_shown_with_a_caret(command: Command) -> None:
    lines = RICH.replace("0.50000000000", "1.1").split("\n")
    number = next(at for at, line in enumerate(lines, 1) if "1.1" in line)
    column = lines[number - 1].index("1.1")
    done = command("services", command.file("dump.txt", "\n".join(lines)))
    assert done == Done(
        2,
        "",
        f"dump.txt:{number}:{column + 1}: expected a number from 0 to 1\n"
        f"    {lines[number - 1]}\n"
        f"    {' ' * column}^^^\n",
    )


def test_nothing_but_blanks_stands_before_a_caret(command: Command) -> None:
    text = RICH.replace(" --probability 0.50000000000", "\t--probability 1.1")
    _, line, marker = command("services", command.file("dump.txt", text)).err.splitlines()
    assert marker.strip() == "^^^"
    assert line[marker.index("^") :].startswith("1.1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--dead", "10.244.0.8"],
            "--dead 10.244.0.8: no Service of this dump has that endpoint; did you mean "
            "10.244.0.7 or 10.244.0.3 or 10.244.1.9?",
        ),
        (
            ["--dead", "worker1"],
            "--dead worker1: expected an address, for example 10.1.0.1 or 10.1.0.1:53, a "
            "network, for example 10.1.0.0/24, or with --objects a pod (namespace/name)",
        ),
        (
            ["--dead", "10.244.0.3/33", *OBJECTS],
            "--dead 10.244.0.3/33: expected an address, for example 10.1.0.1 or 10.1.0.1:53, a "
            "network, for example 10.1.0.0/24, or with --objects a pod (namespace/name)",
        ),
        (
            ["--dead", "worker1", *OBJECTS],
            "--dead worker1: that is a node; did you mean --dead-node worker1?",
        ),
        (
            ["--dead-node", "worker2", *OBJECTS],
            "--dead-node worker2: no such node is known; did you mean worker1?",
        ),
        (
            ["--dead-zone", "east", *OBJECTS],
            "--dead-zone east: no zone is known: no Node of --objects has the label "
            "topology.kubernetes.io/zone; name its nodes with --dead-node",
        ),
        (
            ["--dead-zone", "east", "--node-of", "10.244.0.0/24=master"],
            "--dead-zone east: it is not known which endpoints are in which zone; pass --objects "
            "FILE, from `kubectl get services,endpointslices,nodes,pods -A -o json`",
        ),
        (
            ["--dead-node", "worker1"],
            "--dead-node worker1: it is not known which endpoints are on which node; pass "
            "--objects FILE, from `kubectl get services,endpointslices,nodes,pods -A -o json`, "
            "or --node-of CIDR=NODE",
        ),
        (
            ["--node", "worker9", *OBJECTS],
            "--node worker9: the objects have no such node; did you mean worker1?",
        ),
        (
            ["--service", "kube-dms"],
            "no Service kube-dms in this dump; did you mean kube-system/kube-dns?",
        ),
    ],
)
def test_a_name_that_does_not_occur_is_refused_in_one_line(
    command: Command, arguments: Sequence[str], message: str
) -> None:
    assert command("loss", DUMP, *arguments) == Done(2, "", f"kubeodds: {message}\n")


@pytest.mark.parametrize("verb", ["services", "tree"])
def test_every_verb_refuses_an_unknown_service(command: Command, verb: str) -> None:
    named = {"services": ["--service", "ap"], "tree": ["ap"]}[verb]
    done = command(verb, DUMP, *named)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("kubeodds: no Service ap in this dump")


def test_the_tree_of_a_service_without_endpoints_ends_where_it_is_refused(
    command: Command,
) -> None:
    forward = ":FORWARD ACCEPT [0:0]\n:KUBE-SERVICES -"
    rules = RICH.replace("*filter\n:KUBE-SERVICES -", f"*filter\n{forward}").replace(
        "-A KUBE-SERVICES -d 10.96.0.9",
        "-A FORWARD -j KUBE-SERVICES\n-A KUBE-SERVICES -d 10.96.0.9",
    )
    done = command("tree", command.file("dump.txt", rules), "ns/empty:dns")
    assert done.status == 0
    assert any(line.strip().startswith("=> rejected") for line in done.out.splitlines())
    # Whose address it is decides whether the flow comes to FORWARD.
    told = BY_NAME["cluster-ip"].sentences["not-local"]
    assert done.out.splitlines()[-1] == f"Assumed: {told}."


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (
            "hello\n",
            f"objects.json:1:1: not JSON (Expecting value); {WANTED}\n    hello\n    ^\n",
        ),
        (
            "NAME  READY  STATUS  RESTARTS\n",
            "objects.json:1:1: this table has no nodes; expected `kubectl get pods -A -o "
            "wide`\n    NAME  READY  STATUS  RESTARTS\n    ^^^^\n",
        ),
        (
            "",
            "kubeodds: objects.json: kubectl printed nothing: is the API down? Use --node-of "
            "CIDR=NODE instead\n",
        ),
        (
            "NAME  ENDPOINTS  AGE\na  10.0.0.1:80  1d\n",
            "kubeodds: objects.json: it contains none of Node, EndpointSlice, Endpoints, Pod; "
            "it does not say which address is on which node: add `kubectl get pods -A -o wide`, "
            "or use --node-of CIDR=NODE\n",
        ),
        ("[]", f"kubeodds: objects.json: not a list of API objects; {WANTED}\n"),
        ('{"items": [1]}', f"kubeodds: objects.json: not a list of API objects; {WANTED}\n"),
        ("[" * 100_000, "kubeodds: objects.json: nested too deeply to be API objects\n"),
    ],
)
def test_objects_that_are_none_are_refused(command: Command, content: str, error: str) -> None:
    done = command("services", DUMP, "--objects", command.file("objects.json", content))
    assert done == Done(2, "", error)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: VERB"),
        (["services"], "the following arguments are required: DUMP"),
        (["loss", "--objects", "a", "b", "c"], "unclear which word is DUMP; repeat"),
        (["los", DUMP], "no verb 'los'; did you mean loss?"),
        (["nodump.txt"], "nodump.txt: no such file, and no verb of that name"),
        (["service", DUMP], "no verb 'service'; did you mean services?"),
        (
            ["nonsense"],
            "no verb 'nonsense'; there are advise, anonymise, client, cluster, collect, ...",
        ),
        (["loss", DUMP, "--max-loss", "ten"], "'ten' is not a percentage (for example 10%)"),
        (["loss", DUMP, "--max-loss", "101%"], "'101%' is not between 0% and 100%"),
        (["services", DUMP, "--node-ip", "worker1"], "'worker1' is not an IP address"),
        (["services", DUMP, "--format", "xml"], "invalid choice: 'xml'"),
        (
            ["services", DUMP, "--servic", "x"],
            "unrecognized arguments: --servic; did you mean --service",
        ),
    ],
)
def test_bad_usage_is_told_with_where_the_usage_is(
    command: Command, arguments: Sequence[str], message: str
) -> None:
    done = command(*arguments)
    assert (done.status, done.out) == (2, "")
    said, hint = done.err.splitlines()
    assert message in said
    assert said.startswith(f"{hint.removeprefix('See ').removesuffix(' --help.')}: error: ")
