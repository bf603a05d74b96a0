"""ppcgc: a declarative compiler of CUDA-graph runners for pipeline-parallel model stages.

A spec goes through these passes, in this order; each is a module or a package of that name:

1. ``load``             text to a node tree with the place of every key and value
2. ``extend``           the specs that `extends` names, laid under this one
3. ``validate.schema``  the form, against the JSON Schema in ``schemas/``
4. ``resolve``          nodes to the typed IR (``ir``): defaults, references, expressions (``expr``)
5. ``validate.rules``   what a legal spec must hold beyond its form, one rule at a time
6. ``bind``             with `--bind`: the numbers of one model's config, put into the IR
7. ``plan``             buckets, stages, the layout of each bucket, the boundary, the fingerprint
8. ``emit``             the text of the generated modules: ``{path: text}``
9. ``publish``          what changed is written, what went stale is removed

``driver`` runs them and stops between two when there are errors; ``cli`` is the command line.
``overview`` is `ppcgc plan`; ``known`` gathers the sizes that it and ``bind`` are given.
Findings are values (``diagnostics``): no pass raises for a user's mistake.

``runtime`` is the other half: generated code imports it, it imports torch and no module named
above, and none of those imports torch. ``hf`` makes stages of Hugging Face models on top of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ppcgc.version import VERSION as __version__

__all__ = ["Checked", "Compiled", "Source", "__version__", "check_source", "compile_sources"]

if TYPE_CHECKING:
    from ppcgc.driver import Checked, Compiled, Source, check_source, compile_sources
else:

    def __getattr__(name: str) -> object:
        # The compiler is imported when it is asked for: generated code imports this package on
        # its way to ppcgc.runtime.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ppcgc import driver

        return getattr(driver, name)
