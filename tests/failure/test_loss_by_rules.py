"""Losses beside rules that end flows, or may: they contain what is lost however rules are read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.loss import LossState, ServiceLoss, service_loss
from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint
from tests.support.dumps import chance, cluster_ip, dump, endpoint, only_service
from tests.support.effort import examples
from tests.support.routes import ENDPOINTS, PROBABILITIES, UNREAD

_FEW = ENDPOINTS[:3]
#: Which flows a rule matches, and where it stands; in nat, before rules of kube-proxy.
_PLACES = (
    "raw PREROUTING",
    "mangle PREROUTING",
    "nat PREROUTING",
    "filter FORWARD",
    *(f"filter FORWARD -d {each.address}/32" for each in _FEW),
    *(f"filter FORWARD -s {each.address}/32" for each in _FEW),
)
_MASK = "0x8000/0x8000"


@dataclass(frozen=True)
class Row:
    """A rule that ends flows: some of them, or those that a match holds for that nobody reads."""

    place: str
    target: str
    probability: str
    unread: bool

    def text(self, *, unread: bool) -> tuple[str, str]:
        """Return its table and the rule."""
        table, chain, *matches = self.place.split()
        drawn = f"-m statistic --mode random --probability {self.probability}"
        parts = ["-A", chain, *matches, *([UNREAD] if unread else [])]
        return table, " ".join([*parts, *([drawn] if self.probability else []), "-j", self.target])


@dataclass(frozen=True, kw_only=True)
class Case:
    """A Service of three endpoints: rules that draw them, and rules of others around these.

    Attributes:
        missing: endpoints whose chains are missing.
    """

    draws: Sequence[tuple[str, bool, int]]
    missing: Collection[int]
    rows: Sequence[Row]
    kind: str
    refuses: bool

    def dump(self, holds: Sequence[bool] | None) -> str:
        """Return the rules; with `holds`, whole, and as if each unread match held or did not."""
        said = iter(holds or ())
        missing = set(self.missing) if holds is None else set()
        draws = [
            chance(p, f"KUBE-SEP-{n}", match=UNREAD if unread and holds is None else "")
            for p, unread, n in self.draws
            if holds is None or not unread or next(said)
        ]
        tables: dict[str, list[str]] = {}
        for row in self.rows:
            if holds is None or not row.unread or next(said):
                table, text = row.text(unread=row.unread and holds is None)
                tables.setdefault(table, []).append(text)
        nat = dump(
            cluster_ip().replace("cluster IP", self.kind),
            "-A KUBE-SVC-A",
            *draws,
            *(["-A KUBE-SVC-A -j KUBE-MARK-DROP"] if self.refuses else []),
            f"-A KUBE-MARK-DROP -j MARK --set-xmark {_MASK}",
            *(endpoint(f"KUBE-SEP-{n}", f"10.0.0.{n}:80") for n in {1, 2, 3} - missing),
            missing={f"KUBE-SEP-{n}" for n in missing},
        )
        first = "-A PREROUTING -j KUBE-SERVICES"
        others = "\n".join([*tables.pop("nat", ()), first])
        filters = tables.setdefault("filter", [])
        filters.append(f"-A FORWARD -m mark --mark {_MASK} -j KUBE-FIREWALL")
        filters.append("-A KUBE-FIREWALL -j DROP")
        base = {"filter": ":FORWARD ACCEPT [0:0]\n:KUBE-FIREWALL - [0:0]"}
        return nat.replace(first, others, 1) + "".join(
            "\n".join([f"*{name}", base.get(name, ":PREROUTING ACCEPT [0:0]"), *rows, "COMMIT", ""])
            for name, rows in tables.items()
        )


cases = st.builds(
    Case,
    draws=st.lists(
        st.tuples(
            st.sampled_from([*PROBABILITIES, "1.00000000000"]), st.booleans(), st.integers(1, 3)
        ),
        min_size=1,
        max_size=3,
    ),
    missing=st.sets(st.integers(1, 3), max_size=1),
    rows=st.lists(
        st.builds(
            Row,
            st.sampled_from(_PLACES),
            st.sampled_from(("DROP", "DROP", "ACCEPT")),
            st.sampled_from(("", *PROBABILITIES)),
            st.booleans(),
        ),
        max_size=3,
    ),
    kind=st.sampled_from(("cluster IP", "cluster IP", "external IP")),
    refuses=st.booleans(),
)


@examples(40, 3_000)
@given(
    cases,
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.sets(st.sampled_from(_FEW)),
    st.sets(st.sampled_from(_FEW)),
    st.booleans(),
)
def test_whatever_unread_rules_do_the_loss_is_within_its_bounds(
    case: Case, holds: list[bool], dead: set[Endpoint], uncertain: set[Endpoint], die: bool
) -> None:
    marked = Dead(
        endpoints=frozenset(dead),
        uncertain=frozenset(uncertain - dead),
        nodes=("n",) if uncertain else (),
    )
    # If nothing is dead, flows that may end anywhere are not counted as lost.
    is_told = marked.is_anything or not case.missing
    told = lost(case.dump(None), marked)
    truth = lost(case.dump(holds), Dead(endpoints=frozenset(dead | (uncertain if die else set()))))
    of = {(r.route.frontend, r.route.source, r.route.network): r for r in truth.routes}
    for each in told.routes:
        found = of.get((each.route.frontend, each.route.source, each.route.network))
        if found is not None:
            assert each.loss.lower <= found.loss.lower
            assert each.survives.lower <= found.survives.lower
            assert found.survives.upper <= each.survives.upper
            if is_told:
                assert found.loss.upper <= each.loss.upper
    assert told.worst.lower <= max(each.loss.lower for each in truth.routes)
    if is_told:
        assert truth.worst.upper <= told.worst.upper
    if told.state is LossState.SILENCED:
        assert truth.state is LossState.SILENCED
    elif told.state is LossState.DEGRADED:
        assert truth.state in {LossState.SILENCED, LossState.DEGRADED}


def lost(text: str, dead: Dead) -> ServiceLoss:
    return service_loss(only_service(text), dead)
