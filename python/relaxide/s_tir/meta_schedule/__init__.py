"""Tuning: kernels are scheduled in many ways, measured, and the best is kept.

::

    database = meta_schedule.tune_tir(kernel, "llvm -num-cores 4", work_dir, max_trials_global=64, cost_model="random")
    sch = meta_schedule.tir_integration.compile_tir(database, kernel, "llvm -num-cores 4")

A space generator makes schedules whose decisions are free, a search strategy decides, a builder compiles what it picks, a runner measures
it, and a database keeps the traces with their times, in the files that TVM writes. Each part is a class that can be replaced.
"""

from . import arg_info, builder, cost_model, database, feature_extractor, logging, measure_callback, mutator, postproc
from . import profiler, relax_integration, runner, schedule_rule, search_strategy, space_generator, task_scheduler, tir_integration
from . import tune, tune_context, utils
from .builder import Builder
from .cost_model import CostModel
from .database import Database
from .extracted_task import ExtractedTask
from .feature_extractor import FeatureExtractor
from .measure_callback import MeasureCallback
from .mutator import Mutator
from .postproc import Postproc
from .profiler import Profiler
from .runner import Runner
from .schedule_rule import ScheduleRule
from .search_strategy import MeasureCandidate, SearchStrategy
from .space_generator import SpaceGenerator
from .task_scheduler import TaskScheduler
from .tir_integration import tune_tir
from .tune import tune_tasks
from .tune_context import TuneContext
from ..._parts import open_parts as _open_parts

_WHOLE = "builder cost_model database feature_extractor measure_callback mutator search_strategy space_generator task_scheduler"
_open_parts(__name__.partition(".")[0], *(f"s_tir.meta_schedule.{name}" for name in _WHOLE.split()))

__all__ = ["Builder", "CostModel", "Database", "ExtractedTask", "FeatureExtractor", "MeasureCallback", "MeasureCandidate", "Mutator"]
__all__ += ["Postproc", "Profiler", "Runner", "ScheduleRule", "SearchStrategy", "SpaceGenerator", "TaskScheduler", "TuneContext"]
__all__ += ["arg_info", "builder", "cost_model", "database", "feature_extractor", "logging", "measure_callback", "mutator"]
__all__ += ["postproc", "profiler", "relax_integration", "runner", "schedule_rule", "search_strategy"]
__all__ += ["space_generator", "task_scheduler", "tir_integration", "tune", "tune_context", "tune_tasks", "tune_tir", "utils"]
