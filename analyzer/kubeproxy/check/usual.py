"""Chains whose rows all have the usual shapes, as columns of their matches and targets.

Nearly all rows of a large dump draw an endpoint, or are one of the two of an endpoint's chain. None
of these is parsed unless it is used.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from analyzer.kubeproxy import names
from analyzer.kubeproxy.matched.chain_rule import ChainRule, rules_of
from analyzer.model.iptables.rules import Table
from analyzer.model.value import value
from analyzer.parsers.rows import RowChains

_ROW: Final = r"(?:\[\d+:\d+\] )?-A"
_ENDPOINT: Final = re.compile(
    rf"(?m)^{_ROW} (KUBE-SEP-\S+) -s ((?:\d{{1,3}}\.){{3}}\d{{1,3}})/32 "
    r'(?:-m comment --comment "([^"\\\n]*)" |)-j KUBE-MARK-MASQ\n'
    rf'{_ROW} \1 -p (tcp|udp|sctp) (?:-m comment --comment "\3" |)-m \4 '
    r"-j DNAT --to-destination (\2:\d{1,5})\n"
)
_DRAW: Final = re.compile(
    rf'(?m)^{_ROW} \S+ (?:-m comment --comment "([^"\\\n]*)" |)'
    r"(?:-m statistic --mode random --probability (\d\.\d+) |)-j (KUBE-SEP-[\w-]+)\n"
)
#: Chains that may draw endpoints of the whole cluster, or of the node, and do nothing else.
_DRAWING: Final = ("KUBE-SVC-", "KUBE-SVL-")

#: Comment, probability and chain; empty texts if a row has none.
DrawWords: TypeAlias = tuple[str, str, str]
#: Chain, address, comment, protocol, and address and port: flows from there are marked, all flows
#: are sent there.
EndpointWords: TypeAlias = tuple[str, str, str, str, str]


@value
class Drawing:
    """A chain that draws endpoints, and before that may mark the flows of a frontend."""

    draws: list[DrawWords]
    marks: list[ChainRule]


class Usual:
    """The usual chains of a table nat.

    Attributes:
        endpoints: by the name of their chain.
        drawing: the same for chains that draw them.
    """

    def __init__(self, table: Table) -> None:
        self.endpoints: dict[str, EndpointWords] = {}
        self.drawing: dict[str, Drawing] = {}
        if isinstance(table.chains, RowChains):
            self._read(table.chains)

    def _read(self, chains: RowChains) -> None:
        block, text = chains.block, chains.block.text
        for span in block.skimmed.spans if block.skimmed is not None else ():
            self.endpoints.update({words[0]: words for words in _ENDPOINT.findall(text, *span)})
        for chain, (start, end) in sorted(block.groups.items(), key=lambda each: each[1]):
            if chain.startswith(names.ENDPOINT_PREFIX):
                whole = _ENDPOINT.fullmatch(text, start, end)
                if whole is not None:
                    _, address, says, protocol, to = whole.groups("")
                    self.endpoints[chain] = chain, address, says, protocol, to
            elif chain.startswith(_DRAWING):
                draws = _DRAW.findall(text, start, end)
                others = text.count("\n", start, end) - len(draws)
                if draws and others <= 1:
                    marks = [next(rules_of(chains[chain]))] if others else []
                    if all(map(_marks, marks)):
                        self.drawing[chain] = Drawing(draws, marks)


def _marks(row: ChainRule) -> bool:
    """Return whether a row marks the flows to a port, and matches on nothing else."""
    odd = row.others or row.local or row.mark is not None
    return row.target == names.MARK_MASQUERADE and row.port is not None and not odd
