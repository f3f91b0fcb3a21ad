"""``-j CONNMARK``. Source: extensions/libxt_CONNMARK.c, ``connmark_tg_save``."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.targets import CopyConnmark, SetConnmark
from analyzer.parsers.words import Words
from analyzer.parsers.xt.targets.mark import read_mark_change
from analyzer.parsers.xt.values import MARK_MAX, number

_BITS: Final = number(most=MARK_MAX, expected="a mask of 32 bits")


class Connmark:
    """All forms: setting the flow's mark, or copying it to or from the packet's."""

    def parse(self, words: Words) -> SetConnmark | CopyConnmark:
        """Read one of the forms.

        Raises:
            ParseError: another option, or a value that is no mark.
        """
        if words.peek() in {"--save-mark", "--restore-mark"}:
            return self._copy(words)
        value, mask = read_mark_change(words)
        return SetConnmark(value, mask)

    def _copy(self, words: Words) -> CopyConnmark:
        direction = words.take("--save-mark").text.removeprefix("--").removesuffix("-mark")
        packet = flow = MARK_MAX
        while (option := words.peek()) in {"--nfmask", "--ctmask", "--mask"}:
            words.take("a mask")
            bits = _BITS.read(words)
            packet = bits if option in {"--nfmask", "--mask"} else packet
            flow = bits if option in {"--ctmask", "--mask"} else flow
        return CopyConnmark(direction, packet, flow)

    def render(self, value: SetConnmark | CopyConnmark) -> str:
        """Return the form that iptables-save prints, masks always shown."""
        if isinstance(value, SetConnmark):
            return f"--set-xmark {value.value:#x}/{value.mask:#x}"
        masks = f"--nfmask {value.packet_mask:#x} --ctmask {value.flow_mask:#x}"
        return f"--{value.direction}-mark {masks}"


CONNMARK: Final = Connmark()
