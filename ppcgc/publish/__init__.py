"""The last pass: generated files to disk, and what differs from them there.

``ownership`` says whose a file is, ``compare`` looks at the disk and touches nothing,
``write`` makes the disk equal, ``drift`` shows where it is not.
"""

from ppcgc.publish.drift import difference, drift_findings
from ppcgc.publish.ownership import PublishError
from ppcgc.publish.write import Published, publish

__all__ = ["PublishError", "Published", "difference", "drift_findings", "publish"]
