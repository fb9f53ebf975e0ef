//! VMShapeLower: checks arguments and computes symbolic shapes on a heap of integers.
//!
//! The virtual machine knows no symbolic variables. Every function that has some gets a *shape heap*, an integer tensor
//! with a slot for each variable and for each expression over them that the function needs:
//!
//! ```text
//! def main(x: R.Tensor((n, m))):        heap = alloc_shape_heap(3)
//!     ...                               check_tensor_info(x, 2, float32, "ErrorContext(..)")
//!     s = R.shape([n * m])              match_shape(x, heap, 2, STORE, 0, STORE, 1, "ErrorContext(..)")
//!                                       cls.shape_func(heap)                    # heap[2] = heap[0] * heap[1]
//!                                       ...
//!                                       s = make_shape(heap, 1, LOAD, 2)
//! ```
//!
//! The first dimension in which a variable stands alone defines it; every other occurrence is checked against it, once it
//! can be computed. `match_cast` does the same in the middle of a function, and so does a result of which the body's type says less
//! than the function's. What is defined inside a branch is known inside
//! that branch only.
//!
//! Needs: plain blocks, no nested functions. Gives: no symbolic variable outside of types.

mod heap;
mod matching;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{Attrs, BaseFunc, GlobalVar, IRModule, Type, Var};

use super::emit::*;
use crate::functor::used_vars;
use crate::rewrite::in_function;
use crate::*;
use heap::ShapeHeap;
use matching::Pending;

pub(super) const PASS: PassInfo = PassInfo::new(
    "VMShapeLower",
    "Arguments are checked and symbolic shapes computed on a heap of integers.",
    |module, _, args| run(module, args.bool("emit_err_ctx").unwrap_or(true)),
)
.params(&[PassParam::new(
    "emit_err_ctx",
    ParamKind::Bool,
    ParamDefault::Bool(true),
    "Checks say which value they are of; without, programs are smaller and their errors say less.",
)]);

fn run(mut module: IRModule, says_which: bool) -> PassResult {
    let functions: Vec<(String, Ref<Function>)> =
        module.functions_of::<Function>().map(|(name, f)| (name.to_string(), f)).collect();
    for (name, f) in functions {
        let mut lower = Lower {
            name: &name,
            module: &mut module,
            says_which,
            heap: ShapeHeap::default(),
            tensor: None,
            error: None,
        };
        let lowered = lower.function(&f);
        if let Some(error) = lower.error {
            return Err(error);
        }
        module.functions.insert(name, BaseFunc::from(lowered));
    }
    Ok(module)
}

/// How a dimension is matched or made; the codes of the builtins.
mod code {
    pub const ASSERT_IMMEDIATE: i64 = 0;
    pub const STORE: i64 = 1;
    pub const SKIP: i64 = 2;
    pub const ASSERT_LOAD: i64 = 3;
    pub const MAKE_IMMEDIATE: i64 = 0;
    pub const MAKE_LOAD: i64 = 1;
}

struct Lower<'a> {
    name: &'a str,
    module: &'a mut IRModule,
    /// Whether checks say which value they are of.
    says_which: bool,
    heap: ShapeHeap,
    /// The heap's tensor, where the function needs one.
    tensor: Option<Expr>,
    error: Option<PassError>,
}

/// Whether all that a function promises of its result is known of its body.
fn proves_result(f: &Function, body: &SeqExpr) -> bool {
    shape::same_type(&shape::unify(&f.ret_ty, &body.body.ty()), &f.ret_ty)
}

impl Lower<'_> {
    fn function(&mut self, f: &Ref<Function>) -> Ref<Function> {
        for param in &f.params {
            if matches!(param.ty, Type::Prim(_)) {
                continue;
            }
            crate::shape::for_each_dim(&param.ty, &mut |dim| self.heap.reserve(dim));
        }
        let mut reserve = Reserve { heap: &mut self.heap, nested: false };
        reserve.visit_seq(&f.body);
        if reserve.nested {
            self.fail("a nested function is left; run LambdaLift first");
        }
        if !proves_result(f, &f.body) {
            crate::shape::for_each_dim(&f.ret_ty, &mut |dim| self.heap.reserve(dim));
        }
        let mut out = Vec::new();
        if self.heap.len() > 0 {
            let args = vec![
                Expr::external("vm.builtin.alloc_shape_heap"),
                Expr::tuple(vec![Expr::prim(self.heap.len() as i64)]),
            ];
            let ty = Type::tensor_ndim(1, relaxide_ffi::DataType::int(64));
            let (op, ty_args) = (op::Op::get("call_builtin_with_ctx").into(), vec![ty.clone()]);
            let value = Call { op, args, attrs: Attrs::new(), ty_args, ty: ty.clone(), span: None };
            self.tensor = Some(emit(&mut out, "shape_heap", ty, Ref::new(value).into()));
        }
        let none = Var::new("shape_heap", Type::any());
        self.tensor.get_or_insert_with(|| none.clone().into());
        self.check_params(f, &mut out);
        let body = self.mutate_seq(&f.body);
        let body = self.check_result(f, body);
        let none = AnyVar::Var(none);
        let uses_none = |e: &Expr| used_vars(e).contains(&none);
        if out.iter().any(|binding| uses_none(binding.value())) || uses_none(&Expr::Seq(body.clone())) {
            let value = call_op("null_value", Vec::new(), Type::any());
            out.insert(0, Ref::new(VarBinding { var: none, value }).into());
        }
        let checks = Ref::new(BindingBlock { bindings: out, dataflow: false });
        let blocks = joined(std::iter::once(checks).chain(body.blocks.iter().cloned()));
        let body = Ref::new(SeqExpr { blocks, body: body.body.clone() });
        Ref::new(Function { body, ..Function::clone(f) })
    }

    fn check_params(&mut self, f: &Function, out: &mut Vec<Binding>) {
        let mut pending = Vec::new();
        for (i, param) in f.params.iter().enumerate() {
            let told = || {
                let ty = display::type_text(&param.ty);
                format!("ErrorContext(fn={}, loc=param[{i}], param={}, annotation={ty}) ", self.name, param.name)
            };
            let context = if self.says_which { told() } else { String::new() };
            matching::check(&param.clone().into(), &param.ty, &context, out, &mut pending);
        }
        // A scalar that no dimension mentions needs no place.
        pending.retain(|p| !p.is_unused(&self.heap));
        self.match_all(pending, out);
    }

    /// Adds the checks of what the function promises to return and its body does not prove.
    fn check_result(&mut self, f: &Function, body: Ref<SeqExpr>) -> Ref<SeqExpr> {
        if proves_result(f, &body) {
            return body;
        }
        let known = body.body.ty();
        let context = if self.says_which {
            format!("ErrorContext(fn={}, loc=return, annotation={}) ", self.name, display::type_text(&f.ret_ty))
        } else {
            String::new()
        };
        let (mut out, mut pending) = (Vec::new(), Vec::new());
        matching::check_cast(&body.body, &known, &f.ret_ty, &context, &mut out, &mut pending);
        self.match_all(pending, &mut out);
        let checks = Ref::new(BindingBlock { bindings: out, dataflow: false });
        let blocks = joined(body.blocks.iter().cloned().chain([checks]));
        Ref::new(SeqExpr { blocks, body: body.body.clone() })
    }

    /// Emits the matches, computes what they make known, and then emits the checks that had to wait for that.
    fn match_all(&mut self, pending: Vec<Pending>, out: &mut Vec<Binding>) {
        let tensor = self.heap_or_null();
        let waiting: Vec<Pending> =
            pending.into_iter().filter_map(|p| p.emit_match(&mut self.heap, &tensor, out)).collect();
        self.compute_ready(out);
        for pending in waiting {
            if pending.emit_match(&mut self.heap, &tensor, out).is_some() {
                self.fail("a dimension mentions a symbolic variable that nothing defines before it is used");
            }
        }
    }

    fn compute_ready(&mut self, out: &mut Vec<Binding>) {
        if let Some(func) = self.heap.compute_ready() {
            let name = self.module.fresh_name("shape_func");
            self.module.insert(name.clone(), Ref::new(func));
            let args = vec![self.heap_or_null()];
            emit_effect(out, call(GlobalVar::new(name), args, Type::void()));
        }
    }

    /// The heap, or what holds the null value in functions that need none.
    fn heap_or_null(&self) -> Expr {
        self.tensor.clone().unwrap_or_else(|| call_op("null_value", Vec::new(), Type::any()))
    }

    fn fail(&mut self, message: &str) {
        self.error.get_or_insert(in_function(PASS.name, self.name, message));
    }

    /// The code and operand with which a dimension is made.
    fn source(&mut self, e: &PrimExpr) -> [Expr; 2] {
        if let Some(value) = e.as_int() {
            return [Expr::prim(code::MAKE_IMMEDIATE), Expr::prim(value)];
        }
        match self.heap.slot(e).filter(|slot| self.heap.is_known(*slot)) {
            Some(slot) => [Expr::prim(code::MAKE_LOAD), Expr::prim(slot as i64)],
            None => {
                let text = display::dim_text(e);
                self.fail(&format!(
                    "the value {text} is needed before its symbolic variables are defined by a parameter or a match_cast"
                ));
                [Expr::prim(code::MAKE_IMMEDIATE), Expr::prim(0)]
            }
        }
    }

    /// Rebuilds an operand; what makes shapes and scalars is emitted in front.
    fn operand(&mut self, e: &Expr, out: &mut Vec<Binding>) -> Expr {
        match e {
            Expr::Shape(shape) if shape.values.iter().any(|d| d.as_int().is_none()) => {
                let mut args = vec![self.heap_or_null(), Expr::prim(shape.values.len() as i64)];
                for dim in &shape.values {
                    args.extend(self.source(dim));
                }
                let ty = Type::shape_ndim(shape.values.len() as i64);
                emit(out, "gv", ty.clone(), call_packed("vm.builtin.make_shape", args, ty))
            }
            Expr::Prim(p) if !is_literal(&p.value) => {
                let mut args = vec![self.heap_or_null()];
                args.extend(self.source(&p.value));
                let ty = Type::prim(p.value.dtype());
                emit(out, "gv", ty.clone(), call_packed("vm.builtin.make_prim_value", args, ty))
            }
            Expr::Tuple(tuple) => Expr::tuple(tuple.fields.iter().map(|f| self.operand(f, out)).collect::<Vec<_>>()),
            Expr::TupleGetItem(item) => Expr::field(self.operand(&item.tuple, out), item.index as usize),
            Expr::Call(c) => {
                let args = c.args.iter().map(|a| self.operand(a, out)).collect::<Vec<_>>();
                if args == c.args { e.clone() } else { Ref::new(c.rebuilt(c.op.clone(), args)).into() }
            }
            _ => e.clone(),
        }
    }
}

impl ExprMutator for Lower<'_> {
    fn mutate_binding(&mut self, binding: &Binding, out: &mut Vec<Binding>) {
        match binding {
            Binding::Var(b) => {
                let value = match &b.value {
                    Expr::If(choice) => self.branches(choice, out),
                    value => self.operand(value, out),
                };
                out.push(Ref::new(VarBinding { var: b.var.clone(), value }).into());
            }
            Binding::MatchCast(cast) => {
                let value = self.operand(&cast.value, out);
                let context = if self.says_which { cast_context(cast) } else { String::new() };
                let mut pending = Vec::new();
                matching::check_cast(&value, &cast.value.ty(), &cast.ty, &context, out, &mut pending);
                self.match_all(pending, out);
                out.push(Ref::new(MatchCast { var: cast.var.clone(), value, ty: cast.ty.clone() }).into());
            }
        }
    }

    fn mutate_seq(&mut self, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        let mut out = Vec::new();
        seq.blocks.iter().flat_map(|b| &b.bindings).for_each(|b| self.mutate_binding(b, &mut out));
        let body = self.operand(&seq.body, &mut out);
        let blocks =
            if out.is_empty() { Vec::new() } else { vec![Ref::new(BindingBlock { bindings: out, dataflow: false })] };
        Ref::new(SeqExpr { blocks, body })
    }
}

/// Blocks in a row, plain ones as one.
fn joined(blocks: impl Iterator<Item = Ref<BindingBlock>>) -> Vec<Ref<BindingBlock>> {
    let mut made: Vec<Ref<BindingBlock>> = Vec::new();
    for block in blocks {
        match made.last_mut() {
            Some(last) if !last.dataflow && !block.dataflow => {
                let bindings = last.bindings.iter().chain(&block.bindings).cloned().collect();
                *last = Ref::new(BindingBlock { bindings, dataflow: false });
            }
            _ => made.push(block),
        }
    }
    made
}

impl Lower<'_> {
    fn branches(&mut self, choice: &If, out: &mut Vec<Binding>) -> Expr {
        let condition = self.operand(&choice.condition, out);
        let known = self.heap.snapshot();
        let true_branch = self.mutate_seq(&choice.true_branch);
        self.heap.restore(known.clone());
        let false_branch = self.mutate_seq(&choice.false_branch);
        self.heap.restore(known);
        Ref::new(If { condition, true_branch, false_branch, ty: choice.ty.clone() }).into()
    }
}

/// What is said where a value does not have the type that it is cast to: what it is, the type, and below what there is to say of
/// single dimensions.
fn cast_context(cast: &MatchCast) -> String {
    let own = cast.value.as_var();
    let origin = own.as_ref().and_then(|var| var.span()).filter(|span| span.is_node() && !span.source.is_empty());
    let value = match (&own, origin) {
        (_, Some(node)) => format!("the result of {}", node.source),
        (Some(var), None) => var.name().to_owned(),
        (None, None) => computed(&cast.value),
    };
    // Whoever brought a model has written no `match_cast`.
    let of_node = cast.var.span().as_ref().is_some_and(|span| span.is_node());
    let by = if of_node { "check" } else { "match_cast" };
    let mut context = format!("ErrorContext({by}, value={value}, ty={}) ", display::type_text(&cast.ty));
    let notes = cast.var.span().map_or(&[][..], |span| &span.notes);
    for (dim, note) in notes.iter().enumerate().filter(|(_, note)| !note.is_empty()) {
        context.push_str(&format!("\n{dim}: {}", note.replace('\n', " ")));
    }
    context
}

/// What is cast that has no name: a shape is told by what it is computed of, as far as that is short.
fn computed(value: &Expr) -> String {
    const LONGEST: usize = 200;
    let Expr::Shape(shape) = value else { return "a value".to_owned() };
    let dims: Vec<String> = shape.values.iter().map(display::dim_text).collect();
    let text = format!("R.shape([{}])", dims.join(", "));
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn is_literal(e: &PrimExpr) -> bool {
    matches!(e, PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_))
}

/// Gives slots to all that the body needs.
struct Reserve<'a> {
    heap: &'a mut ShapeHeap,
    nested: bool,
}

impl ExprVisitor for Reserve<'_> {
    fn visit_expr(&mut self, e: &Expr) {
        match e {
            Expr::Shape(shape) => shape.values.iter().for_each(|d| self.heap.reserve(d)),
            Expr::Prim(p) => self.heap.reserve(&p.value),
            Expr::Function(_) => self.nested = true,
            _ => self.walk_expr(e),
        }
    }

    fn visit_binding(&mut self, binding: &Binding) {
        if let Binding::MatchCast(cast) = binding {
            crate::shape::for_each_dim(&cast.ty, &mut |dim| self.heap.reserve(dim));
        }
        self.visit_expr(binding.value());
    }
}
