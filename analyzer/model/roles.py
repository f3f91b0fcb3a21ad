"""Which nodes run which part of the control plane, as far as the Kubernetes API says."""

from __future__ import annotations

from analyzer.model.value import value


@value(kw_only=True)
class Roles:
    """Names of nodes by what runs on them; None if nothing says.

    Attributes:
        control_plane: nodes with the control plane's role label.
        etcd: nodes with a member of etcd.
        api: nodes with an API server.
        controllers: nodes with a kube-controller-manager.
        schedulers: nodes with a kube-scheduler.
    """

    control_plane: tuple[str, ...] = ()
    etcd: tuple[str, ...] | None = None
    api: tuple[str, ...] | None = None
    controllers: tuple[str, ...] | None = None
    schedulers: tuple[str, ...] | None = None
