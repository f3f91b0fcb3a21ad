"""argparse's parser with this program's defaults for verbs.

Options that take several values
================================

Such an option is repeated (``--dead A --dead B``) or its values are joined by commas
(``--dead A,B``). Several words behind one option (``--dead A B``) are read too, where it is plain
which words are the option's: those that the verb's own arguments, such as DUMP, do not need.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence

from analyzer.errors import suggestion
from analyzer.model.addresses import (
    Address,
    Network,
    address_from_text,
    network_from_text,
    packet_address,
)
from analyzer.parsers.contents import size_from_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Any, NoReturn


def several(read: Callable[[str], Any] = str) -> dict[str, Any]:
    """Return argparse's arguments for an option with several values, each parsed by `read`."""

    def values(text: str) -> list[Any]:
        # A file may have a comma in its name.
        words = [text] if os.path.exists(text) else text.split(",")  # noqa: PTH110  # is loaded
        return [read(word) for word in [each for each in words if each] or [text]]

    return {"type": values, "action": "extend", "default": []}


class Joined(argparse.Action):
    """Joins the values of a repeated option with commas."""

    def __call__(
        self, _parser: object, namespace: argparse.Namespace, values: Any, _option: Any = None
    ) -> None:
        """Add a value to those before it."""
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, values if before is None else f"{before},{values}")


def size_of(text: str) -> int:
    """Return a size in bytes, from the value of an option.

    Raises:
        ArgumentTypeError: it is none.
    """
    size = size_from_text(text)
    if size is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size in bytes (for example 512M)")
    return size


def percentage(text: str) -> Fraction:
    """Return a share, from a percentage."""
    from fractions import Fraction

    try:
        value = Fraction(text.removesuffix("%").strip())
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a percentage (for example 10%)"
        ) from None
    if not 0 <= value <= 100:  # noqa: PLR2004  # per cent
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0% and 100%")
    return value / 100


def duration_of(text: str) -> Fraction:
    """Return seconds, zero or more, from ``40s`` or ``1m30s``.

    Raises:
        ArgumentTypeError: it is no duration.
    """
    from analyzer.parsers.durations import duration_from_text

    found = duration_from_text(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration (for example 40s or 1m30s)")
    return found


def time_of(text: str) -> Fraction:
    """Return seconds, more than zero.

    Raises:
        ArgumentTypeError: it is no such time.
    """
    found = duration_of(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive duration")
    return found


def written_file(text: str) -> str:
    """Return the name of a file to write, from the value of an option; ``-`` is stdout.

    Raises:
        ArgumentTypeError: it may be meant as an option.
    """
    if text.startswith("-") and text != "-":
        raise argparse.ArgumentTypeError(f"{text} looks like an option; write a file as ./{text}")
    return text


def address_of(text: str) -> Address:
    """Return an address, from the value of an option.

    Raises:
        ArgumentTypeError: it is none.
    """
    address = address_from_text(text)
    if address is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an IP address")
    return packet_address(address)


def network_of_node(text: str) -> tuple[Network, str]:
    """Return a network and the node that it belongs to.

    Raises:
        ArgumentTypeError: it is no pair of these.
    """
    cidr, sign, node = text.partition("=")
    network = network_from_text(cidr)
    if network is None or not sign or not node:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not CIDR=NODE, for example 10.1.0.0/24=worker1"
        )
    return network, node


class Parser(argparse.ArgumentParser):
    """argparse's own, for which an option of several values takes one word, or plainly more.

    Attributes:
        statuses: exit statuses and what they mean, of verbs that have some of their own.
    """

    def __init__(
        self,
        *,
        examples: Sequence[str] = (),
        statuses: Sequence[tuple[str, str]] = (),
        **kinds: Any,
    ) -> None:
        super().__init__(allow_abbrev=False, formatter_class=HelpFormatter, **kinds)
        self.examples, self.statuses = examples, statuses

    def add_subparsers(self, **kinds: Any) -> Any:
        """Return what verbs are added to; each refuses options in its own name."""
        return super().add_subparsers(**{"parser_class": _VerbParser, **kinds})

    @property
    def takes_lists(self) -> bool:
        """Whether any option takes several values."""
        return any(isinstance(each, argparse._ExtendAction) for each in self._actions)  # noqa: SLF001  # no other name

    def format_help(self) -> str:
        """Return the help, which ends with exit statuses and examples where there are any."""
        statuses = "".join(f"  {status:<4}{means}\n" for status, means in self.statuses)
        examples = "".join(f"  {line}\n" for line in self.examples)
        found = super().format_help() + (f"\nexit status:\n{statuses}" if statuses else "")
        return found + (f"\nexamples:\n{examples}" if examples else "")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse `args` as argparse does, except ``--option=--``, which it would treat as a list."""
        words = list(args or ())
        for word in words:
            if word == "--":
                break
            if word.startswith("--") and word.endswith("=--"):
                self.error(f"argument {word.removesuffix('=--')}: expected one argument")
        return super().parse_known_args(self._spelled_out([*self._joined(words)]), namespace)

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and which option may have been meant, and exit with 2.

        Of the usage, which fills a screen and pushes the message out of it, only where it is.
        """
        head, _, rest = message.partition("unrecognized arguments: ")
        option = rest.split()[0].partition("=")[0] if rest and not head else ""
        if option.startswith("--"):
            known = [each for each in self._option_string_actions if each.startswith("--")]
            close = suggestion(option, known)
            message += close if "did you mean" in close else ""
        self.exit(2, f"{self.prog}: error: {message}\nSee {self.prog} --help.\n")

    def _joined(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the words, a value like ``-1s`` joined with its option.

        Else argparse takes it for an option, and says that the value is missing.
        """
        option = ""
        for at, word in enumerate(words):
            if word == "--":
                yield from (*([option] if option else []), *words[at:])
                return
            if option:
                joins = word[:1] == "-" and word[1:2].isdecimal()
                yield from [f"{option}={word}"] if joins else [option, word]
                option = ""
                continue
            action = self._option_string_actions.get(word) if word.startswith("--") else None
            if action is not None and action.nargs is None:
                option = word
            else:
                yield word
        if option:
            yield option

    def _spelled_out(self, words: list[str]) -> list[str]:
        """Return the words, the option repeated before each of its further values.

        Where more words than one may be the verb's last argument they stand together at the end.
        """
        places = [each for each in self._actions if not each.option_strings]
        needed = [str(each.metavar) for each in places]
        told = list(self._told(words))
        further = {at: owner for at, owner in told if owner is not None}
        extra = len(told) - len(needed)
        if extra <= 0 or self._subparsers is not None:
            return words
        if further and extra < len(further):
            option = [*further.values()][-1]
            self.error(
                f"argument {option}: it is unclear which word is {' or '.join(needed)}; repeat "
                f"{option} for each value, or join the values by commas"
            )
        if any(each.nargs in ("+", "*") for each in places):
            own = [words[at] for at, owner in told if owner is None]
            end = words.index("--") if "--" in words else len(words)
            others = {at for at, owner in told if owner is None}
            before = [
                f"{further[at]}={word}" if at in further else word
                for at, word in enumerate(words[:end])
                if at not in others
            ]
            return [*before, "--", *own]
        return [f"{further[at]}={word}" if at in further else word for at, word in enumerate(words)]

    def _told(self, words: Sequence[str]) -> Iterator[tuple[int, str | None]]:
        """Yield the indexes of words that are neither options nor their first value.

        Each comes with the option of several values that it directly follows, if any. A file is
        never the value of an option that takes none.
        """
        owner: str | None = None
        taken = takes_files = False
        for at, word in enumerate(words):
            if word == "--":
                yield from ((each, None) for each in range(at + 1, len(words)))
                return
            if taken:
                taken = False
            elif word.startswith("-") and word != "-":
                name, joined, _ = word.partition("=")
                action = self._option_string_actions.get(name)
                extends = isinstance(action, argparse._ExtendAction)  # noqa: SLF001  # no other name
                owner = name if extends else None
                takes_files = action is not None and action.metavar == "FILE"
                taken = not joined and action is not None and action.nargs is None
            elif not takes_files and (word == "-" or os.path.isfile(word)):  # noqa: PTH113  # is loaded
                yield at, None
            else:
                yield at, owner


class HelpFormatter(argparse.HelpFormatter):
    """argparse's formatter, which asks for the terminal's width only if help is shown.

    It is made again for each option that is added, and to ask takes a module and a system call.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)

    def add_argument(self, action: argparse.Action) -> None:
        """Take an option's width; that of verbs counts where they stand, which is further in."""
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  # no other name
            self._action_max_length += self._indent_increment

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap each line by itself; one that is indented stands as it is."""
        fill = super()._fill_text
        lines = text.split("\n")
        return "\n".join(
            line if line.startswith(" ") else fill(line, width, indent) for line in lines
        )

    def format_help(self) -> str:
        """Return the help, fitted to the terminal."""
        import shutil

        self._width = shutil.get_terminal_size().columns - 2
        return super().format_help()


class _VerbParser(Parser):
    """That of one of several verbs: argparse would leave its errors to the parser of all verbs."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse `args` as argparse does, and refuse what is left."""
        found, others = super().parse_known_args(args, namespace)
        if others:
            self.error(f"unrecognized arguments: {' '.join(others)}")
        return found, others
