"""``-m statistic``: match at random, or every n-th packet.

Source: iptables-extensions(8); extensions/libxt_statistic.c.
"""

from __future__ import annotations

from typing import Final, NoReturn

from analyzer.model.iptables.matches import Match, MatchNot, MatchNth, MatchRandom
from analyzer.model.probability import XT_STATISTIC_BITS, threshold_from_text
from analyzer.parsers.words import Word, Words
from analyzer.parsers.xt.values import number

_COUNT: Final = number(most=0xFFFFFFFF)


class Statistic:
    """Parses and renders both modes."""

    def parse(self, words: Words) -> Match:
        """Read ``--mode random [!] --probability p`` or ``--mode nth [!] --every n``.

        Raises:
            ParseError: the mode is neither of these, or a number is out of range.
        """
        self._option(words, "--mode")
        mode = words.take("random or nth")
        negated = words.at_negation()
        if negated:
            words.take("!")
        if mode.text == "random":
            match: Match = self._random(words)
        elif mode.text == "nth":
            match = self._nth(words)
        else:
            words.fail("expected random or nth", span=mode.span)
        return MatchNot(match) if negated else match

    def _random(self, words: Words) -> MatchRandom:
        self._option(words, "--probability")
        value = words.take("a number from 0 to 1")
        try:
            return MatchRandom(threshold_from_text(value.text))
        except ValueError:
            words.fail("expected a number from 0 to 1", span=value.span)

    def _nth(self, words: Words) -> MatchNth:
        self._option(words, "--every")
        every_word = words.peek()
        every = _COUNT.read(words)
        if every == 0:
            self._refuse(words, f"expected a count above 0, not {every_word}")
        packet = 0
        if words.peek() == "--packet":
            words.take("--packet")
            packet = _COUNT.read(words)
            if packet >= every:
                self._refuse(words, f"expected a packet below {every}")
        return MatchNth(every, packet)

    def _refuse(self, words: Words, message: str) -> NoReturn:
        words.position -= 1
        words.fail(message, span=words.take("a number").span)

    def _option(self, words: Words, text: str) -> Word:
        option = words.take(text)
        if option.text != text:
            words.fail(f"expected {text}", span=option.span)
        return option

    def render(self, value: Match) -> str:
        """Return the options with the digits that iptables-save prints."""
        negation = "! " if isinstance(value, MatchNot) else ""
        inner = value.match if isinstance(value, MatchNot) else value
        if isinstance(inner, MatchRandom):
            probability = inner.threshold / (1 << XT_STATISTIC_BITS)
            return f"--mode random {negation}--probability {probability:.11f}"
        if isinstance(inner, MatchNth):
            return f"--mode nth {negation}--every {inner.every} --packet {inner.packet}"
        raise AssertionError(value)


STATISTIC: Final = Statistic()
