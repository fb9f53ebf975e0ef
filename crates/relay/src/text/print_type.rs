//! Types to text.

use std::collections::HashSet;
use std::fmt;

use relaxide_ffi::Ref;

use super::names;
use super::parse_type::dtype_of;
use crate::{ANY, Type, TypeVar};

/// The type parameters in scope with what they are called. Outside of a module each is called by its own name.
#[derive(Default)]
pub(super) struct TypeNames {
    /// Names of data types, which no parameter may hide.
    pub data: HashSet<String>,
    scope: Vec<(usize, String)>,
}

fn address(var: &Ref<TypeVar>) -> usize {
    Ref::as_ptr(var).addr()
}

impl TypeNames {
    /// Brings parameters into scope. Gives their text, and what [`leave`](Self::leave) is to be told.
    pub fn enter(&mut self, vars: &[Ref<TypeVar>]) -> (String, usize) {
        let outer = self.scope.len();
        for var in vars {
            let name = self.fresh(&var.name);
            self.scope.push((address(var), name));
        }
        let names: Vec<&str> = self.scope[outer..].iter().map(|(_, name)| name.as_str()).collect();
        let text = if names.is_empty() { String::new() } else { format!("[{}]", names.join(", ")) };
        (text, outer)
    }

    /// Takes the parameters out of scope that came in since.
    pub fn leave(&mut self, outer: usize) {
        self.scope.truncate(outer);
    }

    fn fresh(&self, hint: &str) -> String {
        let mut base: String =
            hint.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if !names::is_free_word(&base) || dtype_of(&base).is_some() {
            base.insert(0, 't');
        }
        let taken = |name: &str| self.data.contains(name) || self.scope.iter().any(|(_, known)| known == name);
        let numbered = (1..).map(|i| format!("{base}{i}"));
        std::iter::once(base.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(base)
    }

    fn var(&self, var: &Ref<TypeVar>) -> String {
        let known = self.scope.iter().rev().find(|(at, _)| *at == address(var));
        known.map_or_else(|| names::name(&var.name).into_owned(), |(_, name)| name.clone())
    }

    /// The text of a type.
    pub fn text(&mut self, ty: &Type) -> String {
        match ty {
            Type::Tensor(t) if t.shape.is_empty() && !t.dtype.is_void() => t.dtype.to_string(),
            Type::Tensor(t) => {
                let dim = |d: &i64| if *d == ANY { "?".to_string() } else { d.to_string() };
                let dims: Vec<String> = t.shape.iter().map(dim).collect();
                let dtype = if t.dtype.is_void() { String::new() } else { t.dtype.to_string() };
                format!("Tensor[({}), {dtype}]", dims.join(", "))
            }
            Type::Tuple(t) => {
                format!("({}{})", self.list(&t.fields), if t.fields.len() == 1 { "," } else { "" })
            }
            Type::Func(func) => {
                let (params, outer) = self.enter(&func.type_params);
                let text = format!("fn {params}({}) -> {}", self.list(&func.args), self.text(&func.ret));
                self.leave(outer);
                text
            }
            Type::Var(v) => self.var(v),
            Type::Call(c) => format!("{}[{}]", names::name(&c.name), self.list(&c.args)),
            Type::Ref(r) => format!("ref({})", self.text(&r.value)),
            Type::Incomplete(_) => "_".into(),
        }
    }

    pub fn list(&mut self, types: &[Type]) -> String {
        types.iter().map(|ty| self.text(ty)).collect::<Vec<_>>().join(", ")
    }
}

/// In Relay's text.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&TypeNames::default().text(self))
    }
}
