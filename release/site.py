"""Hooks of mkdocs: pages of the site that are no files of docs/.

The first page is the README, and each verb's help stands on a page as the program prints it.
"""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from release.commands import every_command, walk

ROOT: Final = Path(__file__).parents[1]
#: Where files of the root, and those of docs/, are on the site; in this order.
_PLACES: Final = (("docs/", ""), ("(CHANGELOG.md)", "(changelog.md)"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, text in (
        ("index.md", first_page()),
        ("changelog.md", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")),
        ("commands.md", commands()),
    ):
        files.append(File.generated(config, name, content=text))
    return files


def first_page() -> str:
    """Return the README, whose links lead to pages of the site."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for before, after in _PLACES:
        text = text.replace(before, after)
    return text


def commands() -> str:
    """Return the page of all verbs: the help of each."""
    return "# Commands\n\nThe help of each verb, which `kubeodds help VERB` prints.\n" + "".join(
        f"\n## {parser.prog}\n\n```console\n$ {parser.prog} --help\n{helped(parser.prog)}```\n"
        for parser in walk(every_command())
        if parser.prog != "kubeodds help"
    )


def helped(command: str) -> str:
    """Return what the program prints for ``--help``, on a terminal of 90 columns."""
    from analyzer import cli

    columns, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "90"
    shown = io.StringIO()
    try:
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            cli.main([*command.split()[1:], "--help"])
    finally:
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
    return shown.getvalue()
