"""The screen of ``explore``: nodes and zones to mark as dead, beside the losses of Services.

Numbers are those of ``loss`` with the same nodes dead, recomputed at each key. Every text of a
dump is shown as it is: textual's markup is turned off for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from rich.segment import Segment
from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import DataTable, Footer, Input, SelectionList, Static
from textual.widgets.selection_list import Selection

from analyzer.errors import UsageError
from analyzer.failure.loss import ServiceLoss, losses
from analyzer.failure.models import Dead, dead
from analyzer.failure.route_loss import Count
from analyzer.kubeproxy.view import Route, ServicePort, Source, View
from analyzer.model.cluster import Cluster
from analyzer.model.text import printable
from analyzer.model.value import replace, value
from analyzer.reports.answers import TreeAnswer
from analyzer.reports.document import Line
from analyzer.reports.loss_rows import brief
from analyzer.reports.loss_summary import doubts, totals
from analyzer.reports.loss_unresolved import unresolved
from analyzer.reports.loss_words import WORDS, by_harm, dead_words
from analyzer.reports.terminal import cell_text, in_columns
from analyzer.reports.tree_text import render as tree_of
from analyzer.semantics.tree import Tree

#: ServicePorts that are shown; a filter reaches the others.
_MOST: Final = 1_000
#: Characters of the table beside its cells: padding, and the bar by which it scrolls.
_BESIDE: Final = 4
_HELP: Final = """\
Tab            between nodes, zones and Services
j k, arrows    move
Space          mark a node or a zone dead, or alive again
Enter          the same for a node or a zone; for a Service, its tree
/              filter Services by name; Escape ends it
a              as given on the command line
c              nothing dead
?              this
q, Ctrl-C      quit
"""


@value(kw_only=True)
class ExplorerInput:
    """What to explore.

    Attributes:
        dead: what is dead to begin with.
        is_whole: whether nothing is known to be left out.
        tree: of a route of a ServicePort.
    """

    view: View
    services: tuple[ServicePort, ...]
    cluster: Cluster
    dead: Dead
    count: Count
    is_whole: bool
    warnings: tuple[str, ...]
    tree: Callable[[ServicePort, Route], Tree]


class _Shown(ModalScreen[None]):  # type: ignore[misc]  # textual may not be installed
    """A text shown above the rest until it is closed."""

    BINDINGS: ClassVar = [
        Binding("escape,q,question_mark", "dismiss", "Back"),
        Binding("j", "down", show=False),
        Binding("k", "up", show=False),
    ]

    def __init__(self, text: Text) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Yield the text, which scrolls."""
        with VerticalScroll(id="shown"):
            yield Static(self._text)
        yield Footer()

    def action_down(self) -> None:
        """Move down."""
        self.query_one("#shown").scroll_down()

    def action_up(self) -> None:
        """Move up."""
        self.query_one("#shown").scroll_up()


class _Marks(SelectionList[str]):  # type: ignore[misc]  # textual may not be installed
    """Names that are marked or not, which shows without colour too."""

    def render_line(self, y: int) -> Strip:
        """Return a line, with an empty box if its name is not marked."""
        line = super().render_line(y)
        at = self.scroll_offset.y + y
        if at >= self.option_count or self.get_option_at_index(at).value in self.selected:
            return line
        left, inner, *rest = line
        return Strip([left, Segment(" " * len(inner.text), inner.style), *rest])


class _Services(DataTable[Text]):  # type: ignore[misc]  # textual may not be installed
    """The table, which says when there is another width to fit."""

    class Resized(Message):  # type: ignore[misc]  # textual may not be installed
        """The table has another size."""

    def on_resize(self) -> None:
        """Tell the program."""
        self.post_message(self.Resized())


class Explorer(App[None]):  # type: ignore[misc]  # textual may not be installed
    """The program."""

    TITLE = "kubeodds"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "#nodes"
    CSS = """
    #status { height: auto; max-height: 40%; padding: 0 1; }
    #side { width: 24; max-width: 40%; }
    SelectionList { height: auto; max-height: 65%; border-title-color: $foreground; }
    #zones { max-height: 35%; }
    #nodes:last-child { max-height: 100%; }
    #filter { display: none; }
    #filter.asked { display: block; }
    #shown { padding: 0 1; }
    """
    BINDINGS: ClassVar = [
        Binding("space", "mark", "Mark dead", show=False),
        Binding("slash", "filter", "Filter"),
        Binding("a", "as_asked", "As asked"),
        Binding("c", "nothing", "Nothing dead"),
        Binding("question_mark", "help", "Help"),
        Binding("escape", "back", "Back", show=False),
        Binding("j", "move('down')", show=False),
        Binding("k", "move('up')", show=False),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, asked: ExplorerInput) -> None:
        super().__init__()
        self._asked = asked
        self._filter = ""
        self._losses: list[ServiceLoss] = []
        self.nodes = sorted(asked.cluster.node_names)
        self.zones = sorted(asked.cluster.zones)

    def compose(self) -> ComposeResult:
        """Yield the status, the nodes, the table and the filter."""
        yield Static(id="status")
        with Horizontal():
            with Vertical(id="side"):
                yield self._list("nodes", self.nodes, self._asked.dead.nodes)
                if self.zones:
                    yield self._list("zones", self.zones, self._asked.dead.zones)
            yield _Services(id="services", cursor_type="row")
        yield Input(placeholder="part of a name", id="filter")
        yield Footer()

    def _list(self, kind: str, names: list[str], marked: Sequence[str]) -> _Marks:
        found = _Marks(
            *(Selection(Text(printable(name)), name, name in marked) for name in names), id=kind
        )
        found.border_title = kind
        return found

    def on_mount(self) -> None:
        """Show what is dead at the start."""
        self._show()

    @on(_Services.Resized)  # type: ignore[untyped-decorator]  # textual may not be installed
    def fit(self) -> None:
        """Fit the table to its new width."""
        self._fill()

    # --- what is dead ---------------------------------------------------------

    def _dead(self) -> Dead:
        asked = self._asked
        return dead(
            asked.view,
            asked.cluster,
            endpoints=asked.dead.named,
            nodes=self._marked("nodes", self.nodes),
            zones=self._marked("zones", self.zones),
        )

    def _marked(self, kind: str, names: list[str]) -> list[str]:
        selected = {name for found in self.query(f"#{kind}") for name in found.selected}
        return [name for name in names if name in selected]

    def on_selection_list_selected_changed(self) -> None:
        """Show what is lost with the nodes and zones that are marked now."""
        self._show()

    def _show(self) -> None:
        asked = self._asked
        try:
            died = self._dead()
        except UsageError as error:  # for example objects of another cluster
            self._losses = []
            self.query_one("#status", Static).update(Text(printable(str(error))))
            self._fill()
            return
        self._losses = by_harm(losses(asked.services, died, asked.count))
        marked = f"Dead: {dead_words(died)}" if died.is_anything else "Nothing marked dead."
        lines = [Line((marked,)), *doubts(died, asked.cluster)]
        lines.append(totals(self._losses, WORDS, is_whole=asked.is_whole))
        if not died.is_anything:
            lines += unresolved(self._losses)
        if died.takes(asked.view.node, asked.cluster):
            lines.append(
                Line(((f"These rules are from {asked.view.node}, which is dead: no new flows."),))
            )
        lines += [Line((f"Warning: {each}",)) for each in asked.warnings]
        told = Text("\n").join([cell_text(line.pieces) for line in lines])
        self.query_one("#status", Static).update(told)
        self._fill()

    def _wanted(self) -> list[ServiceLoss]:
        wanted = self._filter.lower()
        return [e for e in self._losses if wanted in e.service.name.text.lower()][:_MOST]

    def _fill(self) -> None:
        table = self.query_one(DataTable)
        at = table.cursor_row
        headings, rows = in_columns(brief(self._wanted()), table.size.width - _BESIDE)
        table.clear(columns=True)
        # Textual measures when it is idle: keys that come fast leave columns as wide as headings.
        for column, heading in enumerate(headings):
            cells = (row[column].cell_len for row in rows)
            table.add_column(heading, width=max(len(heading), max(cells, default=0)))
        for row in rows:
            table.add_row(*row)
        if rows:
            table.move_cursor(row=min(at, len(rows) - 1))

    # --- keys -------------------------------------------------------------------

    def action_mark(self) -> None:
        """Leave the key to a list, which has handled it if it has the focus."""
        self.query_one("#nodes").focus()

    def action_as_asked(self) -> None:
        """Mark dead what was marked at first."""
        for found in self.query(SelectionList):
            with found.prevent(SelectionList.SelectedChanged):
                found.deselect_all()
                for name in getattr(self._asked.dead, found.id):
                    found.select(name)
        self._show()

    def action_nothing(self) -> None:
        """Mark no node and no zone dead."""
        for found in self.query(SelectionList):
            found.deselect_all()

    def action_move(self, where: str) -> None:
        """Move in the widget that has the focus."""
        move = getattr(self.focused, f"action_cursor_{where}", None)
        if move is not None:
            move()

    def action_filter(self) -> None:
        """Prompt for a part of a name."""
        field = self.query_one("#filter", Input)
        field.add_class("asked")
        field.focus()

    def on_input_changed(self, event: Any) -> None:
        """Show Services with that part in their names."""
        self._filter = event.value
        self._fill()

    def on_input_submitted(self) -> None:
        """Go to the Services that are left."""
        self.query_one(DataTable).focus()

    def action_back(self) -> None:
        """Remove the filter."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.remove_class("asked")
        self.query_one(DataTable).focus()

    def action_help(self) -> None:
        """List the keys."""
        self.push_screen(_Shown(Text(_HELP)))

    def on_data_table_row_selected(self, event: Any) -> None:
        """Show where new flows from a pod to a ServicePort go."""
        asked = self._asked
        service = self._wanted()[event.cursor_row].service
        routes = [*service.every_route(Source.POD)] or [*service.routes][:1]
        answer = TreeAnswer(
            cluster=asked.cluster,
            view=replace(asked.view, diagnostics=()),
            dead=self._dead(),
            trees=tuple((service, route, asked.tree(service, route)) for route in routes),
            diagnostics=(),
        )
        lines = [cell_text(b.pieces) for b in tree_of(answer).blocks if isinstance(b, Line)]
        self.push_screen(_Shown(Text("\n").join(lines)))
