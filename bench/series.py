"""Whether one series of measurements is worse than another by more than their noise. Pure.

The two are measured in turns, so their values come in pairs, and what the machine does otherwise meets both of a pair.
What counts is the ratio of each pair: the median of all, beside how far they lie from it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

OF_A_NORMAL = 1.4826
"""Times the median distance from the median: the standard deviation, where the noise is a normal one."""
OF_A_MEDIAN = 1.2533
"""A median's own deviation is this times the deviation of one value, by the root of their number."""
DEVIATIONS = 3.0
LEAST = 0.03
"""A change below three per cent is never named."""


@dataclass(frozen=True, slots=True)
class Change:
    """What two series say: `ratio` is how many times as good the second is, `noise` what chance explains of it."""

    ratio: float
    noise: float

    @property
    def is_worse(self) -> bool:
        """Whether the second is worse by more than its noise."""
        return math.log(self.ratio) < -self.noise


def change(ratios: Sequence[float]) -> Change:
    """The change that these ratios of pairs show; above 1 the second one was better. At least three."""
    if len(ratios) < 3:
        raise ValueError(f"three pairs are the least that show their noise; there are {len(ratios)}")
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.median(logs)
    distance = statistics.median(abs(value - middle) for value in logs)
    deviation = OF_A_NORMAL * distance * OF_A_MEDIAN / math.sqrt(len(logs))
    return Change(math.exp(middle), max(math.log1p(LEAST), DEVIATIONS * deviation))
