"""Archives that tests make."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping


def packed(files: Mapping[str, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    room = io.BytesIO()
    with tarfile.open(fileobj=room, mode="w", format=form) as made:
        for name, data in files.items():
            row = tarfile.TarInfo(name)
            row.size = len(data)
            made.addfile(row, io.BytesIO(data))
    return room.getvalue()
