"""Hooks of mkdocs: pages of the site that are no files of docs/.

The first page is the README, and each verb has a page that is made of the parser.
"""

from __future__ import annotations

import argparse
import html
from pathlib import Path, PurePosixPath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from release.commands import described, every_command, told, usage, walk

ROOT: Final = Path(__file__).parents[1]
#: Where files of the root, and those of docs/, are on the site; in this order.
_PLACES: Final = (("docs/", ""), ("(CHANGELOG.md)", "(changelog.md)"))

_COMMANDS: Final = "commands/index.md"
#: The program itself, whose page is the list, and what prints help.
_WITHOUT: Final = ("kubeodds", "kubeodds help")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add a page for each verb to the reference."""
    (reference,) = (each["Reference"] for each in config.nav or () if "Reference" in each)
    reference.append({"Verbs": [_COMMANDS, *(_path(each.prog) for each in verbs())]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    made = {"index.md": first_page(), "changelog.md": changes, _COMMANDS: commands()}
    for name, text in {**made, **{_path(each.prog): page(each) for each in verbs()}}.items():
        files.append(File.generated(config, name, content=text))
    return files


def first_page() -> str:
    """Return the README, whose links lead to pages of the site."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for before, after in _PLACES:
        text = text.replace(before, after)
    return text


def verbs() -> list[argparse.ArgumentParser]:
    """Return the parsers of all verbs, each before those below it."""
    return [each for each in walk(every_command()) if each.prog not in _WITHOUT]


def commands() -> str:
    """Return the page that lists the verbs, and says what each is for."""
    rows = "".join(
        f"| [`{each.prog}`]({PurePosixPath(_path(each.prog)).name}) | {_text(says)} |\n"
        for each, says in described(every_command())
        if each.prog not in _WITHOUT
    )
    return (
        "# Verbs\n\nEach page says what `kubeodds help VERB` says.\n\n"
        f"| verb | does |\n|---|---|\n{rows}"
    )


def page(parser: argparse.ArgumentParser) -> str:
    """Return the page of one verb: usage, arguments, options, examples."""
    parts = [f"# {parser.prog}\n", f"{_text(_sentence(parser.description or ''))}\n"]
    parts.append(f"## Usage\n\n```text\n{usage(parser)}\n```\n")
    below = [(each, says) for each, says in described(parser) if each is not parser]
    if below:
        rows = "".join(
            f"| [`{each.prog}`]({PurePosixPath(_path(each.prog)).name}) | {_text(says)} |\n"
            for each, says in below
        )
        parts.append(f"## Verbs\n\n| verb | does |\n|---|---|\n{rows}")
    for title, rows_of in told(parser):
        rows = "".join(f"| `{_cell(name)}` | {_text(says)} |\n" for name, says in rows_of)
        parts.append(
            f"## {title}\n\n| {title.lower().removesuffix('s')} | says |\n|---|---|\n{rows}"
        )
    if parser.epilog:
        parts.append(f"{_text(parser.epilog)}\n")
    examples = getattr(parser, "examples", ())
    if examples:
        lines = "\n".join(examples)
        parts.append(f"## Examples\n\n```sh\n{lines}\n```\n")
    return "\n".join(parts)


def _path(command: str) -> str:
    """Return where the page of a command is: ``commands/cluster-drift.md``."""
    return f"commands/{'-'.join(command.split()[1:]) or 'kubeodds'}.md"


def _text(says: str) -> str:
    """Return a text as Markdown that shows it as it is, also in a table; code stays code."""
    # What stands between backticks is every second part.
    parts = " ".join(says.split()).split("`")
    if len(parts) % 2 == 0:
        parts = ["&#96;".join(parts)]
    return "".join(f"`{_cell(e)}`" if at % 2 else _plain(e) for at, e in enumerate(parts))


def _plain(text: str) -> str:
    found = html.escape(text, quote=False)
    for sign in "\\*_|[]{}~":
        found = found.replace(sign, f"&#{ord(sign)};")
    return found


def _sentence(says: str) -> str:
    return f"{says[:1].upper()}{says[1:]}" + ("" if says.endswith(".") else ".")


def _cell(code: str) -> str:
    return code.replace("|", "\\|")
