"""What the routes of Services rest on besides the dump: said only where it matters."""

from __future__ import annotations

from analyzer.model.diagnostics import Diagnostic, Severity

#: The code of what is assumed.
ASSUMED = "assumed"


def no_bridge_port(file: str) -> Diagnostic:
    """Return what is assumed of flows from outside where rules match on ports of bridges.

    Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``, up to 1.21: of flows to
    an external IP those are meant that come from outside, not from a pod behind a bridge.
    """
    from analyzer.semantics.assumptions import NO_BRIDGE_PORT  # few dumps need it

    return Diagnostic(
        severity=Severity.INFO,
        code=ASSUMED,
        message=NO_BRIDGE_PORT,
        file=file,
    )
