from __future__ import annotations

import bz2
import gzip
import importlib.util
import json
import lzma
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError, InputError
from analyzer.model.iptables.matches import MatchComment
from analyzer.parsers import contents, formats
from analyzer.parsers.formats import FORMATS
from analyzer.parsers.iptables_save import render
from tests.support.reading import read_ruleset

DUMP = "*nat\n:X - [0:0]\n" + "-A X -j DROP\n" * 50 + "COMMIT\n"


def zstd(data: bytes) -> bytes:
    import zstandard  # not everywhere

    # Without the size of its content, as `zstd` writes what it reads from a pipe.
    return bytes(zstandard.ZstdCompressor(write_content_size=False).compress(data))


PACKERS: list[Callable[[bytes], bytes]] = [gzip.compress, bz2.compress, lzma.compress]
if importlib.util.find_spec("zstandard"):
    PACKERS.append(zstd)

packers = pytest.mark.parametrize(
    "pack", PACKERS, ids=["gzip", "bz2", "xz", "zstd"][: len(PACKERS)]
)


@packers
def test_compressed_dumps_are_told_by_their_content(pack: Callable[[bytes], bytes]) -> None:
    assert render(read_ruleset(pack(DUMP.encode()), "dump.txt")) == DUMP


@packers
def test_pieces_compressed_one_by_one_are_read_as_a_whole(pack: Callable[[bytes], bytes]) -> None:
    half = DUMP.encode()[: len(DUMP) // 2]
    packed = pack(half) + pack(DUMP.encode()[len(half) :])
    assert render(read_ruleset(packed, "dump")) == DUMP


@packers
@pytest.mark.parametrize("kept", [0.5, 0.9])
def test_compressed_data_that_is_cut_off_is_refused(
    pack: Callable[[bytes], bytes], kept: float
) -> None:
    packed = pack(DUMP.encode())
    with pytest.raises(InputError, match="dump: damaged"):
        read_ruleset(packed[: int(len(packed) * kept)], "dump")


def test_damaged_gzip_is_refused() -> None:
    packed = bytearray(gzip.compress(DUMP.encode()))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(InputError, match="dump: damaged compressed data"):
        read_ruleset(bytes(packed), "dump")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\t\r\n", "the file contains only blanks"),
        (gzip.compress(b"", mtime=0), "the file contains only blanks"),
        (b"\x7fELF\0\0\0", "a binary file, not a dump of rules"),
        (
            b"Chain INPUT (policy ACCEPT)\ntarget prot opt source destination\n",
            "a listing of `iptables -L` without -v",
        ),
        (b'{"nftables": [{"metainfo": {}}]}', "it contains no nft table"),
        (b"hello\n", "not a dump of rules; run `iptables-save`"),
        (b"apiVersion: v1\nkind: List\n", "not a dump of rules; run `iptables-save`"),
        (b"\xff\xfe\xfd", "not a dump of rules; run `iptables-save`"),
    ],
)
def test_what_is_no_dump_is_refused_saying_what_it_seems_to_be(data: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_ruleset(data, "dump")
    assert str(caught.value).startswith(f"dump: {message}")


def test_a_format_that_was_named_is_not_guessed() -> None:
    with pytest.raises(AnalyzerError, match="no rule and no chain of iptables-save"):
        read_ruleset(b"hello\n", "dump", "iptables-save")


def test_bytes_that_are_no_utf8_survive_in_comments() -> None:
    line = b'-A X -m comment --comment "caf\xe9 \xff" -j DROP'
    ruleset = read_ruleset(b"*nat\n:X - [0:0]\n" + line + b"\nCOMMIT\n", "dump")
    (rule,) = ruleset.tables["nat"].chains["X"].rules
    assert rule.matches == (MatchComment("caf\udce9 \udcff"),)
    assert line in render(ruleset).encode("utf-8", "surrogateescape")


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(AnalyzerError):
        read_ruleset(data, "dump")


@pytest.mark.parametrize("name", FORMATS)
def test_a_ruleset_names_its_format(name: str) -> None:
    table = {"family": "ip", "name": "nat", "handle": 1}
    samples = {
        "iptables-save": DUMP,
        "nft": "table ip nat {\n}\n",
        "nft-json": json.dumps({"nftables": [{"table": table}]}),
        "iptables-list": "Chain X (0 references)\n",
    }
    assert formats.read_ruleset(samples[name].encode(), "dump").input_format == name


@pytest.mark.parametrize("packed", [False, True])
def test_a_large_file_reads_as_its_bytes_do(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b'*nat\n:A - [0:0]\n-A A -m comment --comment "\xff \xc3\xa9" -j RETURN\nCOMMIT\n'
    path = tmp_path / "dump"
    path.write_bytes(gzip.compress(data) if packed else data)
    monkeypatch.setattr(contents, "_LARGE", 1)
    with path.open("rb") as file:
        found = read_ruleset(file, "dump")
    assert found.tables["nat"].chains["A"].rules == (
        read_ruleset(data, "dump").tables["nat"].chains["A"].rules
    )
    assert "\udcff \xe9" in found.tables["nat"].chains["A"].rules[0].raw


ENCODINGS = {
    "UTF-8 with a mark": "utf-8-sig",
    "UTF-16, as Windows' shell redirects": "utf-16",
    "plain UTF-8": "utf-8",
}


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(
    "name",
    [
        "captures/1.36.2-nftables/two-node@worker1/nft-list-ruleset.txt",
        "nft/1.36.2-nftables/seed-dns/nft-list-ruleset.json",
        "captures/1.36.2-iptables-legacy/two-node@worker1/iptables-legacy-save.txt",
    ],
)
def test_what_windows_makes_of_a_dump_is_the_same_dump(encoding: str, ends: str, name: str) -> None:
    text = (Path(__file__).parents[2] / "fixtures" / name).read_text(encoding="utf-8")
    plain = formats.read_ruleset(text.encode(), "f")
    read = formats.read_ruleset(text.replace("\n", ends).encode(encoding), "f")
    assert read.diagnostics == plain.diagnostics == ()
    assert read.input_format == plain.input_format
    assert read.rules == plain.rules > 0
    assert {n: list(t.chains) for n, t in read.tables.items()} == {
        n: list(t.chains) for n, t in plain.tables.items()
    }
