"""``-j CT`` and ``-j NOTRACK``. Source: extensions/libxt_CT.c, ``ct_save_v1``."""

from typing import Final

from analyzer.model.iptables.targets import ConnectionTracking, NoTrack
from analyzer.parsers.xt.options import Options, flag, plain
from analyzer.parsers.xt.values import WORD

CT: Final = Options(
    ConnectionTracking,
    (
        flag("--notrack", "no_track"),
        plain("--helper", "helper", WORD),
        plain("--timeout", "timeout", WORD),
        plain("--ctevents", "events", WORD),
        plain("--expevents", "expected_events", WORD),
        plain("--zone-orig", "zone_original", WORD),
        plain("--zone-reply", "zone_reply", WORD),
        plain("--zone", "zone", WORD),
    ),
)

NOTRACK: Final = Options(NoTrack, ())
