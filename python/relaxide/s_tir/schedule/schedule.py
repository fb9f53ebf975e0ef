"""The schedule: a method for each step."""

import random

from ... import _core
from ...ir.expr import GlobalVar
from ...ir.module import IRModule
from ...tirx import PrimFunc
from .regions import RegionSteps
from ..sblock_scope import StmtSRef
from .rv import ExprRV, LoopRV, SBlockRV, ScheduleError
from .state import ScheduleState
from .trace import Trace


#: How much an error tells of the kernel: all, what is wrong, or nothing.
_LEVELS = ("detail", "fast", "none")


def _seed_of(seed):
    if seed is None or seed == -1:
        return random.randint(1, 2147483647)
    if not isinstance(seed, int):
        raise TypeError(f"Expected `seed` to be int or None, but gets: {seed}")
    if not 1 <= seed <= 2147483647:
        raise ValueError(f"seed must be in the range [1, 2147483647], but gets: {seed}")
    return seed


class Schedule(RegionSteps, _core.Schedule):
    """A schedule of the kernels of a module, or of one kernel.

    Blocks and loops are named by random variables, which steps take and give. A step that would change what a kernel
    computes raises a ``ScheduleError`` that says why, and leaves the schedule as it was. ``seed`` fixes what is drawn at
    random. ``enable_check=False`` trusts steps of which legality is asked of the caller. ``error_render_level`` is how much an error
    tells: ``"detail"`` shows the kernel, ``"fast"`` says what is wrong alone, ``"none"`` that a step was not legal.
    """

    #: What marks of loops and blocks can be.
    PrimAnnotationValueT = str | int | float | ExprRV
    AnnotationValueT = PrimAnnotationValueT | list[PrimAnnotationValueT] | dict[str, PrimAnnotationValueT | list[PrimAnnotationValueT]]

    def __new__(cls, mod, *, seed=None, debug_mask="none", error_render_level="detail", enable_check=True):
        if isinstance(mod, PrimFunc):
            mod = IRModule({"main": mod})
        if error_render_level not in _LEVELS:
            raise ValueError(f"error_render_level is one of {', '.join(_LEVELS)}, not {error_render_level!r}")
        made = super().__new__(cls, mod, _seed_of(seed), enable_check)
        made._level = error_render_level
        return made

    @staticmethod
    def _create_non_traced(mod, **options):
        """A schedule that shows no trace."""
        made = Schedule(mod, **options)
        made._is_traced = False
        return made

    _is_traced = True
    _level = "detail"

    @property
    def trace(self):
        """What was done so far."""
        return super().trace if self._is_traced else None

    @property
    def mod(self):
        """The module as it is now."""
        return self._module

    @property
    def func_working_on(self):
        """The function that blocks are looked for in."""
        name = self._working_on
        return None if name is None else GlobalVar(name)

    def work_on(self, func_name):
        """Look for blocks in this function from now on."""
        self._work_on(func_name)

    def copy(self):
        """A schedule at the same point; random variables of this one are good for it."""
        copied = self._copy(type(self))
        copied._is_traced, copied._level = self._is_traced, self._level
        return copied

    def seed(self, seed):
        """Draw from another seed."""
        self._seed(_seed_of(seed))

    def fork_seed(self):
        """A seed for another schedule."""
        return self._fork_seed()

    @property
    def state(self):
        """The module with references to its blocks and loops."""
        return ScheduleState._of(self)

    def get_sref(self, rand_var_or_stmt):
        """A reference to a block or a loop, given as a random variable or itself; None where it is not in the module."""
        if isinstance(rand_var_or_stmt, LoopRV) and self._mark(rand_var_or_stmt) is not None:
            return getattr(StmtSRef, f"{self._mark(rand_var_or_stmt)}_mark")()
        if isinstance(rand_var_or_stmt, (LoopRV, SBlockRV)):
            return StmtSRef._of(self, self.get(rand_var_or_stmt))
        return self.state.get_sref(rand_var_or_stmt)

    def get(self, rand_var_or_sref):
        """The block, the loop or the number that a random variable or a reference stands for."""
        if isinstance(rand_var_or_sref, StmtSRef):
            return rand_var_or_sref.stmt
        return rand_var_or_sref if isinstance(rand_var_or_sref, int) else self._get(rand_var_or_sref)

    def remove_rv(self, rand_var):
        """Forget a random variable."""
        self._remove(rand_var)

    def show(self, *args, **kwargs):
        """Print the module and the trace."""
        self.mod.show(*args, **kwargs)
        if self.trace is not None:
            self.trace.show()

    # What steps share.

    def _block(self, block):
        return self.get_sblock(block) if isinstance(block, str) else block

    def _untraced_block(self, block):
        """The block of a name, of which the trace does not tell."""
        return self.copy().get_sblock(block) if isinstance(block, str) else block

    def _told(self, name, inputs, attrs, decision):
        """What a step gives; an error says as much of the kernel as the schedule was asked to tell."""
        try:
            return self._step(name, list(inputs), list(attrs), decision)
        except ScheduleError as error:
            if self._level == "detail":
                raise
            told = str(error).split("\n")[0] if self._level == "fast" else f"`{name}` cannot be executed (not rendered)"
            raise type(error)(told) from None

    def _one(self, name, inputs=(), attrs=(), decision=None):
        return self._told(name, inputs, attrs, decision)[0]

    def _list(self, name, inputs=(), attrs=(), decision=None):
        return list(self._told(name, inputs, attrs, decision))

    def _only(self, name, inputs=(), attrs=()):
        self._told(name, inputs, attrs, None)

    # Numbers.

    def sample_categorical(self, candidates, probs, decision=None):
        """One of several numbers, with probabilities. ``decision`` is its place in the list."""
        return self._one("SampleCategorical", (), (list(candidates), [float(p) for p in probs]), decision)

    def sample_perfect_tile(self, loop, n, max_innermost_factor=16, decision=None):
        """``n`` factors whose product is the loop's extent, the innermost at most ``max_innermost_factor``."""
        return self._list("SamplePerfectTile", (loop,), (n, max_innermost_factor), decision)

    def sample_partitioned_tile(self, loop, n, partition_pos=0, innerpart_factor=1, decision=None):
        """Factors whose product is the loop's extent; ``innerpart_factor`` divides the product of those from a place on."""
        return self._list("SamplePartitionedTile", (loop,), (n, partition_pos, innerpart_factor), decision)

    def sample_compute_location(self, block, decision=None):
        """A place for ``compute_at``. ``decision`` is -2 to inline the block, -1 to leave it, or the number of a loop around
        its first consumer."""
        return self._one("SampleComputeLocation", (self._block(block),), (), decision)

    # Blocks and loops.

    def get_sblock(self, name, func_name=None):
        """The block of a name."""
        if func_name is None:
            func_name = self._working_on
            if func_name is None:
                raise ValueError(
                    "The schedule does not know which function to be working on: its module has several and none is `main`. "
                    "`work_on` chooses one, or `func_name` says which."
                )
        return self._one("GetSBlock", (), (name, func_name))

    def get_loops(self, block):
        """The loops around a block, outermost first."""
        return self._list("GetLoops", (self._block(block),))

    def get_child_blocks(self, block_or_loop):
        """The blocks directly inside of a block or a loop."""
        return self._list("GetChildBlocks", (block_or_loop,))

    def get_producers(self, block):
        """The blocks of the same scope that write what a block reads."""
        return self._list("GetProducers", (self._block(block),))

    def get_consumers(self, block):
        """The blocks of the same scope that read what a block writes."""
        return self._list("GetConsumers", (self._block(block),))

    def get_output_blocks(self, scope_block=None, *, block=None):
        """The blocks inside of a block that write what outlives it. The text of traces calls the block ``block``."""
        return self._list("GetOutputBlocks", (self._block(scope_block if block is None else block),))

    # Loops.

    def split(self, loop, factors, preserve_unit_iters=True, disable_predication=False):
        """Loops of these extents, outermost first, in the place of one. One factor may be None: it becomes what is needed."""
        return self._list("Split", (loop, *factors), (preserve_unit_iters, disable_predication))

    def loop_partition(self, loop, factors, preserve_unit_iters=True):
        """Loops of these numbers of iterations, one behind the other, in the place of one. One may be None: what is left."""
        return self._list("LoopPartition", (loop, *factors), (preserve_unit_iters,))

    def fuse(self, *loops, preserve_unit_iters=True):
        """One loop in the place of several, given from the outermost inwards."""
        return self._one("Fuse", loops, (preserve_unit_iters,))

    def merge(self, *loops):
        """One loop in the place of several that stand one behind the other, with the loops around them."""
        return self._one("Merge", loops)

    def reorder(self, *ordered_loops):
        """The loops in this order, in the places that they have."""
        self._only("Reorder", ordered_loops)

    def reorder_block_iter_var(self, block, new_order):
        """The axes of a block in another order."""
        self._only("ReorderBlockIterVar", (self._block(block), list(new_order)))

    def add_unit_loop(self, block_or_loop):
        """A loop of one iteration around a block or a loop."""
        return self._one("AddUnitLoop", (block_or_loop,))

    def parallel(self, loop):
        """Spread the iterations of a loop over threads."""
        self._only("Parallel", (loop,))

    def vectorize(self, loop):
        """Make the iterations of a loop lanes of vectors."""
        self._only("Vectorize", (loop,))

    def unroll(self, loop):
        """Write the iterations of a loop one behind the other."""
        self._only("Unroll", (loop,))

    def bind(self, loop, thread_axis):
        """Make the iterations of a loop threads of a device: ``"threadIdx.x"``."""
        self._only("Bind", (loop,), (thread_axis,))

    # Computation.

    def compute_inline(self, block):
        """Let the consumers of a block compute its elements themselves."""
        self._only("ComputeInline", (self._block(block),))

    def reverse_compute_inline(self, block):
        """Let the only producer of a block do its work."""
        self._only("ReverseComputeInline", (self._block(block),))

    # Hints.

    def annotate(self, block_or_loop, ann_key, ann_val):
        """Give a block or a loop a hint. One that is there already stays."""
        self._only("Annotate", (block_or_loop, ann_val), (ann_key,))

    def unannotate(self, block_or_loop, ann_key):
        """Take a hint away."""
        self._only("Unannotate", (block_or_loop,), (ann_key,))

    def enter_postproc(self):
        """Mark the place in the trace where postprocessing begins."""
        self._only("EnterPostproc")


__all__ = ["SBlockRV", "Schedule", "ScheduleError", "Trace"]
