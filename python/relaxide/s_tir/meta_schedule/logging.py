"""Logs of tuning: one for the whole, one for each task."""

import logging
import logging.config
import os


def get_logger(name):
    """The log of a name."""
    return logging.getLogger(name)


def get_logging_func(logger):
    """``(level, file, line, message)`` writes to a log; ``None`` for no log."""
    if logger is None:
        return None

    def log(level, _file, _line, message):
        logger.log(level, message)

    return log


def create_loggers(log_dir, params, logger_config=None, disable_existing_loggers=False):
    """Configure logs by ``logging.config``; ``{…}`` in its texts are filled from each of ``params``, with ``log_dir`` among them.

    Parameters
    ----------
    log_dir : str
        Where files go.
    params : list of dict
        The values of the names in the texts, for each log: ``logger_name`` for instance.
    logger_config : dict, optional
        Sections ``loggers``, ``handlers``, ``formatters``. By default each task has a file of its own.
    disable_existing_loggers : bool
        Whether logs that were there before write no longer.
    """
    config = dict(logger_config or _DEFAULT)
    whole = {"version": 1, "disable_existing_loggers": disable_existing_loggers}
    for section in ("loggers", "handlers", "formatters"):
        whole[section] = {}
        for values in params:
            filled = _filled(config.get(section, _DEFAULT[section]), {"log_dir": log_dir, **values})
            whole[section].update(filled)
    logging.config.dictConfig(whole)


_DEFAULT = {
    "loggers": {"{logger_name}": {"level": "INFO", "handlers": ["{logger_name}.file"], "propagate": False}},
    "handlers": {
        "{logger_name}.file": {
            "class": "logging.FileHandler",
            "filename": "{log_dir}/{logger_name}.log",
            "mode": "a",
            "level": "INFO",
            "formatter": "tvm.s_tir.meta_schedule.standard_formatter",
        }
    },
    "formatters": {
        "tvm.s_tir.meta_schedule.standard_formatter": {"format": "%(asctime)s [%(levelname)s] %(message)s", "datefmt": "%Y-%m-%d %H:%M:%S"}
    },
}


def _filled(value, values):
    if isinstance(value, str):
        return value.format_map(_Kept(values))
    if isinstance(value, dict):
        return {_filled(key, values): _filled(item, values) for key, item in value.items()}
    return [_filled(item, values) for item in value] if isinstance(value, list) else value


class _Kept(dict):
    def __missing__(self, key):
        return "{" + key + "}"


def get_loggers_from_work_dir(work_dir, task_names):
    """A log for each task, in files under ``work_dir/logs``."""
    log_dir = os.path.join(work_dir, "logs")
    os.makedirs(log_dir, exist_ok=True)
    digits = len(str(max(len(task_names) - 1, 0)))
    names = [f"tvm.s_tir.meta_schedule.logging.task_{index:0{digits}d}_{name}" for index, name in enumerate(task_names)]
    create_loggers(log_dir, [{"logger_name": name} for name in names])
    return [get_logger(name) for name in names]


__all__ = ["create_loggers", "get_logger", "get_loggers_from_work_dir", "get_logging_func"]
