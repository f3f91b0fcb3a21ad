"""One trial for each seed: a dump made of a capture, and what is answered of it, judged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.support.foreign.edits import edited
from tests.support.foreign.ground import Ground, Grounds
from tests.support.foreign.judging import faults
from tests.support.foreign.pieces import pieces_faults
from tests.support.foreign.rows import Writer, split


@dataclass(frozen=True)
class Found:
    """A dump that was answered wrongly.

    Attributes:
        texts: the dump and what stands beside it, as given and with the chains that it lacks.
        asked_kind: the kind of trial that was asked for, if any was.
    """

    seed: int
    kind: str
    ground: str
    texts: tuple[str, ...]
    faults: tuple[str, ...]
    asked_kind: str | None = None

    def kept(self) -> list[str]:
        """Write the dumps to files, and return their names."""
        folder = Path(tempfile.mkdtemp(prefix="foreign-"))
        names = [folder / f"{at}-{self.seed}.txt" for at, _ in enumerate(self.texts)]
        for name, text in zip(names, self.texts, strict=True):
            name.write_text(text)
        return [str(name) for name in names]


def tried(seed: int, kind: str | None = None, grounds: Grounds | None = None) -> Found | None:
    """Try what a seed stands for; None: what is answered is right."""
    random = Random(seed)  # to repeat what was found
    chosen = random.choice(list(TRIALS)) if kind is None else kind
    ground, texts, found = TRIALS[chosen](random, grounds or Grounds())
    if not found:
        return None
    place = f"{ground.path.parent.parent.name}/{ground.path.parent.name}"
    return Found(seed, chosen, place, texts, tuple(found), kind)


_Tried = tuple[Ground, tuple[str, ...], list[str]]


def _iptables(random: Random, grounds: Grounds) -> _Tried:
    ground = grounds.one(random, nft=False)
    writer = Writer(ground, random)
    text = writer.iptables()
    shown = writer.shown(text)
    view = ground.view(shown, plainly=random.random() < 0.8)
    return ground, (shown, text), list(faults(ground, (text,), view, random))


def _nft(random: Random, grounds: Grounds) -> _Tried:
    ground = grounds.one(random, nft=True)
    writer = Writer(ground, random)
    made = writer.nft()
    texts = (made.text, *made.beside)
    shown = [writer.shown(each) for each in texts]
    view = ground.view(shown[0], shown[1:], plainly=random.random() < 0.8)
    return ground, (*shown, *texts), list(faults(ground, texts, view, random))


def _beside(random: Random, grounds: Grounds) -> _Tried:
    """Rules in two files are answered as in one; nft's beside iptables' by the interpreters."""
    ground = grounds.one(random, nft=False)
    writer = Writer(ground, random)
    whole = writer.iptables()
    first, second = split(whole, random)
    texts = (first, second) if second else (first,)
    one, two = ground.view(whole, plainly=False), ground.view(texts[0], texts[1:])
    found = list(_unlike(one.services, two.services))
    nft = writer.nft_table()
    shown = writer.shown(whole), writer.shown(nft)
    view = ground.view(shown[0], shown[1:])
    found += faults(ground, (whole, nft), view, random, flows=20)
    return ground, (*shown, whole, nft, *texts), found


def _unlike(one: tuple[object, ...], two: tuple[object, ...]) -> Iterator[str]:
    if one != two:
        yield "in two files the Services are not as in one"


def _between(random: Random, grounds: Grounds) -> _Tried:
    """Others write to flows between DNAT and the chains that change sources."""
    nft = random.random() < 0.5
    ground = grounds.one(random, nft=nft)
    writer = Writer(ground, random)
    text = ground.text if nft or random.random() < 0.5 else writer.iptables()
    texts = text, writer.writing_table()
    shown = text, writer.shown(texts[1])
    view = ground.view(shown[0], shown[1:])
    return ground, (*shown, *texts), list(faults(ground, texts, view, random, flows=20))


def _piece(random: Random, grounds: Grounds) -> _Tried:
    ground = grounds.one(random, nft=False)
    text, found = pieces_faults(ground, random)
    return ground, (text, ground.text), found


def _edited(random: Random, grounds: Grounds) -> _Tried:
    """Rows of kube-proxy's own are lost, moved or changed, in a dump that is whole."""
    ground = grounds.one(random, nft=random.random() < 0.5)
    text = edited(ground.text, random, nft=ground.is_nft)
    view = ground.view(text, plainly=random.random() < 0.8)
    return ground, (text,), list(faults(ground, (text,), view, random, before=ground.text))


#: Kinds of trials.
TRIALS: dict[str, Callable[[Random, Grounds], _Tried]] = {
    "iptables": _iptables,
    "nft": _nft,
    "beside": _beside,
    "between": _between,
    "piece": _piece,
    "edited": _edited,
}
