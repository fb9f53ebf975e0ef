//! What every program shares: modules, types, scalar expressions, arithmetic, passes.
