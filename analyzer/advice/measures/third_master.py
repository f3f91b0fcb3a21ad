"""Three control-plane nodes."""

from __future__ import annotations

from analyzer.advice.measure import Measure, Subject
from analyzer.advice.measures.masters import masters

MEASURE = Measure(
    name="third-master",
    says="three masters",
    subject=Subject.API,
    change=masters(3),
    unsaid=("what is in front of several API servers, unless --api-load-balancer does",),
)
