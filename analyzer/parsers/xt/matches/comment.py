"""``-m comment``. Source: extensions/libxt_comment.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchComment
from analyzer.parsers.xt.options import SoleOption
from analyzer.parsers.xt.values import STRING

COMMENT: Final = SoleOption(MatchComment, "text", "--comment", STRING)
