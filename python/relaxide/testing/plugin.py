"""A plugin of pytest that leaves out the combinations which ``parameters`` skips: ``pytest_plugins = ["relaxide.testing.plugin"]``."""

from .fixtures import go_together


def pytest_collection_modifyitems(config, items):
    """Leaves out combinations of values that do not go together."""
    kept, dropped = [], []
    for item in items:
        call = getattr(item, "callspec", None)
        (kept if call is None or go_together(call.params) else dropped).append(item)
    if dropped:
        items[:] = kept
