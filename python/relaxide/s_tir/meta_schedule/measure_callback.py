"""What is done with measurements."""

from ...ir.utils import Outer


class MeasureCallback:
    """The base of callbacks."""

    def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
        """Called for each batch that was measured, of a task of a scheduler."""
        raise NotImplementedError(f"{type(self).__name__}.apply")

    @staticmethod
    def create(kind):
        """Callbacks by name: ``"default"`` keeps records, deletes libraries and teaches the cost model."""
        if kind != "default":
            raise ValueError(f"Unknown kind of MeasureCallback list: {kind}; there is 'default'")
        return [AddToDatabase(), RemoveBuildArtifact(), UpdateCostModel()]


class PyMeasureCallback(Outer, MeasureCallback):
    """The base of callbacks of one's own."""


#: What may be given for callbacks.
MeasureCallback.CallbackListType = list


class AddToDatabase(MeasureCallback):
    """Puts what was measured into the scheduler's database."""

    def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
        """Put records in."""
        from .database import TuningRecord

        database = task_scheduler.database_
        if database is None:
            return
        context = task_scheduler.tasks_[task_id].ctx
        workload = database.commit_workload(context.mod)
        for candidate, result in zip(measure_candidates, runner_results):
            if result.error_msg is None:
                record = TuningRecord(candidate.sch.trace, workload, result.run_secs, context.target, candidate.args_info)
                database.commit_tuning_record(record)


class RemoveBuildArtifact(MeasureCallback):
    """Deletes the libraries that were measured."""

    def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
        """Delete libraries with their folders."""
        from .utils import remove_build_dir

        for result in builder_results:
            if result.artifact_path is not None:
                remove_build_dir(result.artifact_path)


class UpdateCostModel(MeasureCallback):
    """Teaches the scheduler's cost model."""

    def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
        """Tell the model what was measured."""
        task = task_scheduler.tasks_[task_id]
        model = task_scheduler.cost_model_
        if model is None:
            return
        built = [(c, r) for c, r, b in zip(measure_candidates, runner_results, builder_results) if b.error_msg is None]
        model.update(task.ctx, [candidate for candidate, _ in built], [result for _, result in built])


__all__ = ["AddToDatabase", "MeasureCallback", "PyMeasureCallback", "RemoveBuildArtifact", "UpdateCostModel"]
