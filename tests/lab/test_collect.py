"""The script of `collect`, run by each shell in a network namespace with rules of each backend.

Programs that hang, fail, print without end or are not there are small scripts in a PATH that has
nothing but these and what the script itself needs.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from analyzer.output import BAD_INPUT
from tests.support.anonymised import plain
from tests.support.effort import PROFILE
from tests.support.json_reader import read
from tests.support.lab.collecting import RULES, Place, bundle, place_in, shells
from tests.support.lab.running import FIXTURES, kubeodds

pytestmark = pytest.mark.lab


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.mark.alike(1)
@shells
@pytest.mark.parametrize(("capture", "file", "loader"), RULES, ids=str)
def test_rules_of_each_backend_are_those_that_were_loaded(
    place: Place, shell: Sequence[str], capture: str, file: str, loader: str
) -> None:
    dump = FIXTURES / capture / file
    load = "nft -f" if loader == "nft" else f"{loader}-restore <"
    words = f'{load} "$1" || exit 9; shift; exec {" ".join(shell)} "$@"'
    status, out, err = place.run("sh", "-c", words, "sh", str(dump), place.write(), "-")
    assert status == 0, err
    taken = bundle(out)
    assert taken.result(file) == "ok"
    (place.folder / "taken.txt").write_bytes(taken.files[file])
    objects = ["--objects", str(FIXTURES / capture / "objects.json")]
    asked = kubeodds("diff", str(dump), "taken.txt", *objects, where=place.folder)
    assert asked.returncode == 0, asked.stdout + asked.stderr
    (place.folder / "node.tar.gz").write_bytes(out)
    asked = kubeodds("diff", str(dump), "node.tar.gz", *objects, where=place.folder)
    assert asked.returncode == 0, asked.stdout + asked.stderr
    assert f"node.tar.gz: using {file}" in asked.stderr
    if loader != "nft":
        assert b"\n[0:0] -A KUBE-SERVICES" in taken.files[file]
    for name in ("nft-list-ruleset.json", "addresses.json", "kernel.txt", "sysctl.txt"):
        assert taken.result(name) == "ok"
        assert taken.files[name]


#: A few for the quick check, beside those of `RULES`; all that there are for the deep one.
FEW = ("1.14.0-iptables-legacy/seed-dns", "1.36.2-iptables-nft/two-node")


@pytest.mark.alike(1)
@pytest.mark.parametrize("name", FEW)
def test_a_bundle_of_a_capture_gives_the_answers_of_its_dump(place: Place, name: str) -> None:
    for dump in loadable(FIXTURES / name):
        check_bundle(place, dump)


@pytest.mark.skipif(PROFILE != "soak", reason="takes long")
def test_bundles_of_all_captures_give_the_answers_of_their_dumps(
    place: Place, captures: Path
) -> None:
    """Of those that the installed programs restore."""
    done = 0
    for folder in sorted((*captures.glob("*/*"), *FIXTURES.glob("*/*"))):
        for dump in loadable(folder):
            check_bundle(place, dump)
            done += 1
    assert done > 50


def loadable(folder: Path) -> list[Path]:
    """Return the dumps of a folder that a program here can restore."""
    return sorted(
        path
        for pattern in ("ip*tables-*-save.txt*", "nft-list-ruleset.txt*")
        for path in folder.glob(pattern)
    )


def check_bundle(place: Place, dump: Path) -> None:
    """Load a dump, collect, and ask verbs about both."""
    data = dump.read_bytes()
    text = (gzip.decompress(data) if dump.suffix == ".gz" else data).decode()
    (place.folder / "dump.txt").write_text(text)
    program = dump.name.partition("-save")[0]
    load = "nft -f dump.txt" if program.startswith("nft") else f"{program}-restore dump.txt"
    counters = dict.fromkeys(re.findall(r"--nfacct-name +(\S+)", text))
    made = "".join(f"nfacct add {each} && " for each in counters)
    words = f'{made}{load} || exit 9; exec sh "$@"'
    status, out, err = place.run("sh", "-c", words, "sh", place.write(), "-")
    assert status == 0, f"{dump}: {err}"
    (place.folder / "node.tar.gz").write_bytes(out)
    (objects,) = dump.parent.glob("objects.json*")
    node = json.loads((dump.parent / "run.json").read_text())["node"]
    told = ("--objects", str(objects), "--node", node, "-o", "json")
    for verb, *more in (("services",), ("loss", "--dead-node", node), ("whatif",)):
        asked = [
            kubeodds(verb, name, *more, *told, where=place.folder)
            for name in ("dump.txt", "node.tar.gz")
        ]
        assert asked[0].returncode == asked[1].returncode, asked[1].stderr
        if asked[0].returncode:  # a dump without Services
            assert asked[1].returncode == BAD_INPUT, asked[1].stderr
            continue
        of_dump, of_bundle = (plain(read(each.stdout)) for each in asked)
        of_dump.pop("source", None), of_bundle.pop("source", None)
        assert of_dump == of_bundle, f"{verb} of {dump}"


@pytest.mark.alike(1)
@shells
def test_what_is_missing_is_named_and_no_failure(place: Place, shell: Sequence[str]) -> None:
    status, out, err = place.run(*shell, place.write(only=True), "-")
    assert status == 0, err
    taken = bundle(out)
    for name in ("iptables-legacy-save.txt", "nft-list-ruleset.txt", "version-kubelet.txt"):
        assert taken.result(name) == "not installed"
        assert name not in taken.files
    assert taken.result("objects.json") == "not installed"
    assert taken.result("kernel.txt") == "ok"


@pytest.mark.deep
@shells
def test_what_hangs_or_fails_or_has_no_end_is_cut_off(place: Place, shell: Sequence[str]) -> None:
    place.program("nft", "echo begun; exec sleep 600")
    place.program("iptables", "echo 'iptables v1.6.1'")
    place.program("iptables-save", "echo '*nat'; echo no luck >&2; exit 4")
    place.program("ip6tables-legacy-save", "while :; do echo 0123456789; done")
    place.program("ip", "trap '' XFSZ; echo '[]'")
    path = place.write(timeout=2, only=True)
    text = Path(path).read_text().replace("\nmost=262144\n", "\nmost=8\n")
    Path(path).write_text(text)
    status, out, err = place.run(*shell, path, "-")
    assert status == 0, err
    taken = bundle(out)
    assert taken.result("nft-list-ruleset.txt") == "timed out"
    assert taken.files["nft-list-ruleset.txt.part"] == b"begun\n"
    assert taken.manifest["iptables-legacy-save.txt"][1:6:4] == ["4", "failed"]
    assert taken.files["iptables-legacy-save.txt.part"] == b"*nat\n"
    assert taken.files["iptables-legacy-save.txt.err"] == b"no luck\n"
    assert taken.result("ip6tables-legacy-save.txt") in {"too large", "timed out"}
    assert len(taken.files["ip6tables-legacy-save.txt.part"]) in {8 * 512, 8 * 1024}
    assert taken.files["addresses.json"] == b"[]\n"


def test_no_more_is_taken_than_there_is_room_and_time_for(place: Place) -> None:
    place.program("nft", "echo rules")
    path = Path(place.write(only=True))
    text = path.read_text()
    path.write_text(text.replace("\nmost_of_all=1048576\n", "\nmost_of_all=1\n"))
    taken = bundle(place.run("sh", str(path), "-")[1])
    assert taken.result("nft-list-ruleset.txt") == "ok"
    assert taken.result("kernel.txt") == "left out: no room left"
    path.write_text(text.replace("\nlimit_of_all=300\n", "\nlimit_of_all=0\n"))
    taken = bundle(place.run("sh", str(path), "-")[1])
    assert taken.result("nft-list-ruleset.txt") == "left out: no time left"


@pytest.mark.deep
@shells
def test_a_second_look_is_as_long_after_the_first_as_it_was_told(
    place: Place, shell: Sequence[str]
) -> None:
    place.program("nft", "echo rules")
    taken = bundle(place.run(*shell, place.write(twice=1, only=True), "-")[1])
    first, again = (
        float(taken.manifest[f"{folder}nft-list-ruleset.txt"][2]) for folder in ("", "again/")
    )
    assert again - first >= 0.99
    assert taken.files["again/nft-list-ruleset.txt"] == b"rules\n"


@pytest.mark.alike(1)
@shells
def test_the_script_comes_by_stdin_and_no_command_eats_it(
    place: Place, shell: Sequence[str]
) -> None:
    place.program("nft", "cat; echo end")
    text = Path(place.write(only=True)).read_bytes()
    status, out, err = place.run(*shell, "-s", "--", "-", text=text)
    assert status == 0, err
    assert bundle(out).files["nft-list-ruleset.txt"] == b"end\n"


@pytest.mark.alike(1)
@shells
def test_a_script_that_is_cut_off_does_nothing(place: Place, shell: Sequence[str]) -> None:
    text = Path(place.write(only=True)).read_bytes().removesuffix(b'main "$@"\nexit\n')
    before = {*place.folder.iterdir()}
    for cut in (len(text), len(text) // 2, len(text) // 3):
        _, out, _ = place.run(*shell, "-s", text=text[:cut])
        assert out == b""
    assert {*place.folder.iterdir()} == before


@pytest.mark.alike(1)
@shells
def test_the_bundle_goes_where_it_is_told_and_never_over_what_is_there(
    place: Place, shell: Sequence[str]
) -> None:
    path = place.write(only=True)
    assert place.run(*shell, path)[0] == 0
    (named,) = place.folder.glob("kubeodds-*.tar.gz")
    assert os.uname().nodename in named.name
    assert "MANIFEST" in bundle(named.read_bytes()).files
    assert place.run(*shell, path, "told.tar.gz")[0] == 0
    told = place.folder / "told.tar.gz"
    assert told.stat().st_mode & 0o777 == 0o600
    held = told.read_bytes()
    (place.folder / "link.tar.gz").symlink_to(place.folder / "elsewhere")
    for name in ("told.tar.gz", "link.tar.gz", "no/such/folder.tar.gz"):
        status, out, err = place.run(*shell, path, name)
        assert (status, out) == (1, b"")
        assert "there already, or cannot be written" in err
    assert told.read_bytes() == held
    assert not (place.folder / "elsewhere").exists()


@pytest.mark.alike(1)
@shells
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_behind(
    place: Place, shell: Sequence[str], number: signal.Signals
) -> None:
    place.program("nft", f"echo $$ >{place.folder}/hangs; exec sleep 600")
    path = place.write(only=True)
    with place.start((*shell, path, "out.tar.gz")) as process:
        hangs = place.folder / "hangs"
        deadline = time.monotonic() + 30
        while not hangs.exists() or not hangs.read_text().endswith("\n"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        process.communicate()
    assert process.returncode == 128 + number
    assert place.temporary == []
    assert not (place.folder / "out.tar.gz").exists()
    assert not Path(f"/proc/{hangs.read_text().strip()}").exists()


@pytest.mark.deep
@shells
def test_objects_are_taken_only_of_an_api_that_answers(place: Place, shell: Sequence[str]) -> None:
    (place.folder / ".kube").mkdir()
    (place.folder / ".kube" / "config").write_text("")
    path = place.write(timeout=2, only=True)
    place.program("kubectl", "exec sleep 600")
    taken = bundle(place.run(*shell, path, "-")[1])
    assert taken.result("api-version.json") == "timed out"
    assert taken.result("objects.json") == "left out: the API does not answer"
    place.program("kubectl", 'case "$*" in *endpointslices*) exit 1 ;; *) echo "$*" ;; esac')
    taken = bundle(place.run(*shell, path, "-")[1])
    assert taken.files["objects.json"].endswith(b"services,endpoints,nodes,pods\n")
    (place.folder / ".kube" / "config").unlink()
    if not Path("/etc/kubernetes").exists():
        taken = bundle(place.run(*shell, path, "-")[1])
        assert taken.result("objects.json") == "left out: no kubeconfig"


def test_nothing_is_wrong_with_the_script_as_a_posix_shell_reads_it(place: Place) -> None:
    checker = ("shellcheck", "-s", "sh") if shutil.which("shellcheck") else ("sh", "-n")
    status, out, err = place.run(*checker, place.write())
    assert (status, out) == (0, b""), err


@pytest.mark.alike(1)
@shells
def test_kube_proxys_arguments_and_configuration_are_taken(
    place: Place, shell: Sequence[str]
) -> None:
    program = place.folder / "kube-proxy"  # the kernel calls a script by the name of its file
    program.write_text("#!/bin/sh\nsleep 600\n")
    program.chmod(0o755)
    (place.folder / "good.conf").write_text("kind: KubeProxyConfiguration\nmode: nftables\n")
    (place.folder / "other.conf").write_text("secret\n")
    place.program("curl", 'echo "$@"')
    words = (
        f"{program} --config {place.folder}/good.conf -v=4 & "
        f'{program} "--config={place.folder}/other.conf" "$(printf "a\\tb")" & '
        f'until [ "$(cat /proc/[0-9]*/comm | grep -c kube-proxy)" = 2 ]; do :; done; '
        f'exec {" ".join(shell)} "$@"'
    )
    own = ("--pid", "--fork", "--mount-proc", "--kill-child")
    status, out, err = place.run(*own, "sh", "-c", words, "sh", place.write(only=True), "-")
    assert status == 0, err
    taken = bundle(out)
    of = {name.rpartition("-")[2]: name for name in taken.files if name.startswith("kube-proxy-")}
    assert of.keys() == {"arguments.txt", "config.txt", "metrics.txt"}
    assert taken.files["kube-proxy-metrics.txt"].endswith(b" http://127.0.0.1:10249/metrics\n")
    assert b"mode: nftables" in taken.files[of["config.txt"]]
    told = [data for name, data in taken.files.items() if name.endswith("arguments.txt")]
    assert sorted(data.split(b"\n")[-2] for data in told) == [b"-v=4", b"a\tb"]
    assert not any(b"secret" in data for data in taken.files.values())
    results = [row[5] for name, row in taken.manifest.items() if name.endswith("config.txt")]
    assert sorted(results) == ["no configuration of kube-proxy", "ok"]
