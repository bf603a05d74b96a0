"""The runtime of generated runners: slots, graphs, choice, hand-off, report.

It never imports the compiler, and generated code imports nothing else of ppcgc.

Note [what an import does not need]
    A runner is imported in every worker of an engine, before it does anything. What is used once a
    build or by people (capture, reports, addresses, measurements, verification), on eager steps
    alone, or by few specs, is imported at its first use. What is left is mostly classes: Python
    makes two or three frozen dataclasses a millisecond, and eight NamedTuples, so plain records
    are NamedTuples here.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ppcgc.runtime.abi import ABI, require_abi
from ppcgc.runtime.arena import DeviceArena
from ppcgc.runtime.backends import open_backend
from ppcgc.runtime.backends.base import Backend, Graph
from ppcgc.runtime.carried import Incoming, Outputs, TensorInfo, Tensors
from ppcgc.runtime.choice import Choice, Reason, StepRecord, bucket_table, smallest
from ppcgc.runtime.counts import (
    broken_limit,
    live_count,
    no_key,
    over_capacity,
    source_rows,
    uneven,
)
from ppcgc.runtime.dims import (
    build_int,
    ceil_div,
    check_options,
    check_value,
    config_int,
    config_length,
    floor_div,
    remainder,
)
from ppcgc.runtime.hooks import HookInfo, Made
from ppcgc.runtime.host_block import BucketHost, HostBlock, HostSlot
from ppcgc.runtime.host_rows import HostRows
from ppcgc.runtime.host_sources import HostSource, fitting
from ppcgc.runtime.inputs import Inputs
from ppcgc.runtime.loading import (
    copy_rows,
    copy_whole,
    fill_live,
    fill_whole,
    pad_fill,
    pad_repeat_last,
    pad_zero,
    upload_rows,
    upload_whole,
)
from ppcgc.runtime.place import Place
from ppcgc.runtime.receiving import (
    axis_count,
    check_received,
)
from ppcgc.runtime.results import (
    OutputRing,
    boundary_values,
    check_result,
    cut_rows,
    handed_on,
    pick_index,
    pick_key,
    store,
)
from ppcgc.runtime.roles import (
    check_bounded,
    check_index,
    check_lengths,
    check_offsets,
    check_write_index,
)
from ppcgc.runtime.shards import cut_part, live_part, part_start
from ppcgc.runtime.slot_info import Role, SlotInfo, facts_of
from ppcgc.runtime.stage import StageRunner, Step
from ppcgc.runtime.stage_kinds import EntryStage, LaterStage
from ppcgc.runtime.views import Boundary, SlotView

if TYPE_CHECKING:
    from ppcgc.runtime.bound import check_bound, check_stage
    from ppcgc.runtime.calibrating import calibrate
    from ppcgc.runtime.capturing import capture
    from ppcgc.runtime.cells import (
        copy_cells,
        fill_cells,
        pad_first,
        pad_second,
        repeat_last_first,
        repeat_last_second,
        upload_cells,
    )
    from ppcgc.runtime.crossover import Crossover
    from ppcgc.runtime.eager_rows import EagerRows
    from ppcgc.runtime.given import check_given
    from ppcgc.runtime.kinds import (
        KindIds,
        census,
        kind_if,
        kind_of_ids,
        kind_where,
        layers_below,
        owns,
    )
    from ppcgc.runtime.late_buckets import LateBuckets, no_limits
    from ppcgc.runtime.layers import (
        GlobalLayerId,
        LayerRange,
        LocalLayerId,
        check_declared,
        declared_ranges,
        even_ranges,
        stage_of,
    )
    from ppcgc.runtime.parallel import ALONE, GroupCounts, Ranks, group_most
    from ppcgc.runtime.report import Report
    from ppcgc.runtime.scalars import constant_scalar, host_flag, host_number
    from ppcgc.runtime.signature import check_forward
    from ppcgc.runtime.state import check_state
    from ppcgc.runtime.verification import Subject, assert_verified, verify

# none is named like its module: importing that would put the module in the name's place
_NAMES = {
    "bound": ("check_bound", "check_stage"),
    "calibrating": ("calibrate",),
    "capturing": ("capture",),
    "cells": (
        "copy_cells",
        "fill_cells",
        "pad_first",
        "pad_second",
        "repeat_last_first",
        "repeat_last_second",
        "upload_cells",
    ),
    "crossover": ("Crossover",),
    "eager_rows": ("EagerRows",),
    "given": ("check_given",),
    "kinds": ("KindIds", "census", "kind_if", "kind_of_ids", "kind_where", "layers_below", "owns"),
    "layers": (
        "GlobalLayerId",
        "LayerRange",
        "LocalLayerId",
        "check_declared",
        "declared_ranges",
        "even_ranges",
        "stage_of",
    ),
    "late_buckets": ("LateBuckets", "no_limits"),
    "parallel": ("ALONE", "GroupCounts", "Ranks", "group_most"),
    "report": ("Report",),
    "scalars": ("constant_scalar", "host_flag", "host_number"),
    "signature": ("check_forward",),
    "state": ("check_state",),
    "verification": ("Subject", "assert_verified", "verify"),
}
_AT_FIRST_USE = {name: module for module, names in _NAMES.items() for name in names}


if not TYPE_CHECKING:  # a visible __getattr__ would hide misspelt names from a type checker

    def __getattr__(name: str) -> object:
        if name not in _AT_FIRST_USE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_AT_FIRST_USE[name]}"), name)
        globals()[name] = value
        return value


__all__ = [
    "ABI",
    "ALONE",
    "Backend",
    "Boundary",
    "BucketHost",
    "Choice",
    "Crossover",
    "DeviceArena",
    "EagerRows",
    "EntryStage",
    "GlobalLayerId",
    "Graph",
    "GroupCounts",
    "HookInfo",
    "HostBlock",
    "HostRows",
    "HostSlot",
    "HostSource",
    "Incoming",
    "Inputs",
    "KindIds",
    "LateBuckets",
    "LaterStage",
    "LayerRange",
    "LocalLayerId",
    "Made",
    "OutputRing",
    "Outputs",
    "Place",
    "Ranks",
    "Reason",
    "Report",
    "Role",
    "SlotInfo",
    "SlotView",
    "StageRunner",
    "Step",
    "StepRecord",
    "Subject",
    "TensorInfo",
    "Tensors",
    "assert_verified",
    "axis_count",
    "boundary_values",
    "broken_limit",
    "bucket_table",
    "build_int",
    "calibrate",
    "capture",
    "ceil_div",
    "census",
    "check_bound",
    "check_bounded",
    "check_declared",
    "check_forward",
    "check_given",
    "check_index",
    "check_lengths",
    "check_offsets",
    "check_options",
    "check_received",
    "check_result",
    "check_stage",
    "check_state",
    "check_value",
    "check_write_index",
    "config_int",
    "config_length",
    "constant_scalar",
    "copy_cells",
    "copy_rows",
    "copy_whole",
    "cut_part",
    "cut_rows",
    "declared_ranges",
    "even_ranges",
    "facts_of",
    "fill_cells",
    "fill_live",
    "fill_whole",
    "fitting",
    "floor_div",
    "group_most",
    "handed_on",
    "host_flag",
    "host_number",
    "kind_if",
    "kind_of_ids",
    "kind_where",
    "layers_below",
    "live_count",
    "live_part",
    "no_key",
    "no_limits",
    "open_backend",
    "over_capacity",
    "owns",
    "pad_fill",
    "pad_first",
    "pad_repeat_last",
    "pad_second",
    "pad_zero",
    "part_start",
    "pick_index",
    "pick_key",
    "remainder",
    "repeat_last_first",
    "repeat_last_second",
    "require_abi",
    "smallest",
    "source_rows",
    "stage_of",
    "store",
    "uneven",
    "upload_cells",
    "upload_rows",
    "upload_whole",
    "verify",
]
