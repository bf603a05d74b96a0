"""Every error that the runtime and generated code raise for a user's mistake.

All of them derive from :class:`PpcgcError`; none of them is an ``assert``. A message says where
(runner, slot, bucket), what, the two numbers, and the fix. An error raised before or during a
step leaves the runner usable.
"""

from __future__ import annotations


class PpcgcError(Exception):
    """Base of every error ppcgc raises on purpose."""


class BuildError(PpcgcError):
    """A runner cannot be built from what it was given."""


class AbiMismatchError(BuildError):
    """Generated code and the installed runtime do not fit together."""


class DimError(BuildError):
    """A size is missing, is not an integer, or an expression of sizes has no legal value."""


class BoundError(BuildError):
    """Code that was generated for one config is built with another: names both values."""


class LayerError(BuildError):
    """Layer ranges, layer ids or layer lists disagree."""


class StateError(BuildError):
    """A state tensor does not have the rows, dtype or device that the spec declares."""


class ForwardSignatureError(BuildError):
    """The model's forward does not take the keywords that the spec binds."""


class SourceError(PpcgcError):
    """A slot's source has the wrong kind, rows, shape, dtype, device or values."""


class AbsentSourceError(SourceError):
    """A slot's source is None and the spec does not say what then."""


class MissingSlotError(PpcgcError, AttributeError):
    """The forward asked for a slot that this stage does not have."""


class LimitError(PpcgcError):
    """Live counts break a condition of the spec."""


class CapacityError(PpcgcError):
    """More live rows than the largest bucket, and the spec says that this is an error."""


class GraphRequiredError(PpcgcError):
    """A step would have run eagerly although a graph is required."""


class CaptureError(PpcgcError):
    """The forward cannot be captured: names the bucket, the op and the model's line."""


class NotCapturedError(PpcgcError):
    """A step was asked of a runner that was never captured, or was closed."""


class StaleStepError(PpcgcError):
    """A step was finished that is not the one begun last on this runner."""


class OutputError(PpcgcError):
    """The forward returned something else than the spec's outputs or boundary."""


class StaleOutputError(PpcgcError):
    """A guarded output view was used after a later run had overwritten it."""


class AgreementError(BuildError):
    """Ranks of a pipeline were built for different things: names both ranks and both values."""


class TransportError(BuildError):
    """A transport that is unknown, or that these devices and process groups cannot serve."""


class PeerError(PpcgcError):
    """Another rank of the pipeline failed or is gone: names the rank and the step."""


class HandOffTimeoutError(PeerError):
    """Another rank did not do its part of a hand-off in time: names the rank and the step."""


class StepRefusedError(PpcgcError):
    """The first rank refused a batch before anything was sent; the pipeline goes on."""


class DisagreementError(PpcgcError):
    """Ranks take part in one step with different batches or runners."""


class MicrobatchError(PpcgcError):
    """Microbatches of a schedule that differ in their rows, or that nobody gave."""


class AddressError(PpcgcError):
    """A tensor that the graphs read has moved since capture."""


class VerificationError(PpcgcError):
    """A verification found faults; the message is its report."""
