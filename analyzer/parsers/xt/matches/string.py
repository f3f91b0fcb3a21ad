"""``-m string``. Source: extensions/libxt_string.c, ``string_save``, ``print_string``."""

import re
from typing import Final

from analyzer.model.iptables.matches import MatchString
from analyzer.parsers.xt import values
from analyzer.parsers.xt.options import Codec, Options, flag, negatable, plain
from analyzer.parsers.xt.values import WORD, number

#: Unlike other words it is printed with apostrophes as they are.
_TEXT: Final = Codec(
    read=values.STRING.read, write=lambda text: '"' + re.sub(r"([\\\"])", r"\\\1", text) + '"'
)
#: Always in quotes, whatever it contains.
_HEXADECIMAL: Final = Codec(read=values.STRING.read, write=lambda text: f'"{text}"')
_OFFSET: Final = number(most=0xFFFF)

STRING: Final = Options(
    MatchString,
    (
        negatable("--string", "text", _TEXT),
        negatable("--hex-string", "hexadecimal", _HEXADECIMAL),
        plain("--algo", "algorithm", WORD),
        plain("--from", "first", _OFFSET),
        plain("--to", "last", _OFFSET),
        flag("--icase", "ignore_case"),
    ),
)
