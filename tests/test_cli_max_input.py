"""Inputs larger than --max-input are refused, packed or not, from wherever they come."""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import lzma
import resource
import signal
import subprocess  # noqa: TID251  # as a shell runs it
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from analyzer.cli import main
from analyzer.parsers.contents import MOST_BYTES, size_from_text
from tests.support.captures import ROOT
from tests.support.shapes import service

#: Of them all, a few hundred bytes once packed.
LARGE: Final = service(2).encode() + b"# as long as the next line\n" * 100_000
REFUSED: Final = "more than 1 MiB; --max-input SIZE allows more, for example 2M\n"


def zstd(data: bytes) -> bytes:
    import zstandard

    packed: bytes = zstandard.ZstdCompressor().compress(data)
    return packed


PACKED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
}
packings = pytest.mark.parametrize(
    "packing",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                name == "zst" and importlib.util.find_spec("zstandard") is None,
                reason="zstandard is not installed",
            ),
        )
        for name in PACKED
    ],
)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump"
    path.write_text(service(2), encoding="ascii")
    return str(path)


@pytest.mark.deep
@packings
def test_a_dump_may_be_as_large_as_it_is_said(
    packing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large"
    path.write_bytes(PACKED[packing](LARGE))
    assert main(["services", "--max-input", "1M", str(path)]) == 2
    assert capsys.readouterr() == ("", f"kubeodds: {path}: {REFUSED}")
    assert main(["services", "--max-input", str(len(LARGE)), str(path)]) == 0
    assert "ns/svc" in capsys.readouterr().out


@packings
@pytest.mark.parametrize("option", ["--with", "--objects"])
def test_what_stands_beside_a_dump_may_be_no_larger(
    option: str, packing: str, dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large"
    path.write_bytes(PACKED[packing](LARGE))
    assert main(["services", dump, "--max-input", "1M", option, str(path)]) == 2
    assert capsys.readouterr().err == f"kubeodds: {path}: {REFUSED}"


@pytest.mark.parametrize("option", ["--addresses", "--routes"])
def test_files_of_trace_may_be_no_larger(
    option: str, dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large"
    path.write_bytes(LARGE)
    asked = ["--from", "10.244.0.9", "--to", "10.96.0.10:80"]
    assert main(["trace", dump, *asked, "--max-input", "1M", option, str(path)]) == 2
    assert capsys.readouterr().err == f"kubeodds: {path}: {REFUSED}"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1000", 1000),
        ("1K", 1 << 10),
        ("512m", 512 << 20),
        ("2G", MOST_BYTES),
        *[
            (wrong, None)
            for wrong in ("", "0", "0G", "-1", "1.5G", "1T", "G", "1 G", "²", "9" * 99)
        ],
    ],
)
def test_sizes_are_bytes_or_have_a_unit(text: str, size: int | None) -> None:
    assert size_from_text(text) == size


def test_a_wrong_size_is_bad_usage(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["services", "--max-input", "much", dump])
    assert ended.value.code == 2
    assert "'much' is not a size in bytes (for example 512M)" in capsys.readouterr().err


@contextmanager
def endless(*options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the program on an input without an end."""
    with (
        subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE) as zeros,  # noqa: S607  # the system's
        subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, "-m", "analyzer", "services", "-", *options],
            stdin=zeros.stdout,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        ) as child,
    ):
        yield child
        zeros.kill()


def test_an_input_without_an_end_is_refused_in_little_memory() -> None:
    with endless("--max-input", "64M") as child:
        # All that it may ask for, itself included.
        resource.prlimit(child.pid, resource.RLIMIT_AS, (256 << 20, 256 << 20))
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (2, b"")
    assert (
        err.decode()
        == f"kubeodds: <stdin>: {REFUSED.replace('1 MiB', '64 MiB').replace('2M', '128M')}"
    )


def test_ctrl_c_ends_an_input_without_an_end() -> None:
    with endless() as child:
        status = Path(f"/proc/{child.pid}/status")
        while int(status.read_text().split("VmRSS:")[1].split()[0]) < 64 << 10:
            time.sleep(0.01)  # it does not read yet
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, b"", b"kubeodds: interrupted\n")
