"""The runtime of generated runners: slots, graphs, choice, hand-off, report.

It never imports the compiler, and generated code imports nothing else of ppcgc.
"""

from ppcgc.runtime.abi import ABI, require_abi
from ppcgc.runtime.arena import BucketHost, DeviceArena, HostBlock, HostSlot
from ppcgc.runtime.backends import open_backend
from ppcgc.runtime.backends.base import Backend, Graph
from ppcgc.runtime.capture import capture
from ppcgc.runtime.choice import Choice, Reason, StepRecord, smallest
from ppcgc.runtime.counts import broken_limit, live_count, over_capacity, source_rows
from ppcgc.runtime.dims import build_int, ceil_div, config_int, floor_div, remainder
from ppcgc.runtime.eager_rows import EagerRows
from ppcgc.runtime.host_rows import HostRows, HostSource
from ppcgc.runtime.layers import (
    GlobalLayerId,
    LayerRange,
    LocalLayerId,
    declared_ranges,
    even_ranges,
    stage_of,
)
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
from ppcgc.runtime.report import Report
from ppcgc.runtime.results import (
    OutputRing,
    axis_count,
    boundary_values,
    check_received,
    check_result,
    pick_index,
    pick_key,
    receive_rows,
    reset_fill,
    reset_repeat_last,
    store,
)
from ppcgc.runtime.roles import (
    check_bounded,
    check_index,
    check_lengths,
    check_offsets,
    check_write_index,
)
from ppcgc.runtime.signature import check_forward
from ppcgc.runtime.slot_info import Role, SlotInfo
from ppcgc.runtime.stage import (
    EntryStage,
    Incoming,
    Inputs,
    LaterStage,
    Outputs,
    Place,
    StageRunner,
    Step,
)
from ppcgc.runtime.state import check_state
from ppcgc.runtime.views import Boundary, SlotView

__all__ = [
    "ABI",
    "Backend",
    "Boundary",
    "BucketHost",
    "Choice",
    "DeviceArena",
    "EagerRows",
    "EntryStage",
    "GlobalLayerId",
    "Graph",
    "HostBlock",
    "HostRows",
    "HostSlot",
    "HostSource",
    "Incoming",
    "Inputs",
    "LaterStage",
    "LayerRange",
    "LocalLayerId",
    "OutputRing",
    "Outputs",
    "Place",
    "Reason",
    "Report",
    "Role",
    "SlotInfo",
    "SlotView",
    "StageRunner",
    "Step",
    "StepRecord",
    "axis_count",
    "boundary_values",
    "broken_limit",
    "build_int",
    "capture",
    "ceil_div",
    "check_bounded",
    "check_forward",
    "check_index",
    "check_lengths",
    "check_offsets",
    "check_received",
    "check_result",
    "check_state",
    "check_write_index",
    "config_int",
    "copy_rows",
    "copy_whole",
    "declared_ranges",
    "even_ranges",
    "fill_live",
    "fill_whole",
    "floor_div",
    "live_count",
    "open_backend",
    "over_capacity",
    "pad_fill",
    "pad_repeat_last",
    "pad_zero",
    "pick_index",
    "pick_key",
    "receive_rows",
    "remainder",
    "require_abi",
    "reset_fill",
    "reset_repeat_last",
    "smallest",
    "source_rows",
    "stage_of",
    "store",
    "upload_rows",
    "upload_whole",
]
