//! A call of a private kernel becomes its body.
//!
//! ```text
//! def main(A, B):                                         def main(A, B):
//!     for i in range(64):                                     for i in range(64):
//!         Module.row(T.address_of(A[i, 0]), i)      ->            A_1 = T.decl_buffer((16,), data=T.address_of(A[i, 0]))
//! def row(A_data, n):                                             A_1[0] = n
//!     A = T.decl_buffer((16,), data=A_data)
//!     A[0] = n
//! ```
//!
//! Kernels that call themselves, directly or not, stay; so do those that are compiled for another target than their caller, that
//! give a result or return early, that take buffers, and those in block form, whose blocks would stand twice under one name.
//! A private kernel that was inlined and that nothing calls any more goes.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, PrimMutator, PrimVisitor};
use relaxide_ir::{BaseFunc, Buffer, IRModule, Type, Var};

use crate::PrimFunc;
use crate::early_exit::EarlyExits;
use crate::functor::{StmtMutator, StmtVisitor, fresh_kernel};
use crate::intrin::Intrinsic;
use crate::kernel_call::{called_kernel, called_kernels};
use crate::stmt::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "tirx.transform.InlinePrivateFunctions",
    "A call of a private kernel becomes its body.",
    |module, _, _| Ok(run(module)),
);

fn run(mut module: IRModule) -> IRModule {
    let kernels: IndexMap<String, Ref<PrimFunc>> =
        module.functions_of::<PrimFunc>().map(|(name, kernel)| (name.to_string(), kernel)).collect();
    let calls: HashMap<&str, Vec<String>> =
        kernels.iter().map(|(name, kernel)| (name.as_str(), called_kernels(kernel))).collect();
    let mut order: Vec<(usize, &String)> = Vec::new();
    let mut bodies: HashMap<String, Ref<PrimFunc>> = HashMap::new();
    for (name, kernel) in &kernels {
        let reached = reached_from(name, &calls);
        order.push((reached.len(), name));
        if !reached.contains(name) && may_be_inlined(kernel) {
            bodies.insert(name.clone(), kernel.clone());
        }
    }
    // Innermost first, so that a body that is inlined has no calls left to inline.
    order.sort_by_key(|(reached, _)| *reached);
    let mut inlined = HashSet::new();
    for (_, name) in order {
        let Some(kernel) = kernels.get(name) else { continue };
        let mut inline = Inline { caller: kernel, bodies: &bodies, inlined: &mut inlined };
        let body = inline.mutate_stmt(&kernel.body);
        if body != kernel.body {
            let made = Ref::new(kernel.with_body(body));
            if bodies.contains_key(name) {
                bodies.insert(name.clone(), made.clone());
            }
            module.functions.insert(name.clone(), BaseFunc::from(made));
        }
    }
    let called: HashSet<String> = module
        .functions_of::<PrimFunc>()
        .filter(|(name, _)| !inlined.contains(*name))
        .flat_map(|(_, kernel)| called_kernels(&kernel))
        .collect();
    module.functions.retain(|name, _| !inlined.contains(name) || called.contains(name));
    module
}

/// The kernels that a kernel calls, directly or not; itself only where it is one of them.
fn reached_from(name: &str, calls: &HashMap<&str, Vec<String>>) -> HashSet<String> {
    let mut reached = HashSet::new();
    let mut pending: Vec<String> = calls.get(name).cloned().unwrap_or_default();
    while let Some(next) = pending.pop() {
        if !reached.contains(&next) {
            pending.extend(calls.get(next.as_str()).cloned().unwrap_or_default());
            reached.insert(next);
        }
    }
    reached
}

fn may_be_inlined(kernel: &PrimFunc) -> bool {
    let gives_nothing = matches!(&kernel.ret_type, Type::Tuple(ty) if ty.fields.is_empty())
        || matches!(&kernel.ret_type, Type::Prim(ty) if ty.dtype.is_void());
    kernel.global_symbol().is_none()
        && gives_nothing
        && kernel.buffers.iter().all(Option::is_none)
        && EarlyExits::of(&kernel.body) == EarlyExits::default()
        && !has_blocks(&kernel.body)
}

fn has_blocks(body: &Stmt) -> bool {
    #[derive(Default)]
    struct Blocks(bool);
    impl PrimVisitor for Blocks {}
    impl StmtVisitor for Blocks {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.0 |= matches!(stmt, Stmt::Block(_));
            self.walk_stmt(stmt);
        }
    }
    let mut blocks = Blocks::default();
    blocks.visit_stmt(body);
    blocks.0
}

struct Inline<'a> {
    caller: &'a PrimFunc,
    bodies: &'a HashMap<String, Ref<PrimFunc>>,
    inlined: &'a mut HashSet<String>,
}

impl PrimMutator for Inline<'_> {}

impl StmtMutator for Inline<'_> {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::Evaluate(n) = stmt else { return self.remake_stmt(stmt) };
        let Some((name, args)) = called_kernel(&n.value) else { return stmt.clone() };
        let fits = |callee: &&Ref<PrimFunc>| {
            callee.params.len() == args.len() && callee.attrs.get("target") == self.caller.attrs.get("target")
        };
        let Some(callee) = self.bodies.get(name).filter(fits) else { return stmt.clone() };
        self.inlined.insert(name.to_string());
        body_with(callee, args)
    }
}

/// The body of a kernel with arguments in the place of its parameters. An argument whose value the body might change, or that has
/// an effect, is bound to a name before it.
fn body_with(callee: &PrimFunc, args: &[PrimExpr]) -> Stmt {
    let callee = fresh_kernel(callee);
    let mut bound = Vec::new();
    let mut values = HashMap::new();
    for (param, arg) in callee.params.iter().zip(args) {
        if stays_the_same(arg) {
            values.insert(param.clone(), arg.clone());
        } else {
            bound.push(Stmt::bind(param.clone(), arg.clone()));
        }
    }
    let body = Arguments { values, buffers: HashMap::new() }.mutate_stmt(&callee.body);
    Stmt::seq(bound.into_iter().chain([body]))
}

/// Whether an expression has one value wherever it stands: it reads no memory and calls nothing.
fn stays_the_same(e: &PrimExpr) -> bool {
    struct Reads(bool);
    impl PrimVisitor for Reads {
        fn visit_prim(&mut self, e: &PrimExpr) {
            match e {
                PrimExpr::Load(_) => self.0 = true,
                PrimExpr::Call(call) => match (Intrinsic::of_call(&call.op), call.args.as_slice()) {
                    (Some(Intrinsic::AddressOf), [PrimExpr::Load(element)]) => {
                        element.indices.iter().for_each(|index| self.visit_prim(index));
                    }
                    (Some(Intrinsic::AccessPtr | Intrinsic::HandleAddByteOffset | Intrinsic::TypeAnnotation), _) => {
                        self.walk_prim(e);
                    }
                    (Some(intrinsic), _) if intrinsic.is_elementwise() => self.walk_prim(e),
                    _ => self.0 = true,
                },
                _ => self.walk_prim(e),
            }
        }
    }
    let mut reads = Reads(false);
    reads.visit_prim(e);
    !reads.0
}

/// Puts arguments in the place of parameters. A buffer over a parameter gets a pointer of its own where the argument is no name.
struct Arguments {
    values: HashMap<Ref<Var>, PrimExpr>,
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl PrimMutator for Arguments {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.values.get(var).cloned().unwrap_or_else(|| e.clone()),
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        let data = match self.values.get(&buffer.data) {
            Some(PrimExpr::Var(pointer)) => pointer.clone(),
            Some(_) => Var::new(buffer.name.clone(), buffer.data.ty.clone()),
            None => buffer.data.clone(),
        };
        let made = Ref::new(self.remake_buffer(buffer, data));
        self.buffers.insert(buffer.clone(), made.clone());
        made
    }
}

impl StmtMutator for Arguments {
    fn mutate_buffer_def(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        self.mutate_buffer_use(buffer)
    }
}
