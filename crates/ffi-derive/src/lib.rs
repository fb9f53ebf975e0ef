//! The derive macros of `relaxide-ffi`.
//!
//! `#[derive(Object)]` makes a struct with named fields (or none) an object type:
//!
//! - `#[object(key = "...")]` names the type; `parent = "..."` names the type that it refines;
//! - `#[object(var)]` marks a free variable, `#[object(unique)]` a type whose values equal only themselves;
//! - `#[object(tail)]` says that the last field is a `Tail`, behind which values lie;
//! - `#[field(ignore)]` leaves a field out of equality and hashing, `#[field(def)]` says that free variables in it are
//!   defined there, `#[field(hidden)]` keeps it out of reflection as well, so that its type need not be a `Field`;
//!   `#[field(no_init)]` says that it is not an argument of the constructor.
//!
//! `#[derive(ObjectEnum)]` makes an enum whose variants each hold one handle (a `Ref<_>`, a named handle or another such
//! enum) a family of objects: conversions, identity, structural equality.
#![deny(missing_docs)]

mod family;
mod object;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct an object type. See the crate's documentation for the attributes.
#[proc_macro_derive(Object, attributes(object, field))]
pub fn derive_object(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    object::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes an enum over handles a family of objects.
#[proc_macro_derive(ObjectEnum)]
pub fn derive_object_enum(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    family::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
