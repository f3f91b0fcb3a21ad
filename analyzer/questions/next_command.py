"""Commands to run next: the same dumps, and what was said about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from analyzer.inputs.files import Member
from analyzer.parsers.contents import MOST_BYTES
from analyzer.semantics.assumed import BY_NAME, DEFAULTS, POD_INTERFACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

#: Options that every verb takes that reads rules, and the names under which they are kept.
OF_INPUT: Final = {
    "--input-format": "input_format",
    "--with": "others",
    "--table": "table",
    "--objects": "objects",
    "--node": "node",
    "--node-of": "node_of",
    "--node-ip": "node_ip",
    "--ipsets": "ipsets",
    "--addresses": "addresses",
    "--routes": "routes",
}
#: Options that say what is dead, and of which Services.
OF_DEAD: Final = {
    "--dead": "dead",
    "--dead-node": "dead_node",
    "--dead-zone": "dead_zone",
    "--service": "service",
    "--namespace": "namespace",
}
#: Bytes that stand for themselves between ``$'`` and ``'``.
_PLAIN: Final = frozenset(range(0x20, 0x7F)) - set(b"'\\")
#: The value of an assumption that leaves open what it is about.
_UNKNOWN: Final = "unknown"


def command(options: SimpleNamespace, verb: str, dumps: Sequence[str], more: Sequence[str]) -> str:
    """Return what asks `verb` of the same input, with `more` words."""
    words = ["kubeodds", verb, *dumps, *_given(options, OF_INPUT)]
    words += [*_assumed(options.assumed), *more]
    if options.max_input != MOST_BYTES:
        words += ["--max-input", str(options.max_input)]
    return joined(words)


def joined(words: Iterable[str]) -> str:
    """Return words as a shell reads them, in characters that may be shown."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """Return a word in quotes if it needs them, as bash, ksh and busybox read it."""
    import shlex

    if word.isprintable():
        return shlex.quote(word)
    told = (
        chr(byte) if byte in _PLAIN else f"\\x{byte:02x}"
        for byte in word.encode("utf-8", "surrogateescape")
    )
    return f"$'{''.join(told)}'"


def dumps_of(options: SimpleNamespace) -> list[str]:
    """Return the dumps as given on the command line: of files in a bundle, the bundle."""
    names = (e.bundle if isinstance(e, Member) else str(e) for e in options.dumps)
    return list(dict.fromkeys(names))


def words_of_dead(options: SimpleNamespace) -> list[str]:
    """Return the options that say what is dead, and of which Services."""
    return [*_given(options, OF_DEAD)]


def _given(options: SimpleNamespace, names: Mapping[str, str]) -> Iterator[str]:
    """Yield the words of options; files of a bundle are read from it again."""
    for option, name in names.items():
        given = getattr(options, name)
        several = given if isinstance(given, (list, tuple)) else [given] if given else []
        for each in several:
            if isinstance(each, tuple):
                yield from (option, "=".join(map(str, each)))
            elif not isinstance(each, Member):
                yield from (option, str(each))


def _assumed(assumed: Mapping[str, str]) -> Iterator[str]:
    """Yield the words that make the same assumptions, of those that are not the default."""
    base: Mapping[str, str] = DEFAULTS
    if len(DEFAULTS.keys() - assumed.keys()) > 1:
        yield "--assume-nothing"
        base = {}
    for name in DEFAULTS:
        value = assumed.get(name, _UNKNOWN)
        if value == base.get(name, _UNKNOWN):
            continue
        if name == POD_INTERFACE and value not in BY_NAME[name].values:
            yield from ("--pod-interface", value.replace(" ", ","))
        else:
            yield from ("--assume", f"{name}={value}")
