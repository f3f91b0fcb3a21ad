"""``-j MARK``. Source: extensions/libxt_MARK.c; iptables-save prints ``--set-xmark`` only."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.options import Masked
from analyzer.model.iptables.targets import SetMark
from analyzer.parsers.words import Words
from analyzer.parsers.xt.values import MARK_MAX, MASKED, number

_BITS: Final = number(most=MARK_MAX, expected="a mark of 32 bits")


def read_mark_change(words: Words) -> tuple[int, int]:
    """Read one of ``--set-xmark``, ``--set-mark``, ``--and-``, ``--or-``, ``--xor-mark``.

    Returns the value to XOR in, after the bits of the mask, which comes second, are cleared.

    Raises:
        ParseError: another option, or a value that is no mark.
    """
    option = words.take("--set-xmark")
    match option.text:
        case "--set-xmark":
            masked: Masked = MASKED.read(words)
            return masked.value, masked.mask
        case "--set-mark":
            masked = MASKED.read(words)
            return masked.value, masked.value | masked.mask
        case "--and-mark":
            return 0, ~_BITS.read(words) & MARK_MAX
        case "--or-mark":
            bits = _BITS.read(words)
            return bits, bits
        case "--xor-mark":
            return _BITS.read(words), 0
        case _:
            words.fail("expected --set-xmark", span=option.span)


class MarkOptions:
    """All forms, reduced to their effect: clear the bits of a mask, then XOR a value in."""

    def parse(self, words: Words) -> SetMark:
        """Read any form.

        Raises:
            ParseError: another option, or a value that is no mark.
        """
        return SetMark(*read_mark_change(words))

    def render(self, value: SetMark) -> str:
        """Return the one form that iptables-save prints, its mask always shown."""
        return f"--set-xmark {value.value:#x}/{value.mask:#x}"


MARK: Final = MarkOptions()
