"""Names that are taken once."""

import re


class UniqueNameSupply:
    """Gives each name once: a name that is taken gets the least number behind it that makes it new.

    ``prefix`` is put before every name, with an underscore between. Where a name is empty, it is ``v``.
    """

    def __init__(self, prefix=""):
        self._prefix, self._taken = prefix, {}

    def _whole(self, name, add_prefix):
        return f"{self._prefix}_{name}" if add_prefix and self._prefix else name

    def fresh_name(self, name, add_prefix=True, add_underscore=True):
        """A name that is not taken yet, which it is from now on; ``add_underscore`` puts an underscore before the number."""
        whole = re.sub(r"[^A-Za-z0-9_]", "_", self._whole(name or "v", add_prefix))
        if whole not in self._taken:
            self._taken[whole] = 0
            return whole
        between = "_" if add_underscore else ""
        while True:
            self._taken[whole] += 1
            fresh = f"{whole}{between}{self._taken[whole]}"
            if fresh not in self._taken:
                self._taken[fresh] = 0
                return fresh

    def reserve_name(self, name, add_prefix=True):
        """Take a name, which is returned with the prefix."""
        whole = self._whole(name, add_prefix)
        self._taken.setdefault(whole, 0)
        return whole

    def contains_name(self, name, add_prefix=True):
        """Whether a name is taken."""
        return self._whole(name, add_prefix) in self._taken


__all__ = ["UniqueNameSupply"]
