//! The names of memory that steps are given.

use relaxide_ir::attrs::AttrValue;

use super::ScheduleError;
use super::instruction::{InstructionKind, Param};

/// The kinds of memory; what stands behind a dot says more of one, as in `shared.dyn`.
const KINDS: &[&str] =
    &["global", "shared", "warp", "local", "texture", "wmma", "m16n8k8", "amx", "metal", "tmem", "trn"];

/// Refuses a step that is given a name of no memory.
pub(super) fn check(kind: &InstructionKind, attrs: &[AttrValue]) -> Result<(), ScheduleError> {
    let mut at = 0;
    for param in kind.params {
        match param {
            Param::Attr(name) => {
                if let (&"storage_scope", Some(AttrValue::Str(scope))) = (name, attrs.get(at))
                    && !is_known(scope)
                {
                    let known = KINDS.join(", ");
                    let reason =
                        format!("there is no storage scope `{scope}`; there are {known}, and such as shared.dyn");
                    return Err(ScheduleError::Operand(reason));
                }
                at += 1;
            }
            Param::Buffer(_) => at += 2,
            _ => {}
        }
    }
    Ok(())
}

fn is_known(scope: &str) -> bool {
    let kind = scope.split_once('.').map_or(scope, |(kind, _)| kind);
    scope.is_empty() || KINDS.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::is_known;

    #[test]
    fn a_scope_is_a_kind_of_memory_with_what_is_said_of_it() {
        assert!(["", "global", "shared.dyn", "wmma.matrix_a", "global.texture-weight"].into_iter().all(is_known));
        assert!(!["cache", "Shared", "dyn.shared", ".shared"].into_iter().any(is_known));
    }
}
