"""ACCEPT, DROP and RETURN: the verdicts, which take no option."""

from __future__ import annotations

from typing import Final

from analyzer.model.targets import Accept, Drop, Return
from analyzer.parsers.xt.options import Options

ACCEPT: Final = Options(Accept, ())
DROP: Final = Options(Drop, ())
RETURN: Final = Options(Return, ())
