"""The folder of a store: its lock, its sources, and files that are valid once complete."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
from collections.abc import Mapping, Sequence

from analyzer.cluster.tables import TABLES, create_views
from analyzer.errors import InputError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

SCHEMA: Final = "kubeodds/cluster/1"
ABOUT: Final = "build.json"
OBJECTS: Final = "objects.json.gz"
_SQL: Final = "tables.sql"
LOCK: Final = ".lock"
#: What DuckDB would take for a pattern, or for the end of a name.
_SPECIAL: Final = "*?[]'"


def engine() -> Any:
    """Return the module duckdb.

    Raises:
        InputError: it is not installed.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise InputError(
            "a cluster's dumps are kept in DuckDB tables, but the module duckdb is not "
            "installed; pip install '.[cluster]' in a clone of kubeodds"
        ) from None
    return duckdb


def checked(folder: str) -> str:
    """Return the path of a folder.

    Raises:
        UsageError: DuckDB would not accept its name.
    """
    path = os.path.abspath(folder)  # noqa: PTH100  # paths are text here
    special = next((each for each in path if each in _SPECIAL or not each.isprintable()), None)
    if special is not None:
        raise UsageError(f"{folder}: DuckDB does not accept {special!r} in the name of a folder")
    return path


def locked(path: str, folder: str) -> int:
    """Return the lock of a folder, held until it is closed.

    Raises:
        UsageError: another run holds it.
    """
    lock = os.open(f"{path}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise UsageError(f"--into {folder}: another run is building there") from None
    return lock


def about_of(path: str, folder: str) -> dict[str, Any]:
    """Return the description that a folder has of itself.

    Raises:
        InputError: it is no store.
    """
    try:
        with open(f"{path}/{ABOUT}", encoding="utf-8") as file:  # noqa: PTH123  # as above
            found = json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{folder}: not a folder made by `kubeodds cluster build`; run `kubeodds cluster "
            f"build DUMPS --objects objects.json --into {folder}`"
        ) from None
    except ValueError as error:
        raise InputError(f"{folder}/{ABOUT}: {error}") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(f"{folder}: built by another version of kubeodds; build it again")
    return found


def check_asked(before: object, asked: Mapping[str, Any], folder: str) -> None:
    """Refuse a folder that was built with other options.

    Raises:
        UsageError: it was.
    """
    if before != json.loads(json.dumps(asked)):
        raise UsageError(
            f"--into {folder}: it was built from other objects, or with other options; build into "
            "another folder"
        )


def prepare(path: str, about: Mapping[str, Any], objects: Sequence[Any]) -> None:
    """Make empty tables, and then the description that declares them complete."""
    if os.stat(path).st_uid == os.geteuid():  # noqa: PTH116  # as above
        os.chmod(path, 0o700)  # noqa: PTH101  # it may have been there, empty
    db = engine().connect(":memory:")
    for table, columns in TABLES.items():
        os.makedirs(f"{path}/{table}", mode=0o700, exist_ok=True)  # noqa: PTH103  # as above
        made = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        db.execute(f"CREATE OR REPLACE TEMP TABLE part ({made})")
        part = f"{path}/{table}/part-000000.parquet"
        db.execute(f"COPY part TO '{part}.new' (FORMAT parquet)")
        settle(f"{part}.new", part)
    db.close()
    if objects:
        whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        _put(f"{path}/{OBJECTS}", gzip.compress(whole.encode(), 1, mtime=0))
    _put(f"{path}/{_SQL}", create_views("").encode())
    _put(f"{path}/{ABOUT}", json.dumps(about, indent=1).encode())


def _put(path: str, content: bytes) -> None:
    new = f"{path}.new"
    # Objects contain configuration of pods: for their owner only.
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123  # pathlib opens no descriptor
        file.write(content)
    settle(new, path)


def writable(said: Any) -> Any:
    """Return a value of a table; bytes that are not UTF-8 are escaped."""
    if isinstance(said, list):
        return [writable(each) for each in said]
    if isinstance(said, str) and not said.isascii():
        return said.encode("utf-8", "backslashreplace").decode()
    return said


def settle(new: str, path: str) -> None:
    """Move a file into place, readable by its owner only, once its content is on disk."""
    held = os.open(new, os.O_RDONLY)
    try:
        os.fchmod(held, 0o600)  # DuckDB writes as the umask has it
        os.fsync(held)
    finally:
        os.close(held)
    os.replace(new, path)  # noqa: PTH105  # as above
