"""A dump's rules after a repair: what iptables-restore ``--noflush`` would do.

They are analysed again, as a check that is independent of how a repair is made.
"""

from __future__ import annotations

from analyzer.model.iptables.rules import Ruleset
from analyzer.parsers.iptables_save import parse, render
from analyzer.repair.patch import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final


_HOOKS: Final = ("INPUT", "FORWARD", "OUTPUT")


class RestoreError(ValueError):
    """A line that iptables-restore would reject, so that the table stays unchanged."""


class Tables:
    """Rows of chains, as text, by table."""

    def __init__(self, text: str) -> None:
        self._heads: dict[str, dict[str, str]] = {}
        self._rows: dict[str, dict[str, list[str]]] = {}
        table = ""
        for line in text.split("\n"):
            if line.startswith("*"):
                table = line[1:]
                self._heads[table], self._rows[table] = {}, {}
            elif line.startswith(":"):
                name, _, rest = line[1:].partition(" ")
                self._heads[table][name] = rest
                self._rows[table][name] = []
            elif line.startswith("-A "):
                self._rows[table][line.split(" ", 2)[1]].append(_spec(line))

    def run(self, commands: str) -> None:
        """Apply the lines of a repair, or of its undo.

        Raises:
            RestoreError: one of them would be refused.
        """
        table = ""
        for line in commands.split("\n"):
            if line.startswith("*"):
                table = line[1:]
                rows = self._rows.setdefault(table, {})
                heads = self._heads.setdefault(table, {})
                for name in _HOOKS if table == "filter" else ():
                    # The kernel has them, whatever the dump has lost.
                    rows.setdefault(name, [])
                    heads.setdefault(name, "ACCEPT [0:0]")
            elif line and not line.startswith("#") and line != "COMMIT":
                self._one(self._heads[table], self._rows[table], line)

    def _one(self, heads: dict[str, str], rows: dict[str, list[str]], line: str) -> None:
        option, name, *_ = line.split(" ")
        if (name in rows) is (option == "-N"):
            raise RestoreError(line)
        match option:
            case "-N":
                heads[name], rows[name] = "- [0:0]", []
            case "-A":
                rows[name].append(_spec(line))
            case "-I":
                _, _, at, spec = line.split(" ", 3)
                rows[name].insert(int(at) - 1, spec)
            case "-D":
                if _spec(line) not in rows[name]:
                    raise RestoreError(line)
                rows[name].remove(_spec(line))
            case "-F":
                rows[name].clear()
            case "-X":
                used = any(each.endswith(f" {name}") for found in rows.values() for each in found)
                if rows[name] or used:
                    raise RestoreError(line)
                del heads[name], rows[name]
            case _:
                raise RestoreError(line)

    def lines(self) -> Iterator[str]:
        """Yield the lines of a dump of all tables."""
        for table, rows in self._rows.items():
            yield f"*{table}"
            yield from (f":{name} {head}" for name, head in self._heads[table].items())
            for name, specs in rows.items():
                yield from (f"-A {name} {spec}" if spec else f"-A {name}" for spec in specs)
            yield "COMMIT"


def _spec(line: str) -> str:
    """Return a rule without ``-A CHAIN``."""
    _, _, *rest = line.split(" ", 2)
    return rest[0] if rest else ""


def applied(ruleset: Ruleset, commands: str) -> Ruleset:
    """Return the ruleset after `commands`.

    Raises:
        RestoreError: a line of them would be refused.
    """
    from analyzer.model.value import replace

    tables = Tables(render(ruleset))
    tables.run(commands)
    found = parse("\n".join(tables.lines()) + "\n", ruleset.file)
    return replace(
        found,
        family=ruleset.family,
        tables={name: replace(t, family=ruleset.family) for name, t in found.tables.items()},
        backend=ruleset.backend,
        taken=ruleset.taken,
        ipsets=ruleset.ipsets,
        diagnostics=ruleset.diagnostics,
        legacy_beside=ruleset.legacy_beside,
        not_shown=ruleset.not_shown,
    )


def has_repair(ruleset: Ruleset) -> bool:
    """Return whether the rules contain a repair."""
    return any(
        name.startswith(PREFIX) for table in ruleset.tables.values() for name in table.chains
    )
