"""``-j SET``. Source: extensions/libxt_SET.c, ``set_target_save_v3``."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.targets import ChangeSet
from analyzer.parsers.words import Words, bare
from analyzer.parsers.xt.options import Options, Spelling, flag, plain
from analyzer.parsers.xt.values import WORD, number

_ACTIONS: Final = ("add-set", "del-set", "map-set")
_MORE: Final[tuple[Spelling, ...]] = (
    flag("--exist", "exist"),
    plain("--timeout", "timeout", number(most=0xFFFFFFFF)),
    flag("--map-mark", "map_mark"),
    flag("--map-prio", "map_priority"),
    flag("--map-queue", "map_queue"),
)


class SetOptions:
    """An action with its set, then options."""

    _options: Final = Options(
        ChangeSet,
        (
            plain("", "action", WORD),
            plain("", "name", WORD),
            plain("", "directions", WORD),
            *_MORE,
        ),
    )

    def parse(self, words: Words) -> ChangeSet:
        """Take the options.

        Raises:
            ParseError: no action first.
        """
        word = words.take("--add-set, --del-set or --map-set")
        action = word.text.removeprefix("--")
        if action not in _ACTIONS:
            words.fail("expected --add-set, --del-set or --map-set", span=word.span)
        name = words.take("the name of a set").text
        directions = words.take("src or dst").text
        found = self._options.fields(words)
        return ChangeSet(action=action, name=name, directions=directions, **found)

    def render(self, value: ChangeSet) -> str:
        """Return the options."""
        rest = self._options.render(value, without={"action", "name", "directions"})
        return f"--{value.action} {bare(value.name)} {bare(value.directions)} {rest}".rstrip()


SET: Final = SetOptions()
