"""Two control-plane nodes."""

from __future__ import annotations

from analyzer.advice.measure import Measure, Subject
from analyzer.advice.measures.masters import masters

MEASURE = Measure(
    name="second-master",
    says="two masters",
    subject=Subject.API,
    change=masters(2),
    unsaid=("two members of etcd survive no more failures than one",),
)
