//! The expansion of `#[derive(Object)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Ident, LitStr, Result, Type};

/// What `#[object(...)]` says.
struct TypeOptions {
    key: LitStr,
    parent: Option<LitStr>,
    kind: Ident,
    has_tail: bool,
}

/// What `#[field(...)]` says.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Compared,
    Ignored,
    Defines,
    Hidden,
}

struct Member<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    role: Role,
    in_constructor: bool,
}

pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(Error::new(input.generics.span(), "an object type cannot be generic: it has one type key"));
    }
    let options = type_options(input)?;
    let members = members(input)?;
    let name = &input.ident;
    let TypeOptions { key, parent, kind, has_tail } = &options;
    let parent = parent.as_ref().map(|parent| quote! { const PARENT_KEY: &'static str = #parent; });
    let tail = members.last().filter(|_| *has_tail).map(|member| tail(name, member));
    let infos = members.iter().filter(|member| member.role != Role::Hidden).map(|member| field_info(name, member));
    let compared = || members.iter().filter(|member| matches!(member.role, Role::Compared | Role::Defines));
    let equal = compared().map(compare);
    let hash = compared().map(hash);
    let made = members.iter().map(|member| make(key, member));
    Ok(quote! {
        #[automatically_derived]
        #[allow(clippy::undocumented_unsafe_blocks, reason = "the derive makes what the trait asks for")]
        unsafe impl ::relaxide_ffi::Object for #name {
            const TYPE_KEY: &'static str = #key;
            #parent
            #tail
            const KIND: ::relaxide_ffi::NodeKind = ::relaxide_ffi::NodeKind::#kind;

            #[inline]
            fn slot() -> &'static ::relaxide_ffi::type_info::TypeSlot {
                static SLOT: ::relaxide_ffi::type_info::TypeSlot = ::relaxide_ffi::type_info::TypeSlot::new();
                &SLOT
            }

            fn fields() -> &'static [::relaxide_ffi::reflect::FieldInfo] {
                const FIELDS: &[::relaxide_ffi::reflect::FieldInfo] = &[#(#infos),*];
                FIELDS
            }

            fn from_fields(
                read: ::relaxide_ffi::reflect::FieldReader<'_>,
            ) -> ::core::result::Result<Self, ::relaxide_ffi::Error> {
                #[allow(unused_imports, reason = "the trait answers for types that no value turns into")]
                use ::relaxide_ffi::reflect::Unable as _;
                let _ = &read;
                ::core::result::Result::Ok(#name { #(#made),* })
            }

            fn fields_equal(&self, other: &Self, eq: &mut ::relaxide_ffi::StructuralEqual) -> bool {
                let _ = (other, &eq);
                true #(&& #equal)*
            }

            fn fields_hash(&self, hash: &mut ::relaxide_ffi::StructuralHash) {
                let _ = &hash;
                #(#hash)*
            }
        }
    })
}

/// Where the values begin that lie behind an object. Its last field must be of the type that knows them.
fn tail(owner: &Ident, member: &Member<'_>) -> TokenStream {
    let ident = member.ident;
    quote! {
        const TAIL: ::core::option::Option<usize> = {
            let _: fn(&#owner) -> &::relaxide_ffi::Tail = |object| &object.#ident;
            ::core::option::Option::Some(::core::mem::offset_of!(#owner, #ident))
        };
    }
}

fn field_info(owner: &Ident, member: &Member<'_>) -> TokenStream {
    let Member { ident, ty, role, in_constructor } = member;
    let name = field_name(ident);
    let init = if *in_constructor {
        quote! {}
    } else {
        quote! { .without_init() }
    };
    let role = format_ident!(
        "{}",
        match role {
            Role::Compared => "Compared",
            Role::Defines => "Defines",
            Role::Ignored | Role::Hidden => "Ignored",
        }
    );
    quote! {
        unsafe {
            ::relaxide_ffi::reflect::FieldInfo::new::<#ty>(
                #name,
                ::core::mem::offset_of!(#owner, #ident),
                ::relaxide_ffi::reflect::FieldRole::#role,
                {
                    #[allow(unused_imports, reason = "the trait answers for types that cannot be set")]
                    use ::relaxide_ffi::reflect::Unable as _;
                    ::relaxide_ffi::reflect::Probe::<#ty>::SETTER
                },
            )#init
        }
    }
}

/// The field of an object that is made of values.
fn make(key: &LitStr, member: &Member<'_>) -> TokenStream {
    let Member { ident, ty, role, .. } = member;
    let name = field_name(ident);
    let reflect = quote! { ::relaxide_ffi::reflect };
    match role {
        Role::Hidden => quote! { #ident: #reflect::empty_field(#reflect::Probe::<#ty>::EMPTY, #key)? },
        _ => quote! { #ident: #reflect::read_field(#reflect::Probe::<#ty>::READ, #key, #name, &mut *read)? },
    }
}

fn compare(member: &Member<'_>) -> TokenStream {
    let ident = member.ident;
    let name = field_name(ident);
    let compare = quote! { ::relaxide_ffi::Field::s_equal(&self.#ident, &other.#ident, eq) };
    match member.role {
        Role::Defines => quote! { eq.field(#name, |eq| eq.def_region(|eq| #compare)) },
        _ => quote! { eq.field(#name, |eq| #compare) },
    }
}

fn hash(member: &Member<'_>) -> TokenStream {
    let ident = member.ident;
    let hash = quote! { ::relaxide_ffi::Field::s_hash(&self.#ident, hash); };
    match member.role {
        Role::Defines => quote! { hash.def_region(|hash| { #hash }); },
        _ => hash,
    }
}

/// The name without the `r#` that lets a keyword be a field.
fn field_name(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_string)
}

fn type_options(input: &DeriveInput) -> Result<TypeOptions> {
    let (mut key, mut parent, mut kind, mut has_tail) = (None, None, format_ident!("Tree"), false);
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("object")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("key") {
                key = Some(meta.value()?.parse::<LitStr>()?);
            } else if meta.path.is_ident("parent") {
                parent = Some(meta.value()?.parse::<LitStr>()?);
            } else if meta.path.is_ident("var") {
                kind = format_ident!("Var");
            } else if meta.path.is_ident("unique") {
                kind = format_ident!("Unique");
            } else if meta.path.is_ident("tail") {
                has_tail = true;
            } else {
                return Err(meta.error("expected `key = \"...\"`, `parent = \"...\"`, `var`, `unique` or `tail`"));
            }
            Ok(())
        })?;
    }
    let missing = || Error::new(input.ident.span(), "an object type needs `#[object(key = \"...\")]`");
    Ok(TypeOptions { key: key.ok_or_else(missing)?, parent, kind, has_tail })
}

fn members(input: &DeriveInput) -> Result<Vec<Member<'_>>> {
    let unsupported = || Error::new(input.ident.span(), "an object type is a struct with named fields, or with none");
    let Data::Struct(data) = &input.data else { return Err(unsupported()) };
    match &data.fields {
        Fields::Unit => Ok(Vec::new()),
        Fields::Unnamed(_) => Err(unsupported()),
        Fields::Named(fields) => fields
            .named
            .iter()
            .map(|field| {
                let ident = field.ident.as_ref().ok_or_else(unsupported)?;
                let (role, in_constructor) = options(field)?;
                Ok(Member { ident, ty: &field.ty, role, in_constructor })
            })
            .collect(),
    }
}

/// How a field takes part, and whether it is an argument of the constructor.
fn options(field: &syn::Field) -> Result<(Role, bool)> {
    let (mut role, mut in_constructor) = (Role::Compared, true);
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("field")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("ignore") {
                role = Role::Ignored;
            } else if meta.path.is_ident("def") {
                role = Role::Defines;
            } else if meta.path.is_ident("hidden") {
                role = Role::Hidden;
            } else if meta.path.is_ident("no_init") {
                in_constructor = false;
            } else {
                return Err(meta.error("expected `ignore`, `def`, `hidden` or `no_init`"));
            }
            Ok(())
        })?;
    }
    Ok((role, in_constructor))
}
