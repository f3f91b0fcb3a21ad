"""Salts for hashing names: secret files that only their owner can read."""

from __future__ import annotations

import os
import stat

from analyzer.errors import InputError
from analyzer.inputs.files import read_file
from analyzer.output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Bytes of a salt: the least, and of one that is made.
_LEAST_SALT: Final = 16
_NEW_SALT: Final = 32
_MOST_SALT: Final = 1 << 16
_READ_BY_OTHERS: Final = stat.S_IRGRP | stat.S_IROTH


def new_salt() -> bytes:
    """Return a fresh random salt."""
    return os.urandom(_NEW_SALT)


def salt_of(name: str) -> bytes:
    """Return the salt in a file, which is created if it does not exist.

    Raises:
        InputError: it is too short for one.
        OSError: it cannot be read or made.
    """
    try:
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        salt = read_file(name, _MOST_SALT).strip()
        if name != "-" and _others_may_read(name):
            say(f"kubeodds: {name}: others can read this salt, and find names with it: chmod 600")
        if len(salt) < _LEAST_SALT:
            raise InputError(
                f"{name}: a salt has at least {_LEAST_SALT} bytes; name a file that does not "
                "exist, and it is created"
            ) from None
        return salt
    salt = new_salt().hex().encode()
    with os.fdopen(handle, "wb") as file:
        file.write(salt + b"\n")
    return salt


def _others_may_read(name: str) -> bool:
    mode = os.stat(name).st_mode  # noqa: PTH116  # pathlib is slow to load
    return stat.S_ISREG(mode) and bool(mode & _READ_BY_OTHERS)
