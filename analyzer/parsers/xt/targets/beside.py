"""AUDIT, CLASSIFY and TEE: targets that leave both the packet and its verdict as they are.

Source: extensions/libxt_AUDIT.c, libxt_CLASSIFY.c, libxt_TEE.c.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.targets import Audit, Classify, Tee
from analyzer.parsers.xt.options import Options, plain
from analyzer.parsers.xt.values import ADDRESS, WORD, one_of

AUDIT: Final = Options(Audit, (plain("--type", "verdict", one_of("accept", "drop", "reject")),))
CLASSIFY: Final = Options(Classify, (plain("--set-class", "to", WORD),))
TEE: Final = Options(Tee, (plain("--gateway", "gateway", ADDRESS), plain("--oif", "device", WORD)))
