"""``-j MARK``. Source: extensions/libxt_MARK.c; iptables-save prints ``--set-xmark`` only."""

from __future__ import annotations

from typing import Final

from analyzer.model.matches import Masked
from analyzer.model.targets import SetMark
from analyzer.parsers.words import Words
from analyzer.parsers.xt.values import MARK_MAX, MASKED, number

_BITS: Final = number(most=MARK_MAX, expected="a mark of 32 bits")


class Mark:
    """Every form, told as what it does: clear the bits of a mask, then XOR a value in."""

    def parse(self, words: Words) -> SetMark:
        """Read one of ``--set-xmark``, ``--set-mark``, ``--and-``, ``--or-``, ``--xor-mark``.

        Raises:
            ParseError: another option, or a value that is no mark.
        """
        option = words.take("--set-xmark")
        match option.text:
            case "--set-xmark":
                masked: Masked = MASKED.read(words)
                return SetMark(masked.value, masked.mask)
            case "--set-mark":
                masked = MASKED.read(words)
                return SetMark(masked.value, masked.value | masked.mask)
            case "--and-mark":
                return SetMark(0, ~_BITS.read(words) & MARK_MAX)
            case "--or-mark":
                bits = _BITS.read(words)
                return SetMark(bits, bits)
            case "--xor-mark":
                return SetMark(_BITS.read(words), 0)
            case _:
                words.fail("expected --set-xmark", span=option.span)

    def render(self, value: SetMark) -> str:
        """Return the one form that iptables-save prints, its mask always shown."""
        return f"--set-xmark {value.value:#x}/{value.mask:#x}"


MARK: Final = Mark()
