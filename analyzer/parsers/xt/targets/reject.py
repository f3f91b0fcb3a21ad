"""``-j REJECT``. Source: extensions/libipt_REJECT.c, libip6t_REJECT.c."""

from typing import Final

from analyzer.model.iptables.targets import Reject
from analyzer.parsers.xt.options import Options, Spelling
from analyzer.parsers.xt.values import STRING

REJECT: Final = Options(Reject, (Spelling(text="--reject-with", name="reject_with", codec=STRING),))
