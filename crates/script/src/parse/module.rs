//! The top of a text: imports, symbolic names, metadata, and the class that is the module.

use relaxide_ffi::{DataType, ObjectRef, Ref};
use relaxide_ir::{AttrValue, Attrs, BaseFunc, DummyGlobalInfo, GlobalVar, IRModule, Type};
use relaxide_relax::{Constant, Expr as Relax};
use relaxide_tir::tile::PERSISTENT_KERNEL;
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::Ranged;

use super::args::Args;
use super::value::Value;
use super::{Parsed, Parser};
use crate::meta_json;
use relaxide_ir::diagnostic::Code;

/// The objects of the metadata section.
pub(super) struct Metadata {
    pub constants: Vec<Ref<Constant>>,
    pub tensors: Vec<relaxide_ffi::Tensor>,
}

/// What a decorator makes of a function.
pub(super) enum FunctionKind {
    /// `@R.function`
    Relax { private: bool, pure: bool },
    /// `@T.prim_func`
    Prim { private: bool, s_tir: bool, persistent: bool },
}

impl Parser<'_> {
    /// A whole text.
    pub(super) fn module(&mut self, body: &[Stmt]) -> Parsed<IRModule> {
        let mut class = None;
        let mut functions = Vec::new();
        for stmt in body {
            match stmt {
                Stmt::Import(import) => self.import(import)?,
                Stmt::ImportFrom(import) => self.import_from(import)?,
                Stmt::Assign(assign) => self.top_assign(assign)?,
                Stmt::ClassDef(def) if class.is_none() => class = Some(def),
                Stmt::ClassDef(def) => {
                    return Err(self.error(Code::Structure, "a text holds one module", def.name.range));
                }
                Stmt::FunctionDef(def) => functions.push(def),
                Stmt::Expr(e) if matches!(&*e.value, Expr::StringLiteral(_)) => {}
                Stmt::Pass(_) => {}
                other => return Err(self.unsupported("this statement outside of a module", other.range())),
            }
        }
        let Some(class) = class else { return self.functions(&functions, IRModule::new()) };
        if let Some(def) = functions.first() {
            let message = "functions stand inside the module's class, or there is no class";
            return Err(self.error(Code::Structure, message, def.name.range));
        }
        self.class(class)
    }

    fn import(&mut self, import: &ast::StmtImport) -> Parsed<()> {
        for alias in &import.names {
            let path = canonical_module(alias.name.as_str());
            match (path, &alias.asname) {
                (Some(path), Some(name)) => {
                    self.namespaces.insert(name.to_string(), path.to_string());
                }
                (Some(_), None) => {}
                (None, _) if ["numpy", "typing", "__future__"].contains(&alias.name.as_str()) => {}
                (None, _) => return Err(self.unsupported("this import", alias.range)),
            }
        }
        Ok(())
    }

    fn import_from(&mut self, import: &ast::StmtImportFrom) -> Parsed<()> {
        let module = import.module.as_ref().map(|m| m.as_str()).unwrap_or_default();
        if matches!(module, "typing" | "__future__") || module.starts_with("tvm.tirx") {
            return Ok(());
        }
        for alias in &import.names {
            let full = format!("{module}.{}", alias.name);
            let Some(path) = canonical_module(&full) else { return Err(self.unsupported("this import", alias.range)) };
            let name = alias.asname.as_ref().unwrap_or(&alias.name);
            self.namespaces.insert(name.to_string(), path.to_string());
        }
        Ok(())
    }

    /// `n = TypeVar("n")` or the metadata section.
    fn top_assign(&mut self, assign: &ast::StmtAssign) -> Parsed<()> {
        let ([Expr::Name(target)], Expr::Call(call)) = (assign.targets.as_slice(), &*assign.value) else {
            return Err(self.unsupported("this assignment outside of a module", assign.range));
        };
        match &*call.func {
            Expr::Name(func) if func.id.as_str() == "TypeVar" => {
                self.type_vars.insert(target.id.to_string(), DataType::int(64));
                Ok(())
            }
            func if target.id.as_str() == "metadata" && self.path(func).as_deref() == Some("tvm.ir.load_json") => {
                let [Expr::StringLiteral(text)] = &*call.arguments.args else {
                    return Err(self.error(Code::Metadata, "the metadata section is one text", call.range()));
                };
                let section = meta_json::read(text.value.to_str());
                let section = section.map_err(|e| self.error(Code::Metadata, e.to_string(), text.range))?;
                let constants = section.constants.into_iter().map(constant).collect();
                self.metadata = Some(Metadata { constants, tensors: section.tensors });
                Ok(())
            }
            _ => match self.declared_dtype(&assign.value) {
                Some(dtype) => {
                    self.type_vars.insert(target.id.to_string(), dtype);
                    Ok(())
                }
                None => Err(self.unsupported("this assignment outside of a module", assign.range)),
            },
        }
    }

    fn class(&mut self, class: &ast::StmtClassDef) -> Parsed<IRModule> {
        for decorator in &class.decorator_list {
            let callee = match &decorator.expression {
                Expr::Call(call) => &*call.func,
                other => other,
            };
            if self.host.is_none() && self.path(callee).as_deref() != Some("I.ir_module") {
                return Err(self.unsupported("this decorator of a class", decorator.range));
            }
            self.class_options(&decorator.expression, class)?;
        }
        self.module_name = class.name.to_string();
        let mut module = IRModule::new();
        let mut functions = Vec::new();
        let mut order = Vec::new();
        for stmt in &class.body {
            match stmt {
                // Methods that stay Python's are called by name.
                Stmt::FunctionDef(def) if self.is_python(def) => {}
                Stmt::FunctionDef(def) => {
                    order.push(def.name.to_string());
                    functions.push(def);
                }
                Stmt::Pass(_) => {}
                Stmt::Expr(e) => self.class_statement(&e.value, &mut module)?,
                Stmt::Assign(assign) if self.is_external(&assign.value) => {
                    order.push(self.external_function(assign, &mut module)?);
                }
                // Python has run the class's body: what it assigns is a name of the surroundings.
                Stmt::Assign(_) | Stmt::AnnAssign(_) if self.host.is_some() => {}
                other => return Err(self.unsupported("this statement in a module", other.range())),
            }
        }
        let mut module = self.functions(&functions, module)?;
        // Functions of other kinds are read first; the module has all of them as they stand in the text.
        let place = |name: &str| order.iter().position(|known| known == name).unwrap_or(usize::MAX);
        module.functions.sort_by_key(|name, _| place(name));
        Ok(module)
    }

    fn is_external(&self, value: &Expr) -> bool {
        self.call_path(value).as_deref() == Some("R.ExternFunc")
    }

    /// `name = R.ExternFunc("symbol")`: a function of the module that is found outside of it. Its name.
    fn external_function(&mut self, assign: &ast::StmtAssign, module: &mut IRModule) -> Parsed<String> {
        let ([Expr::Name(target)], Expr::Call(call)) = (assign.targets.as_slice(), &*assign.value) else {
            return Err(self.unsupported("this assignment in a module", assign.range));
        };
        let mut args = Args::of(self, "R.ExternFunc", call)?;
        let symbol = args.required(self, "name")?;
        let symbol = self.text(symbol)?;
        let ty = args.take("ty").map(|ty| self.ty(ty)).transpose()?;
        args.finish(self)?;
        let name = target.id.to_string();
        if self.globals.contains_key(&name) {
            return Err(self.error(Code::Structure, format!("`{name}` is defined twice"), target.range));
        }
        let func = ty.map_or_else(|| Relax::external(&symbol), |ty| Relax::external_typed(&symbol, ty));
        self.globals.insert(name.clone(), GlobalVar::typed(name.clone(), func.ty()));
        if let Relax::Extern(func) = func {
            module.insert(name.clone(), func);
        }
        Ok(name)
    }

    /// What `I.ir_module(...)` is told; how a Python program spells the decorator does not matter.
    fn class_options(&mut self, decorator: &Expr, class: &ast::StmtClassDef) -> Parsed<()> {
        let Expr::Call(call) = decorator else { return Ok(()) };
        for keyword in &call.arguments.keywords {
            if keyword.arg.as_ref().is_some_and(|name| name.as_str() == "check_well_formed")
                && !self.bool(&keyword.value)?
            {
                let functions = class.body.iter().filter_map(|stmt| stmt.as_function_def_stmt());
                self.unchecked.extend(functions.map(|def| def.name.to_string()));
            }
        }
        Ok(())
    }

    /// Whether a function is a method that stays Python's: `@I.pyfunc`.
    fn is_python(&self, def: &ast::StmtFunctionDef) -> bool {
        def.decorator_list.iter().any(|decorator| self.path(&decorator.expression).as_deref() == Some("I.pyfunc"))
    }

    /// `I.module_attrs({...})` and `I.module_global_infos({...})`.
    fn class_statement(&mut self, e: &Expr, module: &mut IRModule) -> Parsed<()> {
        if matches!(e, Expr::StringLiteral(_)) {
            return Ok(());
        }
        let (Expr::Call(call), path) = (e, self.call_path(e)) else {
            return Err(self.unsupported("this statement in a module", e.range()));
        };
        match path.as_deref() {
            Some("I.module_attrs") => {
                let mut args = Args::of(self, "I.module_attrs", call)?;
                let attrs = args.required(self, "attrs")?;
                module.attrs = self.attrs(attrs)?;
                args.finish(self)
            }
            Some("I.module_global_infos") => {
                let [Expr::Dict(dict)] = &*call.arguments.args else {
                    return Err(self.error(Code::Arguments, "I.module_global_infos takes a dictionary", call.range()));
                };
                for item in &dict.items {
                    let Some(Expr::StringLiteral(key)) = &item.key else {
                        return Err(self.error(Code::Type, "kinds of what functions share are texts", call.range()));
                    };
                    if key.value.to_str() == "vdevice" {
                        let devices = self.vdevice_list(&item.value)?;
                        self.vdevices.extend(devices);
                    } else {
                        let shared = self.shared_infos(&item.value)?;
                        module.infos.insert(key.value.to_str().to_string(), shared);
                    }
                }
                module.vdevices = self.vdevices.clone();
                Ok(())
            }
            _ => Err(self.unsupported("this statement in a module", e.range())),
        }
    }

    /// `[I.dummy_global_info(), …]`, or a list of such objects that the program has.
    fn shared_infos(&mut self, e: &Expr) -> Parsed<Vec<ObjectRef>> {
        if let Expr::List(list) = e {
            let is_written = |e: &Expr| self.call_path(e).as_deref() == Some("I.dummy_global_info");
            if list.elts.iter().all(is_written) {
                return Ok(list.elts.iter().map(|_| Ref::new(DummyGlobalInfo {}).into()).collect());
            }
        }
        let value = self.expr(e)?;
        let known = |item: &Value| if let Value::Object(object) = item { Some(object.clone()) } else { None };
        value.items().and_then(|items| items.iter().map(known).collect()).ok_or_else(|| {
            let message = format!("a list of I.dummy_global_info() is expected, but this is {}", value.describe());
            self.error(Code::Type, message, e.range())
        })
    }

    /// A dictionary of attributes.
    pub(super) fn attrs(&mut self, e: &Expr) -> Parsed<Attrs> {
        let value = self.expr(e)?;
        match value.into_attr() {
            Ok(AttrValue::Map(map)) => Ok(Attrs(map)),
            Ok(_) => Err(self.error(Code::Type, "a dictionary of attributes is expected", e.range())),
            Err(value) => {
                let message = format!("{} cannot be an attribute", value.describe());
                Err(self.error(Code::Type, message, e.range()))
            }
        }
    }

    /// The functions of a module: all are known by name before any body is read.
    fn functions(&mut self, defs: &[&ast::StmtFunctionDef], mut module: IRModule) -> Parsed<IRModule> {
        let mut kinds = Vec::with_capacity(defs.len());
        for def in defs {
            if self.globals.contains_key(def.name.as_str()) {
                return Err(self.error(Code::Structure, format!("`{}` is defined twice", def.name), def.name.range));
            }
            self.globals.insert(def.name.to_string(), GlobalVar::new(def.name.to_string()));
            kinds.push(self.kind(def)?);
        }
        for (def, kind) in defs.iter().zip(&kinds) {
            match kind {
                FunctionKind::Relax { pure, .. } => {
                    let ty = self.signature_type(def, *pure)?;
                    self.globals.insert(def.name.to_string(), GlobalVar::typed(def.name.to_string(), ty));
                }
                FunctionKind::Prim { .. } => {
                    let result = match def.returns.as_deref().map(|e| self.ty(e)).transpose()? {
                        None => DataType::void(),
                        Some(Type::Prim(ty)) => ty.dtype,
                        Some(Type::Pointer(_)) => DataType::handle(),
                        Some(_) => DataType::void(),
                    };
                    self.kernels.insert(def.name.to_string(), result);
                }
            }
        }
        for (def, kind) in defs.iter().zip(&kinds) {
            let name = def.name.to_string();
            match kind {
                FunctionKind::Relax { private, pure } => {
                    let func = self.relax_function(def, *pure, (!private).then_some(name.as_str()))?;
                    if *private && func.attrs.0.contains_key("global_symbol") {
                        let message = "a private function has no `global_symbol`: leave out either";
                        return Err(self.error(Code::Structure, message, def.name.range));
                    }
                    self.globals.insert(name.clone(), GlobalVar::typed(name.clone(), func.ty()));
                    module.insert(name, Ref::new(func));
                }
                FunctionKind::Prim { private, s_tir, persistent } => {
                    let mut func = self.prim_func(def, *s_tir, (!private).then_some(name.as_str()))?;
                    if *persistent {
                        func.attrs.0.insert(PERSISTENT_KERNEL.into(), true.into());
                    }
                    module.insert(name, Ref::new(func));
                }
            }
        }
        for (function, var) in std::mem::take(&mut self.outer_functions) {
            module.insert(var.name.clone(), BaseFunc(function));
        }
        Ok(module)
    }

    /// What the decorators of a function say.
    pub(super) fn kind(&mut self, def: &ast::StmtFunctionDef) -> Parsed<FunctionKind> {
        let [decorator] = &*def.decorator_list else {
            return Err(self
                .error(Code::Structure, format!("`{}` needs one decorator", def.name), def.name.range)
                .with_help("@R.function makes a Relax function, @T.prim_func a kernel")
                .into());
        };
        let (callee, call) = match &decorator.expression {
            Expr::Call(call) => (&*call.func, Some(call)),
            other => (other, None),
        };
        let path = self.path(callee);
        let option = |p: &mut Self, args: &mut Option<Args>, name: &str, default: bool| match args
            .as_mut()
            .and_then(|a| a.keyword(name))
        {
            Some(e) => p.bool(e),
            None => Ok(default),
        };
        let path = path.unwrap_or_default();
        let mut args = call.map(|call| Args::of(self, &path, call)).transpose()?;
        let kind = match path.as_str() {
            "R.function" => FunctionKind::Relax {
                private: option(self, &mut args, "private", false)?,
                pure: option(self, &mut args, "pure", true)?,
            },
            "T.prim_func" => FunctionKind::Prim {
                private: option(self, &mut args, "private", false)?,
                s_tir: option(self, &mut args, "s_tir", false)?,
                persistent: option(self, &mut args, "persistent", false)?,
            },
            _ => {
                return Err(self
                    .error(Code::Unsupported, "this decorator is not known", decorator.range)
                    .with_help("@R.function makes a Relax function, @T.prim_func a kernel")
                    .into());
            }
        };
        if !option(self, &mut args, "check_well_formed", true)? {
            self.unchecked.insert(def.name.to_string());
        }
        args.map_or(Ok(()), |args| args.finish(self))?;
        Ok(kind)
    }

    /// What a `with` statement enters: one call, with the canonical path of what it calls.
    pub(super) fn entered<'w>(
        &mut self,
        with: &'w ast::StmtWith,
    ) -> Parsed<(&'w ast::WithItem, &'w ast::ExprCall, String)> {
        let [item] = with.items.as_slice() else { return Err(self.unsupported("this block", with.range)) };
        let Expr::Call(call) = &item.context_expr else { return Err(self.unsupported("this block", item.range)) };
        Ok((item, call, self.path(&call.func).unwrap_or_default()))
    }

    /// The canonical path of what a call calls.
    pub(super) fn call_path(&self, e: &Expr) -> Option<String> {
        match e {
            Expr::Call(call) => self.path(&call.func),
            _ => None,
        }
    }
}

/// A constant of a tensor.
pub(super) fn constant(tensor: relaxide_ffi::Tensor) -> Ref<Constant> {
    let ty = relaxide_ir::Type::tensor(tensor.shape().iter().copied(), tensor.dtype());
    Ref::new(Constant { value: tensor, ty })
}

/// A constant as a value.
pub(super) fn constant_value(tensor: relaxide_ffi::Tensor) -> Value {
    Value::Relax(Relax::Constant(constant(tensor)))
}

/// The namespace that a Python module is.
fn canonical_module(path: &str) -> Option<&'static str> {
    let path = path.strip_prefix("relaxide").map_or(path.to_string(), |rest| format!("tvm{rest}"));
    Some(match path.as_str() {
        "tvm" => "tvm",
        "tvm.script" | "tvm.script.parser" => "tvm.script",
        "tvm.script.ir" | "tvm.script.parser.ir" => "I",
        "tvm.script.ir_module" | "tvm.script.parser.ir_module" => "I.ir_module",
        "tvm.script.relax" | "tvm.script.parser.relax" | "tvm.relax.script.parser" => "R",
        "tvm.script.tir" | "tvm.script.tirx" | "tvm.script.parser.tir" | "tvm.script.parser.tirx" => "T",
        "tvm.relax" | "tvm.tir" | "tvm.tirx" | "tvm.ir" => "tvm.other",
        _ => return None,
    })
}
