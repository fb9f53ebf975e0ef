"""What the functions of a program took."""

from ..ffi import get_global_func


class Report:
    """The profile of one call, made by :meth:`VirtualMachine.profile`."""

    def __init__(self, report, get_function=get_global_func):
        self._report = report
        # A report of a remote machine stays there, and is put into its forms there.
        self._get_function = get_function

    def _form(self, name):
        return self._get_function(f"runtime.profiling.{name}")(self._report)

    def table(self):
        """A table, one line for each function: calls, time without and with inner calls, bytes."""
        return self._form("AsTable")

    def csv(self):
        """The table as comma-separated values."""
        return self._form("AsCSV")

    def json(self):
        """The sums of each function, in the form of TVM's reports."""
        return self._form("AsJSON")

    def chrome_trace(self):
        """Every call with its time, for ``chrome://tracing`` and Perfetto."""
        return self._form("AsChromeTrace")

    def __str__(self):
        return self.table()
