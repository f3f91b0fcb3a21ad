"""The layouts of kube-proxy's rules that tests go through."""

from __future__ import annotations

from typing import Final

from analyzer.kubeproxy.generate import Layout

#: Those whose flows `promises` foretells in whole; the others are held against captures.
PROMISED: Final = (Layout.V1_20, Layout.V1_25, Layout.V1_30, Layout.V1_36)
#: Those of nftables mode.
NFTABLES: Final = (Layout.V1_30, Layout.V1_36)
