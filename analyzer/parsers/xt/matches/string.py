"""``-m string``. Source: extensions/libxt_string.c, ``string_save``."""

from typing import Final

from analyzer.model.matches import MatchString
from analyzer.parsers.words import always_quoted
from analyzer.parsers.xt.options import Codec, Options, flag, negatable, plain
from analyzer.parsers.xt.values import STRING, WORD, number

_TEXT: Final = Codec(read=STRING.read, write=always_quoted)
#: Always between quotes, whatever is in it.
_HEXADECIMAL: Final = Codec(read=STRING.read, write=lambda text: f'"{text}"')
_OFFSET: Final = number(most=0xFFFF)

STRING_MATCH: Final = Options(
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
