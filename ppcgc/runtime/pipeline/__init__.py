"""A pipeline of processes on ``torch.distributed``: each rank its own stage.

In the order in which a rank goes through them: ``agreement`` (do all ranks mean the same?),
``groups``, ``transport`` and ``layout`` (one block for a boundary, received in place),
``capturing`` (all ranks together), ``header`` and ``channel`` (the first rank chooses),
``calibrating`` (which steps go eagerly), ``opening`` and ``serving`` (the pipeline, its steps),
``outbox`` (batches in flight), ``collectives`` and ``counting`` (ranks of one stage), ``store``,
``board``, ``faults`` and ``watch`` (a rank that fails),
``microbatches`` (as a module of ``torch.distributed.pipelining``).
"""

from ppcgc.runtime.pipeline.board import Failure
from ppcgc.runtime.pipeline.microbatches import Microbatched
from ppcgc.runtime.pipeline.report import PipelineReport
from ppcgc.runtime.pipeline.serving import Pipeline

__all__ = ["Failure", "Microbatched", "Pipeline", "PipelineReport"]
