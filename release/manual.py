"""Manual pages: one for the program and one for each verb, made of the parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from argparse_manpage.manpage import Manpage

from analyzer import __version__
from analyzer.arguments.parser import Parser
from release.commands import columns, descriptions, every_command, verbs_of

#: Below the root of the project.
FOLDER: Final = Path("man")
_STATUSES: Final = (
    ("0", "done"),
    ("1", "the answer is no: a threshold is broken, something differs, a measurement disagrees"),
    ("2", "bad input or usage"),
    ("3", "the dump was read only in part, under --strict"),
    ("130", "interrupted"),
)


def pages() -> Iterator[tuple[Path, str]]:
    """Give each manual page and where it is kept, below the root of the project."""
    # argparse fits its lines to the terminal; the pages shall not depend on ours.
    with columns(80):
        whole = every_command()
        verbs = {n: p for n, p in verbs_of(whole).items() if n != "help"}
        says = descriptions(whole)
        verbs_of(whole).clear()
        found = [_page(whole, "what share of new connections kube-proxy loses", sorted(verbs))]
        for name, parser in verbs.items():
            said, below = descriptions(parser), dict(verbs_of(parser))
            # A verb of verbs would be told with all of theirs; they have pages of their own.
            verbs_of(parser).clear()
            found.append(_page(parser, says[name], [f"{name}-{verb}" for verb in below]))
            found += [_page(each, said[verb], ()) for verb, each in below.items()]
    yield from found


def _page(parser: argparse.ArgumentParser, says: str, verbs: Sequence[str]) -> tuple[Path, str]:
    name = parser.prog.replace(" ", "-")
    page = Manpage(parser, {"project_name": "kubeodds", "version": __version__})
    page.prog, page.description, page.manual = name, says, "kubeodds"
    # A page says the same whenever it is made.
    page.date = ""
    if isinstance(parser, Parser) and parser.examples:
        lines = "\n".join(_plain(line) for line in parser.examples)
        page.add_section("examples", ">", f".nf\n{lines}\n.fi")
    statuses = (parser.statuses if isinstance(parser, Parser) else ()) or _STATUSES
    rows = "\n".join(f".TP\n{status}\n{_plain(means)}" for status, means in statuses)
    page.add_section("exit status", ">", rows)
    also = [f"kubeodds-{verb}" for verb in verbs] or ["kubeodds"]
    told = ",\n".join(f".BR {_plain(each)} (1)" for each in also)
    page.add_section("see also", ">", told)
    # What a page calls arguments by their place are verbs, of the program and of the lab.
    head, synopsis, rest = str(page).partition(".SH SYNOPSIS\n")
    usage, section, below = rest.partition("\n.SH ")
    # A line before an option that is as wide as the page has too few words to fill it.
    text = f"{head}{synopsis}.ad l\n{usage}\n.ad b{section}{below}"
    # A quote in front of a line would make it a request to roff.
    text = text.replace("\n'", "\n\\&'")
    return FOLDER / f"{name}.1", text.replace("POSITIONAL ARGUMENTS", "VERBS") if verbs else text


def _plain(text: str) -> str:
    """Return a text that roff shows as it is."""
    return text.replace("\\", "\\e").replace("-", "\\-")
