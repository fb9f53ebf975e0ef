//! How much of the native stack a recursion has used.

/// How much it may use. Threads have two megabytes or more.
const LIMIT: usize = 1 << 20;

/// Where the recursion began, once it has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stack {
    beginning: Option<usize>,
}

impl Stack {
    /// True if the recursion must not go deeper. How many levels that allows depends on what a level takes, which
    /// differs between types and between builds.
    #[inline]
    pub(crate) fn is_used_up(&mut self) -> bool {
        let mark = 0u8;
        let here = (&raw const mark).addr();
        self.beginning.get_or_insert(here).abs_diff(here) > LIMIT
    }
}

/// What to say then.
pub(crate) fn used_up() -> crate::Error {
    crate::Error::new(crate::ErrorKind::ValueError, "values are nested in each other too deep")
}
