//! The arguments of a builtin, with errors that name the builtin and the argument.

use relaxide_ffi::{AnyView, Error, ErrorKind, FromAny};

/// The arguments of one call.
pub(crate) struct Args<'a, 'v> {
    function: &'static str,
    views: &'a [AnyView<'v>],
}

impl<'a, 'v> Args<'a, 'v> {
    pub(crate) fn new(function: &'static str, views: &'a [AnyView<'v>]) -> Self {
        Self { function, views }
    }

    pub(crate) fn len(&self) -> usize {
        self.views.len()
    }

    /// The arguments from one position on.
    pub(crate) fn rest(&self, from: usize) -> &'a [AnyView<'v>] {
        self.views.get(from..).unwrap_or_default()
    }

    /// An argument as it is.
    #[inline]
    pub(crate) fn view(&self, index: usize, name: &str) -> Result<AnyView<'v>, Error> {
        self.views.get(index).copied().ok_or_else(|| self.missing(index, name))
    }

    /// An argument as a Rust value.
    #[inline]
    pub(crate) fn get<T: FromAny>(&self, index: usize, name: &str) -> Result<T, Error> {
        self.view(index, name)?.to().map_err(|error| self.in_argument(index, name, &error))
    }

    /// A size or an index: an integer that is not negative.
    #[inline]
    pub(crate) fn index(&self, index: usize, name: &str) -> Result<usize, Error> {
        let value: i64 = self.get(index, name)?;
        usize::try_from(value)
            .map_err(|_| self.error(ErrorKind::ValueError, format_args!("argument {index} ({name}) is {value}")))
    }

    /// Refuses a call with another number of arguments.
    #[inline]
    pub(crate) fn expect_len(&self, least: usize, most: usize) -> Result<(), Error> {
        let found = self.views.len();
        if (least..=most).contains(&found) {
            return Ok(());
        }
        let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
        Err(self.error(ErrorKind::TypeError, format_args!("it takes {wanted} arguments and got {found}")))
    }

    /// An error that names the builtin.
    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind, message: std::fmt::Arguments<'_>) -> Error {
        Error::new(kind, format!("{}: {message}", self.function))
    }

    #[cold]
    fn missing(&self, index: usize, name: &str) -> Error {
        let found = self.views.len();
        self.error(ErrorKind::TypeError, format_args!("argument {index} ({name}) is missing: it got {found} arguments"))
    }

    #[cold]
    fn in_argument(&self, index: usize, name: &str, error: &Error) -> Error {
        error.context(format_args!("{}: argument {index} ({name})", self.function))
    }
}
