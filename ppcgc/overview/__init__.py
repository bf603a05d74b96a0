"""``ppcgc plan``: what a spec comes to, in numbers, before anything is generated or captured.

``known`` gathers the sizes that are known, ``stages`` cuts the layers, ``describe`` puts the plan
into plain data, ``text`` prints that for people.
"""

from ppcgc.overview.describe import describe
from ppcgc.overview.known import Known, NotKnownError, gather
from ppcgc.overview.text import as_json, as_text

__all__ = ["Known", "NotKnownError", "as_json", "as_text", "describe", "gather"]
