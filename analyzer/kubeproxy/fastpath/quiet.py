"""Whether the iptables rules outside nat let pass all flows that plain rows send to endpoints.

After DNAT a flow traverses the chains of INPUT, or of FORWARD and POSTROUTING; what a node sends to
itself comes back through PREROUTING. Traversing them gives the result (`leaving`). If each row has
a well-known shape that lets such flows pass, no traversal is needed, and a dump with kube-proxy's
rules alone is read in less than half of the time. The answers to such flows traverse the same
chains, except for those that only new flows are sent to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from analyzer.model.hooks import TABLES
from analyzer.model.iptables.rules import Rule, Ruleset, Table
from analyzer.parsers.rows import RuleRows
from analyzer.parsers.survey import well_known_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final, TypeAlias

    #: The bits of a packet's mark that a row may change; None: it may do more than that.
    ChangedBits: TypeAlias = "int | None"

#: Targets of rows that let a flow pass on to the next table, or row.
_PASSING: Final = frozenset({"ACCEPT", "RETURN", "LOG", "NFLOG", "TRACE"})
_COMMENT: Final = re.compile(r' -m comment --comment (?:"[^"\\]*"|[\w-]+)')
_TO_HOST: Final = re.compile(r"(?<! !) -d ([\d.]+/32|[\da-f:.]+/128) ")
_TO_OWN_PORT: Final = re.compile(r"(?<! !) --dst-type LOCAL .*(?<! !)--dport (\d+) ")
_MARKED: Final = re.compile(r"(?<! !) --mark (0x[\da-f]+)/(0x[\da-f]+) ")
_ASKED: Final = re.compile(r" --mark 0x[\da-f]+(?:/0x([\da-f]+))?(?!\S)")
#: The conntrack state of a new flow is NEW, that of an answer ESTABLISHED, and both are also DNAT.
_OTHER_STATE: Final = re.compile(
    r"(?<! !) --ctstate INVALID | ! --ctstate RELATED,ESTABLISHED,DNAT "
)
_OF_ANSWERS: Final = re.compile(r"(?<! !) --ctstate RELATED,ESTABLISHED ")
_OF_NEW: Final = re.compile(r"(?<! !) --ctstate NEW ")


class Quiet:
    """What plain flows may hit after DNAT in the tables of iptables other than nat.

    `mark` is what KUBE-MARK-MASQ sets; `has_host` and `has_port` return whether an endpoint has an
    address, or a port, as written.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        mark: int,
        has_host: Callable[[str], bool],
        has_port: Callable[[int], bool],
    ) -> None:
        self._ruleset = ruleset
        self._mark = mark
        self._has_host = has_host
        self._has_port = has_port

    def holds(self) -> bool:
        """Return whether all rules let such flows pass, with the mark that they have."""
        changed, asked = 0, self._mark
        for table in self._ruleset.tables.values():
            if table.name == "nat":
                continue
            if not table.complete:
                return False
            for target, row, is_new in self._rows(table):
                if target is None or self._may_stop(target, row, is_new=is_new):
                    bits = None if target is None else _marked(target, row)
                    if bits is None:
                        return False
                    changed |= bits
                for mask in _ASKED.findall(row):
                    asked |= int(mask or "ffffffff", 16)
        # A match on a bit that others change would have to be evaluated with the bit changed too.
        return not changed & asked

    def _rows(self, table: Table) -> Iterator[tuple[str | None, str, bool]]:
        """Yield each row that packets may reach: target, text, and whether only new ones do.

        A target of None is not plain.
        """
        bases = [hook for hook, tables in TABLES.items() if table.name in tables]
        rest = [hook for hook in bases if hook in table.chains]
        for hook in rest:
            if table.chains[hook].policy != "ACCEPT":
                yield None, "", False
        seen = set(rest)
        of_new: list[str] = []
        while rest or of_new:
            is_new = not rest
            name = (rest or of_new).pop()
            if is_new and name in seen:
                continue
            seen.add(name)
            rules = table.chains[name].rules
            if isinstance(rules, RuleRows) and not rules.complete:
                yield None, "", False
            for row in _text_of(rules):
                target = well_known_target(row)
                bare = _COMMENT.sub("", row)
                if target is not None and target in table.chains:
                    if target not in seen:
                        new = is_new or _OF_NEW.search(bare)
                        if not new:
                            seen.add(target)
                        (of_new if new else rest).append(target)
                else:
                    yield target, bare, is_new

    def _may_stop(self, target: str, row: str, *, is_new: bool) -> bool:
        """Return whether a row may do more to a plain flow, or its answer, than let it pass."""
        if target in _PASSING or _OTHER_STATE.search(row):
            return False
        is_new = is_new or bool(_OF_NEW.search(row))
        if not is_new and self._may_stop_answer(row):
            return True
        if _OF_ANSWERS.search(row):
            return False
        host = _TO_HOST.search(row)
        if host is not None:
            return self._has_host(host[1].rpartition("/")[0])
        port = _TO_OWN_PORT.search(row)
        if port is not None:
            return self._has_port(int(port[1]))
        for value, mask in _MARKED.findall(row):
            if int(value, 16) & int(mask, 16) not in {0, self._mark & int(mask, 16)}:
                return False
        return True

    def _may_stop_answer(self, row: str) -> bool:
        """Return whether a row may do more to the answer to a plain flow than let it pass.

        It comes without a mark, from an endpoint.
        """
        return all(int(value, 16) & int(mask, 16) == 0 for value, mask in _MARKED.findall(row))


def _text_of(rules: Sequence[Rule]) -> Iterable[str]:
    return rules.lines if isinstance(rules, RuleRows) else [rule.raw for rule in rules]


def _marked(target: str, row: str) -> ChangedBits:
    """Return the bits of the mark that a row may change; None: it may do something else."""
    if target != "MARK":
        return None
    value, _, mask = row.rpartition("--set-xmark ")[2].partition("/")
    return int(value, 16) | int(mask, 16)
