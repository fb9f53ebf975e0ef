//! Host and device functions apart.
//!
//! A lowered kernel whose loops are bound to threads becomes a function of the host, and one of the device for each outermost bound loop.
//! The host's function has the kernel's name and parameters; where the loop stood it calls the device's function by its name, with the
//! memory and the numbers that the loop uses, then the extent of each thread axis.
//!
//! ```text
//! def f(A, B):                                   def f(A, B):
//!     for b in T.thread_binding(…):       ->         T.call_packed("f_kernel", A.data, B.data, n, blocks, 64)
//!         for t in T.thread_binding(64):         f_kernel(A, B, n): the loops
//! ```
//!
//! The function of a device counts in 32 bits where it can (`device_indices.rs`); where that depends on lengths, there is one in 64 bits beside it.
//!
//! **Checks.** What a device finds wrong (an index that is data, outside of its extent) it cannot raise. It writes which check it was, and the
//! numbers, into a buffer that the host clears before and looks at behind the call; the thread ends there. Kernels without such checks have
//! no such buffer.
//!
//! Needs: the lowered form, all memory accesses in bound loops; memory that the threads of a block share (scope `shared`) is asked for inside
//! of them. Virtual threads become statements first. Leaves out: other scopes of such memory (`warp`), and thread axes other than those of
//! blocks and threads, which are refused. Source: TVM's `SplitHostDevice` for the form of the call.

use std::collections::HashSet;

use indexmap::{IndexMap, IndexSet};
use relaxide_ffi::{DataType, Device, Ref};
use relaxide_ir::pass::{PassError, PassInfo, PassResult, Refusal};
use relaxide_ir::prim::{self, PrimExpr, PrimVisitor, int};
use relaxide_ir::{Attrs, BaseFunc, Buffer, IRModule, Target, Type, Var};

use super::LowerError;
use super::device_indices::{NarrowLoop, narrow_loop};
use super::device_limits::DeviceLimits;
use super::launch::{FAULT_WORDS, Fault, Launch};
use super::shared_memory::{bytes_of, is_shared};
use super::thread_sync::order_threads;
use super::virtual_thread::inject_virtual_threads;
use crate::functor::StmtVisitor;
use crate::stmt::*;
use crate::{HOST_FUNC, PrimFunc};

/// The attribute of a host's function: the type of the device that its tensors are on, as DLPack numbers it.
pub const DEVICE_TYPE: &str = "relaxide.device_type";

/// The pass, which stands behind all others in the pipelines of devices.
pub const PASS: PassInfo = PassInfo::new(
    "tirx.transform.SplitHostDevice",
    "Kernels for devices become functions of the host, and of the device, which those call.",
    |module, context, _| split_kernels(module, &context.target),
);

/// Splits the kernels of a module that are for devices, which is said by themselves or by the target. What is split, or for a host, stays as
/// it is.
fn split_kernels(mut module: IRModule, target: &Target) -> PassResult {
    let mut made: IndexMap<String, BaseFunc> = IndexMap::new();
    for (name, kernel) in module.functions_of::<PrimFunc>() {
        let refused = |why: Refusal| PassError::new(PASS.name, why.within(&format!("kernel `{name}`")));
        let own = kernel.target().map_err(|error| refused(Refusal::from(error.to_string())))?;
        for part in split_for(&kernel, own.as_ref().unwrap_or(target)).map_err(|error| refused(error.into()))? {
            let symbol = match Launch::of(&part) {
                Some(launch) => launch.name,
                None => name.to_string(),
            };
            if symbol != name && (module.functions.contains_key(&symbol) || made.contains_key(&symbol)) {
                return Err(refused(Refusal::from(format!(
                    "a function of the device would be `{symbol}`, which another is"
                ))));
            }
            made.insert(symbol, BaseFunc::from(Ref::new(part)));
        }
    }
    module.functions.extend(made);
    Ok(module)
}

/// A lowered kernel in its parts: the host's, then those of the device. One part of a kernel that is for a host, or a part already.
pub fn split_for(kernel: &PrimFunc, target: &Target) -> Result<Vec<PrimFunc>, LowerError> {
    let device_type = target.device_type();
    let is_part = kernel.attrs.get(DEVICE_TYPE).is_some() || Launch::of(kernel).is_some();
    let is_of_host = device_type == Device::CPU || kernel.attrs.bool(HOST_FUNC) == Some(true);
    if is_part || is_of_host {
        return Ok(vec![kernel.clone()]);
    }
    let (split, limits) = (split_device(kernel, device_type)?, DeviceLimits::of(target));
    split.launches.iter().try_for_each(|launch| limits.check(launch))?;
    Ok([split.host].into_iter().chain(split.launches.into_iter().map(|launch| launch.func)).collect())
}

/// A kernel in its parts.
#[derive(Debug)]
pub struct Split {
    /// The host's.
    pub host: PrimFunc,
    /// The device's, in the order of their calls.
    pub launches: Vec<Launch>,
}

/// Splits a lowered kernel for a device of a type.
pub fn split_device(func: &PrimFunc, device_type: i32) -> Result<Split, LowerError> {
    let func = &order_threads(&inject_virtual_threads(func)?)?;
    let kernel = func.global_symbol().unwrap_or("kernel").to_string();
    let mut memory: IndexMap<Ref<Var>, Ref<Buffer>> = IndexMap::new();
    for buffer in func.buffers.iter().flatten() {
        memory.insert(buffer.data.clone(), buffer.clone());
    }
    let mut splitter = Splitter { kernel, memory, launches: Vec::new(), loops: 0, fault: None };
    let body = splitter.host(&func.body)?;
    let Splitter { launches, fault, memory, .. } = splitter;
    let mut first: Vec<Stmt> = Vec::new();
    // The runtime's functions work with the device that the memory is on.
    if let Some(data) = memory.keys().next().filter(|_| !launches.is_empty()) {
        let device = prim::int_of(DataType::int(32), i64::from(device_type));
        first.push(call("relaxide.enter_device", vec![device, PrimExpr::from(data)]));
    }
    if let Some(fault) = fault {
        first.push(Stmt::alloc(&fault));
        first.push(call("relaxide.clear_faults", vec![PrimExpr::from(&fault.data)]));
    }
    let mut host = func.with_body(Stmt::seq(first.into_iter().chain([body])));
    host.attrs = host.attrs.with(DEVICE_TYPE, i64::from(device_type));
    Ok(Split { host, launches })
}

fn call(function: &str, args: Vec<PrimExpr>) -> Stmt {
    let name = prim::string(function);
    Stmt::evaluate(prim::call(DataType::int(32), "tirx.call_packed", [vec![name], args].concat()))
}

struct Splitter {
    kernel: String,
    /// Memory of the device, by its pointer.
    memory: IndexMap<Ref<Var>, Ref<Buffer>>,
    launches: Vec<Launch>,
    /// How many loops have been launched.
    loops: usize,
    fault: Option<Ref<Buffer>>,
}

impl Splitter {
    fn refused(&self, what: impl std::fmt::Display) -> LowerError {
        LowerError::Refused(format!(
            "{what}; kernels of devices are split from their host at loops that are bound to threads"
        ))
    }

    /// What the host does.
    fn host(&mut self, stmt: &Stmt) -> Result<Stmt, LowerError> {
        Ok(match stmt {
            Stmt::For(n) if n.kind == ForKind::ThreadBinding => self.launch(stmt)?,
            Stmt::For(n) if !self.touches(&[&n.min, &n.extent]) => {
                let body = self.host(&n.body)?;
                Stmt::loop_around(n, body)
            }
            Stmt::Seq(n) => Stmt::seq(n.seq.iter().map(|stmt| self.host(stmt)).collect::<Result<Vec<_>, _>>()?),
            Stmt::If(n) if !self.touches(&[&n.condition]) => {
                let then_case = self.host(&n.then_case)?;
                match &n.else_case {
                    Some(other) => Stmt::if_else(n.condition.clone(), then_case, self.host(other)?),
                    None => Stmt::when(n.condition.clone(), then_case),
                }
            }
            Stmt::Attr(n) if !self.touches(&[&n.value]) => {
                let body = self.host(&n.body)?;
                Ref::new(AttrStmt { node: n.node.clone(), key: n.key.clone(), value: n.value.clone(), body }).into()
            }
            Stmt::Alloc(n) if is_shared(&n.buffer) => {
                let name = &n.buffer.name;
                return Err(
                    self.refused(format!("the memory `{name}` that threads share is asked for outside of them"))
                );
            }
            Stmt::Alloc(n) => {
                // Memory of the device, which the host asks for.
                self.memory.insert(n.buffer.data.clone(), n.buffer.clone());
                stmt.clone()
            }
            Stmt::Decl(n) if n.is_view() => stmt.clone(),
            Stmt::Bind(n) if !self.touches(&[&n.value]) => stmt.clone(),
            Stmt::Evaluate(n) if !self.touches(&[&n.value]) => stmt.clone(),
            Stmt::Assert(n) if !self.touches(&[&n.condition]) => stmt.clone(),
            Stmt::Return(n) if !self.touches(&[&n.value]) => stmt.clone(),
            other => {
                let line = other.to_string();
                let line = line.lines().next().unwrap_or_default().to_string();
                return Err(self.refused(format!("`{line}` uses memory of the device outside of any thread")));
            }
        })
    }

    fn touches(&self, values: &[&PrimExpr]) -> bool {
        struct Touches<'a>(&'a IndexMap<Ref<Var>, Ref<Buffer>>, bool, HashSet<PrimExpr>);
        impl PrimVisitor for Touches<'_> {
            fn visit_prim(&mut self, e: &PrimExpr) {
                match e {
                    PrimExpr::Var(var) => self.1 |= self.0.contains_key(var),
                    PrimExpr::Load(_) => self.1 = true,
                    PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) => {}
                    _ if self.2.insert(e.clone()) => self.walk_prim(e),
                    _ => {}
                }
            }
        }
        let mut touches = Touches(&self.memory, false, HashSet::new());
        values.iter().for_each(|e| touches.visit_prim(e));
        touches.1
    }

    /// A bound loop as a function of the device, and the call of it.
    fn launch(&mut self, stmt: &Stmt) -> Result<Stmt, LowerError> {
        let mut found = DeviceUses::default();
        found.visit_stmt(stmt);
        let mut extents = Vec::new();
        for (tag, extent) in &found.axes {
            let known = ["blockIdx.", "threadIdx."].iter().any(|axis| tag.starts_with(axis));
            if !known {
                return Err(self.refused(format!("a loop is bound to `{tag}`, which no device here has")));
            }
            extents.push(extent.clone());
        }
        if let Some(tag) = found.twice {
            return Err(self.refused(format!("two loops with different extents are bound to `{tag}`")));
        }
        if let Some(scope) = found.unknown {
            return Err(self.refused(format!(
                "memory of the scope `{scope}` is not made: there are `shared`, `shared.dyn` and `local`"
            )));
        }
        let mut shared_bytes = 0i64;
        for buffer in &found.shared {
            let Some(bytes) = bytes_of(buffer) else {
                let name = &buffer.name;
                return Err(
                    self.refused(format!("the memory `{name}` that threads share has a size that is not known"))
                );
            };
            shared_bytes = shared_bytes.saturating_add(bytes);
        }
        let of_block = found.axes.iter().filter(|(tag, _)| tag.starts_with("threadIdx."));
        let threads = of_block.map(|(_, extent)| extent.as_int()).try_fold(1i64, |all, n| all.checked_mul(n?));
        let (mut params, mut buffers, mut args) = (Vec::new(), Vec::new(), Vec::new());
        for var in found.used.iter().filter(|var| !found.defined.contains(*var)) {
            args.push(PrimExpr::from(var));
            match self.memory.get(var) {
                Some(buffer) => {
                    params.push(Var::new(var.name.clone(), Type::prim(DataType::handle())));
                    buffers.push(Some(buffer.clone()));
                }
                None => {
                    params.push(var.clone());
                    buffers.push(None);
                }
            }
        }
        let checks = !found.faults.is_empty();
        let fault = checks.then(|| {
            self.fault.get_or_insert_with(|| Buffer::new("faults", DataType::int(64), [int(FAULT_WORDS)])).clone()
        });
        if let Some(fault) = &fault {
            args.push(PrimExpr::from(&fault.data));
            params.push(Var::new("faults", Type::prim(DataType::handle())));
            buffers.push(Some(fault.clone()));
        }
        let number = self.loops;
        self.loops += 1;
        let suffix = if number == 0 { String::new() } else { format!("_{number}") };
        let name = format!("{}_kernel{suffix}", self.kernel);
        let faults: Vec<Fault> = found.faults.into_iter().collect();
        let looked = fault.as_ref().map(|fault| looks_at(&self.kernel, fault, &faults));
        let scalars = params.iter().zip(&buffers).filter(|(_, buffer)| buffer.is_none());
        let scalars: Vec<Ref<Var>> = scalars.map(|(param, _)| param.clone()).collect();
        let func = PrimFunc { params, ret_type: Type::void(), buffers, attrs: Attrs::new(), body: stmt.clone() };
        let (kernel, tags) = (self.kernel.clone(), found.axes.into_keys().collect());
        let launch =
            Launch { name: name.clone(), kernel, func, tags, faults, fault, threads, shared_bytes, is_wide: false };
        let args = [args, extents].concat();
        let launched = match narrow_loop(stmt, &scalars) {
            Some(NarrowLoop { body, condition: None }) => self.function(&launch, &name, &body, args),
            Some(NarrowLoop { body, condition: Some(fits) }) => {
                let narrow = self.function(&launch, &name, &body, args.clone());
                let launch = Launch { is_wide: true, ..launch };
                Stmt::if_else(fits, narrow, self.function(&launch, &format!("{name}_wide"), stmt, args))
            }
            None => self.function(&launch, &name, stmt, args),
        };
        Ok(Stmt::seq([Some(launched), looked].into_iter().flatten()))
    }

    /// Makes a function of the device with a body, under a name, and the call of it.
    fn function(&mut self, launch: &Launch, name: &str, body: &Stmt, args: Vec<PrimExpr>) -> Stmt {
        let attrs = Attrs::new().with("global_symbol", name).with("tirx.noalias", true);
        let func = PrimFunc { attrs, body: body.clone(), ..launch.func.clone() };
        self.launches.push(Launch { name: name.to_string(), func, ..launch.clone() }.described());
        call(name, args)
    }
}

/// The host's look at what went wrong: the memory, the kernel, then kind and text of each check.
fn looks_at(kernel: &str, memory: &Ref<Buffer>, faults: &[Fault]) -> Stmt {
    let mut args = vec![PrimExpr::from(&memory.data), prim::string(kernel)];
    for fault in faults {
        let (kind, text) = match fault {
            Fault::Index(what) => ("", what),
            Fault::Assertion(kind, message) => (kind.as_str(), message),
        };
        args.extend([prim::string(kind), prim::string(text.as_str())]);
    }
    call("relaxide.raise_faults", args)
}

/// What a bound loop uses, defines and checks.
#[derive(Default)]
struct DeviceUses {
    used: IndexSet<Ref<Var>>,
    defined: HashSet<Ref<Var>>,
    axes: IndexMap<String, PrimExpr>,
    twice: Option<String>,
    /// Memory that the threads of a block share.
    shared: IndexSet<Ref<Buffer>>,
    /// A scope of memory that no device here has.
    unknown: Option<String>,
    faults: IndexSet<Fault>,
    visited: HashSet<PrimExpr>,
}

impl DeviceUses {
    fn buffer(&mut self, buffer: &Ref<Buffer>) {
        self.used.insert(buffer.data.clone());
        for e in buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]) {
            self.visit_prim(e);
        }
    }
}

impl PrimVisitor for DeviceUses {
    fn visit_prim(&mut self, e: &PrimExpr) {
        match e {
            PrimExpr::Var(var) => drop(self.used.insert(var.clone())),
            PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) => {}
            _ if !self.visited.insert(e.clone()) => {}
            _ => {
                if let PrimExpr::Let(n) = e {
                    self.defined.insert(n.var.clone());
                }
                if let PrimExpr::Call(n) = e
                    && n.op == "tirx.checked_index"
                    && let [_, _, PrimExpr::Str(what), ..] = n.args.as_slice()
                {
                    self.faults.insert(Fault::Index(what.value.clone()));
                }
                self.walk_prim(e);
            }
        }
    }

    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        self.buffer(buffer);
    }
}

impl StmtVisitor for DeviceUses {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(n) => {
                self.defined.insert(n.var.clone());
                if n.kind == ForKind::ThreadBinding {
                    match self.axes.get(&n.thread_tag) {
                        Some(known) if *known != n.extent => self.twice = Some(n.thread_tag.clone()),
                        Some(_) => {}
                        None => drop(self.axes.insert(n.thread_tag.clone(), n.extent.clone())),
                    }
                }
            }
            Stmt::Bind(n) => drop(self.defined.insert(n.var.clone())),
            Stmt::Alloc(n) => {
                self.defined.insert(n.buffer.data.clone());
                match n.buffer.scope.as_str() {
                    "global" | "local" | "" => {}
                    _ if is_shared(&n.buffer) => drop(self.shared.insert(n.buffer.clone())),
                    other => self.unknown = Some(other.to_string()),
                }
            }
            Stmt::Decl(n) if !n.is_view() => drop(self.defined.insert(n.buffer.data.clone())),
            Stmt::Assert(n) => {
                self.faults.insert(Fault::Assertion(n.error_kind.clone(), n.said()));
            }
            _ => {}
        }
        self.walk_stmt(stmt);
    }

    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        self.buffer(buffer);
    }
}
