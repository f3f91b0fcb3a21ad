"""DSCP, TOS, TTL and other targets that set header fields, and no mark, verdict or address.

Source: extensions/libxt_DSCP.c, libxt_TOS.c, libipt_TTL.c, libip6t_HL.c, libipt_ECN.c,
libxt_TCPOPTSTRIP.c.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.targets import (
    ChangeHops,
    ChangeTtl,
    RemoveEcn,
    SetDscp,
    SetTos,
    StripOptions,
)
from analyzer.parsers.words import Words
from analyzer.parsers.xt.options import Codec, Options, Spelling, flag, plain
from analyzer.parsers.xt.values import WORD, number

_CLASSES: Final = {
    "BE": 0,
    "EF": 46,
    **{f"CS{n}": n << 3 for n in range(8)},
    **{f"AF{n}{drop}": n << 3 | drop << 1 for n in range(1, 5) for drop in range(1, 4)},
}
_DSCP: Final = number(most=63)
_HOPS: Final = number(most=255)
_STEPS: Final = number(most=255)


def _read_class(words: Words) -> int:
    word = words.take("a class of DSCP")
    found = _CLASSES.get(word.text.upper())
    if found is None:
        words.fail("expected a class of DSCP, for example AF21", span=word.span)
    return found


DSCP: Final = Options(
    SetDscp,
    (
        plain("--set-dscp", "dscp", Codec(_DSCP.read, lambda dscp: f"{dscp:#04x}")),
        Spelling(
            text="--set-dscp-class", name="dscp", codec=Codec(_read_class, str), read_only=True
        ),
    ),
)
TOS: Final = Options(SetTos, (plain("--set-tos", "tos", WORD),))
TTL: Final = Options(
    ChangeTtl,
    (
        plain("--ttl-set", "to", _HOPS),
        plain("--ttl-dec", "less", _STEPS),
        plain("--ttl-inc", "more", _STEPS),
    ),
)
HL: Final = Options(
    ChangeHops,
    (
        plain("--hl-set", "to", _HOPS),
        plain("--hl-dec", "less", _STEPS),
        plain("--hl-inc", "more", _STEPS),
    ),
)
ECN: Final = Options(RemoveEcn, (flag("--ecn-tcp-remove", "tcp"),))
TCPOPTSTRIP: Final = Options(StripOptions, (plain("--strip-options", "options", WORD),))
