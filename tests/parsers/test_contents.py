from __future__ import annotations

import io
from pathlib import Path

import pytest

from analyzer.errors import InputError
from analyzer.parsers.contents import contents, size_from_text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("2K", 2_048),
        ("512m", 512 << 20),
        ("4G", 4 << 30),
        ("0", None),
        ("0G", None),
        ("G", None),
        ("", None),
        ("-1", None),
        ("1.5G", None),
        ("4T", None),
        ("\u0664", None),
        ("9" * 16, None),
    ],
)
def test_a_size_may_have_a_unit(text: str, size: int | None) -> None:
    assert size_from_text(text) == size


@pytest.mark.parametrize("size", [0, 1, 99, 100])
def test_what_is_no_file_of_the_system_is_read_to_its_end(size: int) -> None:
    assert bytes(contents(io.BytesIO(b"x" * size), 100)) == b"x" * size


def test_what_comes_in_pieces_may_be_just_as_large_as_it_may_be() -> None:
    most = 1 << 20
    assert len(contents(io.BytesIO(bytes(most)), most)) == most
    with pytest.raises(InputError, match="more than 1 MiB"):
        contents(io.BytesIO(bytes(most + 1)), most)


@pytest.mark.parametrize("size", [0, 1, 100, (1 << 22) + 7])
def test_a_file_is_read_whole(tmp_path: Path, size: int) -> None:
    path = tmp_path / "dump"
    path.write_bytes(b"x" * size)
    with path.open("rb") as file:
        assert len(contents(file, size + 1)) == size
    with path.open("rb") as file:
        assert bytes(contents(file, max(size, 1))) == b"x" * size


def test_what_is_larger_than_it_may_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than 100 bytes; --max-input"):
        contents(io.BytesIO(b"x" * 101), 100)
    path = tmp_path / "dump"
    path.write_bytes(b"x" * 2_049)
    with path.open("rb") as file, pytest.raises(InputError, match="more than 2 KiB"):
        contents(file, 2_048)
