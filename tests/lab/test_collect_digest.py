"""The script of `collect --digest`, run by each shell: names do not leave the node."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.anonymised import WELL_KNOWN, held_in, originals
from tests.support.lab.collecting import RULES, SHELLS, Place, bundle, place_in, shells
from tests.support.lab.running import FIXTURES, kubeodds

pytestmark = pytest.mark.lab


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_in(tmp_path)


SALT = b"a secret of sixteen bytes"


@pytest.mark.alike(1)
@pytest.mark.parametrize(
    ("shell", "rules"),
    [(SHELLS[number % len(SHELLS)], each) for number, each in enumerate(RULES)],
    ids=str,
)
def test_names_are_hashed_on_the_node(
    place: Place, shell: Sequence[str], rules: tuple[str, str, str]
) -> None:
    capture, file, loader = rules
    dump = FIXTURES / capture / file
    load = "nft -f" if loader == "nft" else f"{loader}-restore <"
    words = f'{load} "$1" || exit 9; shift; exec {" ".join(shell)} "$@"'
    # What prints names where none is asked for is not taken, whatever it is.
    (place.folder / ".kube").mkdir()
    (place.folder / ".kube" / "config").write_text("")
    status, out, err = place.run("sh", "-c", words, "sh", str(dump), place.write(salt=SALT), "-")
    assert status == 0, err
    taken = bundle(out)
    assert taken.result(file) == "ok"
    items = json.loads((FIXTURES / capture / "objects.json").read_text())["items"]
    old = originals([dump.read_text()], items) - WELL_KNOWN
    names = {each for each in old if not re.search(r"\d[.:]|:", each)}  # addresses stay
    assert {"app", "app-conf"} & names or len(names) > 10
    assert held_in(dump.read_text(), names)
    for name, data in taken.files.items():
        assert not held_in(data.decode(), names), name
        assert not held_in(data.decode(), [os.uname().nodename]), name
    assert taken.result("kernel.txt") == taken.result("objects.json")
    assert taken.result("kernel.txt") == "left out: names may be in it"
    (place.folder / "node.tar.gz").write_bytes(out)
    asked = [
        kubeodds("services", name, "-o", "tsv", where=place.folder)
        for name in (str(dump), "node.tar.gz")
    ]
    assert [each.returncode for each in asked] == [0, 0], asked[1].stderr
    # All but the ServicePort's name, and who the endpoint's pod is.
    of_dump, of_bundle = (
        sorted(line.split("\t")[1:] for line in each.stdout.splitlines()[1:]) for each in asked
    )
    assert of_dump == of_bundle
    assert len(of_dump) > 3


@pytest.mark.deep
def test_the_same_secret_hashes_names_alike_and_another_otherwise(place: Place) -> None:
    shutil.copy(FIXTURES / RULES[0][0] / RULES[0][1], place.folder / "dump.txt")
    words = 'iptables-legacy-restore dump.txt && exec sh "$@"'
    found = []
    for salt in (SALT, SALT, b"another secret of some bytes"):
        out = place.run("sh", "-c", words, "sh", place.write(salt=salt), "-")[1]
        rows = bundle(out).files["iptables-legacy-save.txt"].decode().split("\n")
        found.append({row for row in rows if "-j KUBE-SVC-" in row})
    assert found[0] == found[1]
    assert found[0]
    assert not found[0] & found[2]


@pytest.mark.alike(1)
@pytest.mark.parametrize("awk", [("awk",), ("busybox", "awk")], ids=lambda each: each[0])
@shells
def test_what_is_not_understood_is_not_taken(
    place: Place, shell: Sequence[str], awk: tuple[str, ...]
) -> None:
    path = place.write(salt=SALT, only=True)
    status, out, err = place.run(*shell, path, "-")
    assert (status, out) == (1, b"")
    assert "awk is not installed, and names cannot be hashed without it" in err
    for name in ("cut", "find", "paste", "sha256sum", "sort"):
        (place.programs / name).symlink_to(str(shutil.which(name)))
    found = shutil.which(awk[0])
    assert found is not None
    place.program("awk", f'exec {" ".join([found, *awk[1:]])} "$@"')
    place.program("iptables-legacy-save", "printf '*nat\\nacme was here\\n'; echo acme >&2")
    place.program("iptables-nft-save", "printf '*nat\\n:A - [0:0]\\n-A A -j B \"acme\\n'")
    place.program("ip6tables-legacy-save", "printf '*nat\\n:acme - [0:0]\\n-A acme -s acme\\n'")
    place.program("nft", "[ $1 = --version ] || printf 'table inet acme {\\n}\\n'")
    place.program("ip", 'echo \'[{"ifname":"acme","ifalias":"acme"}]\'; exit 3')
    place.program("kubectl", "echo acme")
    status, out, err = place.run(*shell, path, "-")
    assert status == 0, err
    taken = bundle(out)
    for name in ("iptables-legacy-save.txt", "iptables-nft-save.txt", "nft-list-ruleset.txt"):
        assert taken.result(name) == "failed", name
        assert name not in taken.files
    assert taken.result("ip6tables-legacy-save.txt") == "ok"
    for name, data in taken.files.items():
        assert b"acme" not in data, name
        assert not name.endswith((".err", ".part"))
