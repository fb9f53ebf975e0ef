//! Types in text.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{Code, Diagnostic};

use super::lex::Tok;
use super::parse::Parser;
use crate::json::MetaValue;
use crate::{ANY, FuncType, Type};

impl Parser<'_> {
    /// A type.
    pub fn ty(&mut self) -> Result<Type, Diagnostic> {
        self.nested(Self::type_inside)
    }

    fn type_inside(&mut self) -> Result<Type, Diagnostic> {
        let token = self.token();
        match token.kind.clone() {
            Tok::Sym("(") => self.tuple_type(),
            Tok::Meta(key, index) => {
                self.advance();
                match self.meta.get(&key, index) {
                    Some(MetaValue::Type(ty)) => Ok(ty),
                    _ => Err(self.error_at(&token, Code::Metadata, format!("meta[{key}][{index}] is no type"))),
                }
            }
            Tok::Name(name) => {
                self.advance();
                match name.as_str() {
                    "Tensor" => self.tensor_type(),
                    "_" => Ok(Type::fresh()),
                    "fn" => self.function_type(),
                    "ref" if self.is("(") => {
                        self.advance();
                        let value = self.ty()?;
                        self.expect(")")?;
                        Ok(Type::reference(value))
                    }
                    _ => self.named_type(&name),
                }
            }
            Tok::Quoted(name) => {
                self.advance();
                self.data_type(name)
            }
            _ => Err(self.unexpected("a type")),
        }
    }

    fn tuple_type(&mut self) -> Result<Type, Diagnostic> {
        self.advance();
        let mut commas = false;
        let mut fields = Vec::new();
        while !self.eat(")") {
            fields.push(self.ty()?);
            if !self.is(")") {
                self.expect(",")?;
                commas = true;
            }
        }
        // Parentheses around one type are no tuple.
        match fields.as_slice() {
            [only] if !commas => Ok(only.clone()),
            _ => Ok(Type::tuple(fields)),
        }
    }

    fn tensor_type(&mut self) -> Result<Type, Diagnostic> {
        self.expect("[")?;
        self.expect("(")?;
        let shape = self.list(")", Self::dim)?;
        self.expect(",")?;
        // An operator may leave its element type open; then nothing stands here.
        let dtype = if self.is("]") { DataType::void() } else { self.dtype()? };
        self.expect("]")?;
        Ok(Type::tensor(shape, dtype))
    }

    fn dim(&mut self) -> Result<i64, Diagnostic> {
        let token = self.token();
        match token.kind.clone() {
            Tok::Sym("?") => {
                self.advance();
                Ok(ANY)
            }
            Tok::Int(value, _) if value >= 0 => {
                self.advance();
                Ok(value)
            }
            Tok::Meta(key, index) => {
                self.advance();
                match self.meta.get(&key, index) {
                    Some(MetaValue::Attr(value)) => match value {
                        relaxide_ir::AttrValue::Int(dim) if dim >= 0 => Ok(dim),
                        _ => {
                            Err(self.error_at(&token, Code::Metadata, format!("meta[{key}][{index}] is no dimension")))
                        }
                    },
                    Some(MetaValue::AnyDim) => Ok(ANY),
                    _ => Err(self.error_at(&token, Code::Metadata, format!("meta[{key}][{index}] is no dimension"))),
                }
            }
            _ => Err(self.unexpected("a dimension: a number or `?`")),
        }
    }

    fn dtype(&mut self) -> Result<DataType, Diagnostic> {
        let (name, token) = self.expect_name("an element type such as `float32`")?;
        match dtype_of(&name) {
            Some(dtype) => Ok(dtype),
            None => Err(self.error_at(&token, Code::Type, format!("`{name}` is no element type"))),
        }
    }

    fn function_type(&mut self) -> Result<Type, Diagnostic> {
        let outer = self.type_vars.len();
        let mut type_params = Vec::new();
        if self.eat("[") {
            type_params = self.list("]", |p| {
                let (name, _) = p.expect_name("a type parameter")?;
                let var = Ref::new(crate::TypeVar { name });
                p.type_vars.push(var.clone());
                Ok(var)
            })?;
        }
        self.expect("(")?;
        let args = self.list(")", Self::ty)?;
        self.expect("->")?;
        let ret = self.ty()?;
        self.type_vars.truncate(outer);
        Ok(Ref::new(FuncType { type_params, args, ret }).into())
    }

    fn named_type(&mut self, name: &str) -> Result<Type, Diagnostic> {
        if let Some(var) = self.type_vars.iter().rev().find(|v| v.name == name) {
            return Ok(var.clone().into());
        }
        if !self.is("[")
            && let Some(dtype) = dtype_of(name)
        {
            return Ok(Type::scalar(dtype));
        }
        self.data_type(name.to_string())
    }

    fn data_type(&mut self, name: String) -> Result<Type, Diagnostic> {
        let args = if self.eat("[") { self.list("]", Self::ty)? } else { Vec::new() };
        Ok(Type::data(name, args))
    }
}

/// The element type of a name, without lanes.
pub(super) fn dtype_of(name: &str) -> Option<DataType> {
    let known = ["int", "uint", "float", "bool", "bfloat"].iter().any(|prefix| name.starts_with(prefix));
    // `uint1` is what old texts call a bool.
    match name {
        "uint1" => Some(DataType::bool()),
        _ if known => name.parse::<DataType>().ok(),
        _ => None,
    }
}
