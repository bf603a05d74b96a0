"""How many examples the fuzz tests try: `PPCGC_FUZZ=deep` tries ten times as many, at random.

The default is the same on every machine and every day, so that a red build is the change's own
doing. New faults are found by the deep profile.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

DEEP = os.environ.get("PPCGC_FUZZ") == "deep"


def examples(count: int) -> settings:
    """The settings of a test that tries ``count`` examples by default."""
    return settings(
        max_examples=count * 10 if DEEP else count,
        derandomize=not DEEP,
        database=None,
        phases=[Phase.generate, Phase.shrink],  # to explain a failure, each line would be traced
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
