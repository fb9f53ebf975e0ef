//! What a request can fail with, and what it is called in each protocol.

/// Why a request got no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Whose fault it is.
    pub fault: Fault,
    /// What is wrong, and what to try.
    pub message: String,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request's: it does not say what the protocol wants, or its tensors do not fit the model.
    Invalid,
    /// There is no such model, version or place.
    NotFound,
    /// The place is asked in a way that it does not answer.
    Method,
    /// It asks for something that is not done here.
    Unsupported,
    /// It is larger than is taken.
    TooLarge,
    /// More is waiting than is taken: later it may work.
    Overload,
    /// It took longer than it may.
    Timeout,
    /// The server is ending, or what the model was loaded from is gone.
    Unavailable,
    /// Ours, or the model's.
    Internal,
}

/// Each fault with its number on the way to a worker and its status in HTTP and gRPC.
const TABLE: &[(Fault, u8, u16, u32, &str)] = &[
    (Fault::Invalid, 0, 400, 3, "invalid"),
    (Fault::NotFound, 1, 404, 5, "not_found"),
    (Fault::Method, 2, 405, 12, "method"),
    (Fault::Unsupported, 3, 415, 12, "unsupported"),
    (Fault::TooLarge, 4, 413, 8, "too_large"),
    (Fault::Overload, 5, 429, 8, "overload"),
    (Fault::Timeout, 6, 504, 4, "timeout"),
    (Fault::Unavailable, 7, 503, 14, "unavailable"),
    (Fault::Internal, 8, 500, 13, "internal"),
];

impl Fault {
    fn row(self) -> (u8, u16, u32, &'static str) {
        let row = TABLE.iter().find(|row| row.0 == self);
        row.map_or((8, 500, 13, "internal"), |(_, byte, http, grpc, name)| (*byte, *http, *grpc, name))
    }

    /// The status of HTTP.
    pub fn http_status(self) -> u16 {
        self.row().1
    }

    /// The status code of gRPC.
    pub fn grpc_status(self) -> u32 {
        self.row().2
    }

    /// What metrics call it.
    pub fn name(self) -> &'static str {
        self.row().3
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Fault> {
        TABLE.iter().map(|row| row.0)
    }

    /// The number that stands for it between processes.
    pub(crate) fn to_byte(self) -> u8 {
        self.row().0
    }

    /// The fault of a number.
    pub(crate) fn of_byte(byte: u8) -> Option<Fault> {
        TABLE.iter().find(|row| row.1 == byte).map(|row| row.0)
    }
}

impl Error {
    /// An error.
    pub fn new(fault: Fault, message: impl Into<String>) -> Error {
        Error { fault, message: message.into() }
    }

    /// A request that does not say what it should.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(Fault::Invalid, message)
    }
}

impl From<relaxide_ffi::Error> for Error {
    /// What a model says about its arguments is the request's fault, everything else its own.
    fn from(error: relaxide_ffi::Error) -> Error {
        let fault = match error.kind() {
            "ValueError" | "TypeError" | "IndexError" | "OverflowError" | "AssertionError" => Fault::Invalid,
            "MemoryError" => Fault::Overload,
            _ => Fault::Internal,
        };
        Error::new(fault, error.message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_a_number_of_its_own() {
        for fault in Fault::all() {
            assert_eq!(Fault::of_byte(fault.to_byte()), Some(fault));
        }
        assert_eq!(Fault::of_byte(200), None);
        assert_eq!((Fault::Overload.http_status(), Fault::Overload.grpc_status()), (429, 8));
    }
}
