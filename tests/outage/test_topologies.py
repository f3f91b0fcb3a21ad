"""Which control plane it is: what options say goes before what objects say."""

from __future__ import annotations

import pytest

from analyzer.arguments.control_plane import PRESETS as NAMES
from analyzer.errors import UsageError
from analyzer.model.roles import Roles
from analyzer.outage.control_plane import ControlPlaneTopology, Etcd, LoadBalancer
from analyzer.outage.topologies import PRESETS, GivenTopology, topology

NODES = ("m1", "m2", "m3", "w1")
LABELLED = Roles(control_plane=("m1", "m2", "m3"))


def of(said: GivenTopology, roles: Roles = LABELLED) -> ControlPlaneTopology:
    found = topology(said, roles, NODES)
    assert found is not None
    return found


def test_without_a_label_or_a_word_it_is_not_known() -> None:
    assert topology(GivenTopology(), Roles(), NODES) is None


def test_labels_do_not_say_where_etcd_is_nor_what_is_in_front() -> None:
    found = of(GivenTopology())
    assert (found.api, found.etcd) == (("m1", "m2", "m3"), Etcd.UNKNOWN)
    assert found.load_balancer is LoadBalancer.UNKNOWN
    assert len(found.assumed) == 2


def test_one_api_server_has_nothing_in_front() -> None:
    assert of(GivenTopology(control_plane=("m2",))).load_balancer is LoadBalancer.NONE


def test_pods_go_before_labels_and_options_before_pods() -> None:
    roles = Roles(
        control_plane=("m1", "m2", "m3"),
        api=("m1", "m2"),
        etcd=("m3",),
        controllers=("m1",),
        schedulers=("m2",),
    )
    found = of(GivenTopology(), roles)
    assert (found.api, found.members, found.etcd) == (("m1", "m2"), ("m3",), Etcd.NODES)
    assert (found.controllers, found.schedulers) == (("m1",), ("m2",))
    said = of(GivenTopology(control_plane=("m1",), etcd=("m1", "m2")), roles)
    assert (said.api, said.members) == (("m1",), ("m1", "m2"))
    assert said.controllers == said.schedulers == ("m1",)


@pytest.mark.parametrize(
    ("preset", "etcd", "balancer"),
    [
        ("kubeadm-stacked", Etcd.NODES, LoadBalancer.UNKNOWN),
        ("external-etcd", Etcd.EXTERNAL, LoadBalancer.UNKNOWN),
        ("k3s", Etcd.NODES, LoadBalancer.CLIENT_SIDE),
        ("one-load-balancer", Etcd.NODES, LoadBalancer.EXTERNAL),
        ("client-side-load-balancer", Etcd.NODES, LoadBalancer.CLIENT_SIDE),
    ],
)
def test_presets(preset: str, etcd: Etcd, balancer: LoadBalancer) -> None:
    found = of(GivenTopology(preset=preset))
    assert (found.etcd, found.load_balancer) == (etcd, balancer)
    assert found.members == (() if etcd is Etcd.EXTERNAL else found.api)


def test_the_command_line_offers_every_preset() -> None:
    assert tuple(PRESETS) == NAMES


def test_words_for_what_is_no_node() -> None:
    assert of(GivenTopology(etcd=("external",))).etcd is Etcd.EXTERNAL
    assert of(GivenTopology(load_balancer=("external",))).load_balancer is LoadBalancer.EXTERNAL
    assert (
        of(GivenTopology(load_balancer=("client-side",))).load_balancer is LoadBalancer.CLIENT_SIDE
    )
    found = of(GivenTopology(load_balancer=("w1", "m1")))
    assert (found.load_balancer, found.balancers) == (LoadBalancer.NODES, ("m1", "w1"))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (GivenTopology(etcd=("m9",)), "--etcd m9: no such node is known; there are external, m1"),
        (
            GivenTopology(control_plane=("x",)),
            "--control-plane x: no such node is known; there are ",
        ),
        (GivenTopology(load_balancer=("w2",)), "--api-load-balancer w2: no such node is known; "),
        (
            GivenTopology(etcd=("external", "m1")),
            "--etcd external: cannot be combined with names of nodes",
        ),
        (
            GivenTopology(preset="kubeadm-stacked", etcd=("external",)),
            "--etcd external: not with --topology kubeadm-stacked",
        ),
        (
            GivenTopology(preset="external-etcd", etcd=("m1",)),
            "--etcd m1: not with --topology external-etcd",
        ),
    ],
)
def test_what_is_refused(said: GivenTopology, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        of(said)
    assert str(raised.value).startswith(message)


def test_options_without_a_control_plane_are_refused() -> None:
    with pytest.raises(UsageError, match="name them with --control-plane"):
        topology(GivenTopology(etcd=("w1",)), Roles(), NODES)
