"""Every command with its options, in one parser, as completion and manual pages want it.

The program itself declares the options of one verb only: that one which is asked for.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from analyzer.arguments import cluster as cluster_arguments
from analyzer.arguments import command_line
from analyzer.arguments.parser import Parser
from netns_lab import arguments as lab

#: The verbs that have verbs of their own.
_LAB, _CLUSTER = "lab", "cluster"


def every_command() -> Parser:
    """Return the parser of ``kubeodds``, below which each verb has its own options."""
    found = command_line.every_verb()
    choices = verbs_of(found)
    for name in choices:
        of_verbs = {_LAB: lab.parser, _CLUSTER: cluster_arguments.parser}
        choices[name] = of_verbs[name]() if name in of_verbs else command_line.parser_of(name)
    asked = argparse.ArgumentParser(prog="kubeodds help", add_help=False)
    asked.add_argument("asked", metavar="VERB", nargs="?", choices=list(choices))
    choices["help"] = asked
    return found


def verbs_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a parser's verbs; none where it has no verbs."""
    for action in parser._actions:  # noqa: SLF001  # argparse has no public name for them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  # no other way
            found: dict[str, argparse.ArgumentParser] = action.choices
            return found
    return {}


def descriptions(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the line that help shows for each of a parser's verbs."""
    return {
        choice.dest: choice.help or ""
        for action in parser._actions  # noqa: SLF001  # see above
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001  # no other way
        for choice in action._choices_actions  # noqa: SLF001  # no other way
    }


def walk(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Give a parser and those of all verbs below it."""
    yield parser
    for below in verbs_of(parser).values():
        yield from walk(below)


def described(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Give a parser and those of all verbs below it, each with what its verb is for."""
    yield parser, parser.description or ""
    says = descriptions(parser)
    for name, below in verbs_of(parser).items():
        for each, own in described(below):
            yield each, (says.get(name, "") if each is below else own) or own


@contextmanager
def columns(number: int) -> Iterator[None]:
    """Let argparse fit its lines to so many columns, whatever the terminal has."""
    before, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), str(number)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def usage(parser: argparse.ArgumentParser) -> str:
    """Return the usage, in lines of 90 columns."""
    with columns(90):
        return parser.format_usage().removeprefix("usage: ").rstrip()


def told(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Give the groups of a parser's arguments and options: each as it is typed, and its help."""
    form = parser._get_formatter()  # noqa: SLF001  # argparse has no public way to a row of its help
    for group in parser._action_groups:  # noqa: SLF001  # see above
        rows = [
            (form._format_action_invocation(each), form._expand_help(each) if each.help else "")  # noqa: SLF001  # see above
            for each in group._group_actions  # noqa: SLF001  # see above
            if each.help is not argparse.SUPPRESS
            and not isinstance(each, argparse._SubParsersAction)  # noqa: SLF001  # see above
        ]
        if rows:
            named = group.title if group.title != "positional arguments" else "arguments"
            yield (named or "options").capitalize(), rows
