//! The expansion of `#[derive(ObjectEnum)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Ident, Result, Type};

struct Variant<'a> {
    ident: &'a Ident,
    ty: &'a Type,
}

pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(Error::new(input.generics.span(), "a family of objects cannot be generic"));
    }
    let variants = variants(input)?;
    let name = &input.ident;
    let conversions = conversions(name, &variants);
    let identity = identity(name, &variants);
    let structure = structure(name, &variants);
    Ok(quote! { #identity #conversions #structure })
}

/// `Clone`, `==` and `Hash` by identity, and what every handle offers.
fn identity(name: &Ident, variants: &[Variant<'_>]) -> TokenStream {
    let idents: Vec<_> = variants.iter().map(|variant| variant.ident).collect();
    let types: Vec<_> = variants.iter().map(|variant| variant.ty).collect();
    let text = name.to_string();
    quote! {
        #[automatically_derived]
        impl ::relaxide_ffi::Handle for #name {
            fn expected() -> ::std::string::String {
                ::std::string::String::from(#text)
            }

            #[inline]
            fn as_object(&self) -> &::relaxide_ffi::ObjectRef {
                match self {
                    #(#name::#idents(value) => ::relaxide_ffi::Handle::as_object(value),)*
                }
            }

            fn try_from_object(
                object: ::relaxide_ffi::ObjectRef,
            ) -> ::core::result::Result<Self, ::relaxide_ffi::ObjectRef> {
                #(
                    let object = match <#types as ::relaxide_ffi::Handle>::try_from_object(object) {
                        ::core::result::Result::Ok(value) => return ::core::result::Result::Ok(#name::#idents(value)),
                        ::core::result::Result::Err(object) => object,
                    };
                )*
                ::core::result::Result::Err(object)
            }
        }

        #[automatically_derived]
        impl #name {
            /// True if both are the same object.
            #[inline]
            pub fn ptr_eq(&self, other: &Self) -> bool {
                ::relaxide_ffi::Handle::as_object(self) == ::relaxide_ffi::Handle::as_object(other)
            }

            /// The same object without its type.
            #[inline]
            pub fn as_object(&self) -> &::relaxide_ffi::ObjectRef {
                ::relaxide_ffi::Handle::as_object(self)
            }

            /// The key of the object's type.
            pub fn type_key(&self) -> &'static str {
                ::relaxide_ffi::Handle::as_object(self).type_key()
            }
        }

        #[automatically_derived]
        impl ::core::clone::Clone for #name {
            #[inline]
            fn clone(&self) -> Self {
                match self {
                    #(#name::#idents(value) => #name::#idents(::core::clone::Clone::clone(value)),)*
                }
            }
        }

        #[automatically_derived]
        impl ::core::cmp::PartialEq for #name {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.ptr_eq(other)
            }
        }

        #[automatically_derived]
        impl ::core::cmp::Eq for #name {}

        #[automatically_derived]
        impl ::core::hash::Hash for #name {
            fn hash<H: ::core::hash::Hasher>(&self, state: &mut H) {
                ::core::hash::Hash::hash(::relaxide_ffi::Handle::as_object(self), state);
            }
        }
    }
}

/// Into the family from its members, and between the family, objects and values.
fn conversions(name: &Ident, variants: &[Variant<'_>]) -> TokenStream {
    let into = variants.iter().map(|Variant { ident, ty }| {
        quote! {
            #[automatically_derived]
            impl ::core::convert::From<#ty> for #name {
                #[inline]
                fn from(value: #ty) -> Self {
                    #name::#ident(value)
                }
            }

            #[automatically_derived]
            impl ::core::convert::From<&#ty> for #name {
                fn from(value: &#ty) -> Self {
                    #name::#ident(::core::clone::Clone::clone(value))
                }
            }
        }
    });
    let idents: Vec<_> = variants.iter().map(|variant| variant.ident).collect();
    quote! {
        #(#into)*

        #[automatically_derived]
        impl ::core::convert::From<#name> for ::relaxide_ffi::ObjectRef {
            fn from(value: #name) -> Self {
                match value {
                    #(#name::#idents(value) => ::core::convert::Into::into(value),)*
                }
            }
        }

        #[automatically_derived]
        impl ::core::convert::From<&#name> for ::relaxide_ffi::ObjectRef {
            fn from(value: &#name) -> Self {
                ::core::clone::Clone::clone(::relaxide_ffi::Handle::as_object(value))
            }
        }

        #[automatically_derived]
        impl ::core::convert::From<#name> for ::relaxide_ffi::Any {
            fn from(value: #name) -> Self {
                ::relaxide_ffi::Any::from(::relaxide_ffi::ObjectRef::from(value))
            }
        }

        #[automatically_derived]
        impl ::core::convert::From<&#name> for ::relaxide_ffi::Any {
            fn from(value: &#name) -> Self {
                ::relaxide_ffi::Any::from(::relaxide_ffi::ObjectRef::from(value))
            }
        }

        #[automatically_derived]
        impl ::core::convert::TryFrom<::relaxide_ffi::ObjectRef> for #name {
            type Error = ::relaxide_ffi::Error;

            fn try_from(object: ::relaxide_ffi::ObjectRef) -> ::core::result::Result<Self, ::relaxide_ffi::Error> {
                <Self as ::relaxide_ffi::Handle>::try_from_object(object).map_err(|object| {
                    ::relaxide_ffi::Error::type_mismatch(
                        &<Self as ::relaxide_ffi::Handle>::expected(),
                        object.type_key(),
                    )
                })
            }
        }

        #[automatically_derived]
        impl ::relaxide_ffi::FromAny for #name {
            fn from_any(
                value: ::relaxide_ffi::AnyView<'_>,
            ) -> ::core::result::Result<Self, ::relaxide_ffi::Error> {
                ::relaxide_ffi::handle_from_any(value)
            }
        }
    }
}

/// The family as a field.
fn structure(name: &Ident, variants: &[Variant<'_>]) -> TokenStream {
    let idents: Vec<_> = variants.iter().map(|variant| variant.ident).collect();
    quote! {
        #[automatically_derived]
        impl ::relaxide_ffi::Field for #name {
            fn to_any(&self) -> ::relaxide_ffi::Any {
                ::relaxide_ffi::Any::from(self)
            }

            fn s_equal(&self, other: &Self, eq: &mut ::relaxide_ffi::StructuralEqual) -> bool {
                #[allow(unreachable_patterns, reason = "an enum of one variant has no other arm")]
                match (self, other) {
                    #((#name::#idents(a), #name::#idents(b)) => ::relaxide_ffi::Field::s_equal(a, b, eq),)*
                    _ => eq.differ_in_type(
                        ::relaxide_ffi::Handle::as_object(self),
                        ::relaxide_ffi::Handle::as_object(other),
                    ),
                }
            }

            fn s_hash(&self, hash: &mut ::relaxide_ffi::StructuralHash) {
                match self {
                    #(#name::#idents(value) => ::relaxide_ffi::Field::s_hash(value, hash),)*
                }
            }
        }
    }
}

fn variants(input: &DeriveInput) -> Result<Vec<Variant<'_>>> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "a family of objects is an enum"));
    };
    if data.variants.is_empty() {
        return Err(Error::new(input.ident.span(), "a family of objects has at least one member"));
    }
    data.variants
        .iter()
        .map(|variant| match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                let field = fields.unnamed.first().ok_or_else(|| Error::new(variant.span(), "expected one field"))?;
                Ok(Variant { ident: &variant.ident, ty: &field.ty })
            }
            _ => Err(Error::new(variant.span(), "each member holds exactly one handle: `Call(Ref<Call>)`")),
        })
        .collect()
}
