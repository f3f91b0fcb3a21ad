"""The layouts of kube-proxy's rules that tests go through."""

from __future__ import annotations

from typing import Final

from analyzer.kubeproxy.generate import RulesLayout

#: Those whose flows `promises` foretells in whole; the others are held against captures.
PROMISED: Final = (RulesLayout.V1_20, RulesLayout.V1_25, RulesLayout.V1_30, RulesLayout.V1_36)
#: Those of nftables mode.
NFTABLES: Final = (RulesLayout.V1_30, RulesLayout.V1_36)
