"""``-m owner``. Source: extensions/libxt_owner.c, ``owner_mt_save_v1``."""

from typing import Final

from analyzer.model.iptables.matches import MatchOwner
from analyzer.parsers.xt.options import FLAG, Options, flag, negatable
from analyzer.parsers.xt.values import ranges

_IDS: Final = ranges(
    most=0xFFFFFFFF, separator="-", expected=("an id, or a range, for example 0-999")
)

OWNER: Final = Options(
    MatchOwner,
    (
        negatable("--socket-exists", "socket_exists", FLAG),
        negatable("--uid-owner", "user", _IDS),
        negatable("--gid-owner", "group", _IDS),
        flag("--suppl-groups", "supplementary_groups"),
    ),
)
