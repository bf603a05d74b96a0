"""``ppcgc plan``: what a spec comes to, in numbers, before anything is generated or captured.

``describe`` puts the plan and the sizes that are known into plain data, ``text`` prints that for
people.
"""

from ppcgc.overview.describe import describe
from ppcgc.overview.text import as_json, as_text

__all__ = ["as_json", "as_text", "describe"]
