from __future__ import annotations

from analyzer.reports.document import Span, Style, spans


def test_a_plain_string_is_a_plain_span() -> None:
    assert spans("text") == (Span("text", Style.PLAIN),)


def test_pieces_of_a_cell_keep_their_styles() -> None:
    bad = Span("DEAD", Style.BAD)
    assert spans(bad) == (bad,)
    assert spans(("10.0.0.1 ", bad)) == (Span("10.0.0.1 "), bad)
    assert spans(()) == ()
