"""ACCEPT, DROP, RETURN and TRACE, which take no options, and CHECKSUM, which takes one."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.targets import Accept, Drop, FillChecksum, Return, Trace
from analyzer.parsers.xt.options import Options, flag

ACCEPT: Final = Options(Accept, ())
CHECKSUM: Final = Options(FillChecksum, (flag("--checksum-fill", "fill"),))
DROP: Final = Options(Drop, ())
RETURN: Final = Options(Return, ())
TRACE: Final = Options(Trace, ())
