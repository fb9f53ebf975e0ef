//! Our own protocol: the same calls inside of TLS 1.3, between ends that know each other.
//!
//! Each end has a key pair in a certificate that it signed itself; what counts is the certificate's fingerprint, which the other end has
//! pinned. Who has no key may have a token: both ends then prove that they know it, by a code over the token and what TLS derived for
//! this one connection, so that nobody in between learns it or can pass it on. A server lets in who is in its file of keys, with the
//! capabilities that stand there. Nothing that an unknown end sends reaches more than the TLS library and a parser of one short message.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`identity`] | keys, fingerprints, tokens |
//! | [`keys`] | who may come in and do what |
//! | [`verify`] | which certificates are believed |
//! | [`stream`] | TLS in two halves, to be greeted over |
//! | [`records`] | the same without the library's buffers, for a session's packets |
//! | [`handover`] | how a session's process gets the connection |
//! | [`hello`] | what is said first inside of it |
//! | [`accept`] | the server's side |
//! | [`dial`] | the client's side |
//! | [`place`] | where a server is, as it is written |

pub mod accept;
pub mod dial;
pub mod handover;
pub mod hello;
pub mod identity;
pub mod keys;
pub mod place;
pub mod records;
pub mod stream;
pub mod verify;
