"""Archives and compressed files as streams, with limits on how much is read.

An archive may come from anyone. Its content is never held as a whole and never written: it is
streamed, and only what is needed is kept. A `Budget` counts all streamed bytes, including those of
nested archives, so that no small file can take long or fill the memory.
"""

from __future__ import annotations

import io

from analyzer.errors import InputError
from analyzer.parsers.contents import too_large

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO, Final

_MAGIC: Final = 6
_PIECE: Final = 1 << 16
#: Bytes that one packed byte may expand to. Logs of nodes reach 10 to 50, zeros 1,000 and more.
_MOST_OF_ONE: Final = 250
#: The limit applies from this many bytes on: a short file of zeros is harmless.
_HARMLESS: Final = 1 << 26
#: Members of all archives in a bundle.
_MOST_MEMBERS: Final = 200_000
#: Bytes that may be streamed for each one that may be kept.
_PASSES: Final = 4


class Budget:
    """What may still be read of one bundle.

    Args:
        most: bytes that may be kept; four times as many may be streamed.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept = self._passed = self._members = 0

    def passed(self, number: int) -> None:
        """Count bytes that were unpacked.

        Raises:
            InputError: there were too many.
        """
        self._passed += number
        if self._passed > _PASSES * self.most:
            raise too_large(_PASSES * self.most)

    def keep(self, number: int) -> None:
        """Count bytes that are kept.

        Raises:
            InputError: there were too many.
        """
        self._kept += number
        if self._kept > self.most:
            raise too_large(self.most)

    def release(self, number: int) -> None:
        """Count bytes that are no longer kept."""
        self._kept -= number

    def renew(self) -> None:
        """Restart counting, when nothing that was read so far is held any more.

        The limit per packed byte still applies.
        """
        self._kept = self._passed = self._members = 0

    def member(self) -> None:
        """Count a member of an archive, or a file of a folder.

        Raises:
            InputError: there were too many.
        """
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise InputError(f"more than {_MOST_MEMBERS:,} members in the archive")


class Stream:
    """A file that is read once from its beginning, decompressed if necessary."""

    def __init__(self, file: BinaryIO, budget: Budget) -> None:
        self._packed = file
        self._budget = budget
        self._file, self._errors = _opened(file)
        self._count = 0

    def take(self, number: int) -> bytes:
        """Return `number` bytes; fewer if the file ends before.

        Raises:
            InputError: it is damaged, or more than may be read.
        """
        first = self._piece(number)
        if len(first) in {number, 0}:  # as for the many headers: one read is enough
            return first
        found = bytearray(first)
        while len(found) < number and (piece := self._piece(number - len(found))):
            found += piece
        return bytes(found)

    def _piece(self, number: int) -> bytes:
        try:
            piece = self._file.read(min(_PIECE, number))
        except self._errors as error:
            raise InputError(f"damaged compressed data: {error}") from None
        except MemoryError:  # xz may need 4 GiB, whatever is in it
            raise InputError("unpacking it takes more memory than is available") from None
        self._passes(len(piece))
        return piece

    def skip(self, number: int) -> int:
        """Skip `number` bytes; return how many there were."""
        left = number
        while left > 0:
            piece = len(self.take(min(_PIECE, left)))
            if not piece:
                break
            left -= piece
        return number - left

    def _passes(self, number: int) -> None:
        self._budget.passed(number)
        self._count += number
        if self._count > _HARMLESS and self._file is not self._packed:
            packed = max(self._packed.tell(), 1)
            if self._count > _MOST_OF_ONE * packed:
                raise InputError(
                    f"a compressed byte expands to more than {_MOST_OF_ONE}, as in a "
                    "decompression bomb; unpack it yourself, and pass the folder"
                )


def _opened(file: BinaryIO) -> tuple[BinaryIO, tuple[type[Exception], ...]]:
    """Return a file that decompresses, and the exceptions it raises if it is damaged."""
    from analyzer.parsers.compression import opener

    head = file.read(_MAGIC)
    file.seek(-len(head), io.SEEK_CUR)
    made: Callable[[BinaryIO], tuple[BinaryIO, tuple[type[Exception], ...]]] | None = opener(head)
    return (file, ()) if made is None else made(file)
