"""Instruments that check programs around passes."""

from ...ir.instrument import pass_instrument


@pass_instrument
class WellFormedInstrument:
    """Checks that programs are well-formed after each pass, and before it.

    Parameters
    ----------
    check_ty : bool
        Whether types are checked.
    validate_before_transform : bool
        Whether programs are checked before passes too.
    """

    def __init__(self, check_ty=True, validate_before_transform=True):
        # Passes that run before a program is one of Relax, or that look into single kernels of it.
        self.skip_pass_name = ["Normalize", "NormalizeGlobalVar", "ResolveGlobals"]
        self.check_ty = check_ty
        self.validate_before_transform = validate_before_transform

    def run_before_pass(self, mod, pass_info):
        """Check the program that a pass is given."""
        if self.validate_before_transform:
            self._check(mod, pass_info.name, "Before")

    def run_after_pass(self, mod, pass_info):
        """Check the program that a pass gave."""
        self._check(mod, pass_info.name, "After")

    def _check(self, mod, pass_name, when):
        from ..analysis import well_formed

        if pass_name in self.skip_pass_name:
            return
        try:
            well_formed(mod, self.check_ty)
        except ValueError as problem:
            raise ValueError(f"{when} the pass {pass_name}: {problem}\n{mod}") from problem
