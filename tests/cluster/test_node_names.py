"""Full names and first parts of names mean one node only where they can mean no other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analyzer.cluster.node_names import NodeNames

LABEL = st.sampled_from(["a", "b", "n-1"])
NAME = st.builds(".".join, st.lists(LABEL, min_size=1, max_size=3))


@given(st.sets(NAME, max_size=6), NAME)
def test_who_is_meant_is_the_only_one_that_can_be(known: set[str], name: str) -> None:
    found = NodeNames(known).called(name)
    if name in known:
        assert found == name
        return
    alike = [each for each in known if each.partition(".")[0] == name.partition(".")[0]]
    short = "." not in name or (len(alike) == 1 and "." not in alike[0])
    numbered = name.rpartition(".")[2][:1].isdigit()
    assert found == (alike[0] if len(alike) == 1 and short and not numbered else None)


def test_a_number_behind_a_point_is_no_domain() -> None:
    assert NodeNames(["node"]).called("node.1") is None
    assert NodeNames(["node"]).called("node.example.com") == "node"
    assert NodeNames(["node.a.com", "node.b.com"]).called("node") is None
