//! Buffers that threads share lie in one piece of memory, those that are not needed at once in the same place of it.
//!
//! ```text
//! a = T.alloc_buffer((128,), "float16", scope="shared.dyn")      mem = T.alloc_buffer((512,), "uint8", scope="shared.dyn")
//! b = T.alloc_buffer((128,), "float16", scope="shared.dyn")      a = T.decl_buffer((128,), "float16", data=mem.data)
//! b[t] = a[t]                                              ->    b = T.decl_buffer((128,), "float16", data=mem.data)
//!                                                                b[t + 128] = a[t]
//! ```
//!
//! A kernel can be launched with one piece of memory whose size the launch says. A buffer is needed from the first statement that touches
//! it to the last; where one of them is in a loop or a choice that the buffer is around, from the beginning of that to its end. Places are
//! given in the order of the text, each the lowest that no buffer has that is needed at the same time. Threads must wait between two
//! buffers in one place: `ThreadSync` behind this pass sees to it.
//!
//! Each nest of loops over threads has memory of its own. Left as they are: buffers whose size is not known, and the only one of a nest.
//! With the option `tirx.merge_static_smem` those of the scope `shared` are merged, too, apart from the others.
//! Source: TVM's `MergeSharedMemoryAllocations`.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator, PrimVisitor};
use relaxide_ir::{Attrs, Buffer, DataType, Var};

use super::shared_memory::{SHARED, bytes_of};
use super::{LowerError, kernel_pass_with};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

/// The option of a pass context that merges memory of fixed size, too.
const STATIC: &str = "tirx.merge_static_smem";

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "s_tir.transform.MergeSharedMemoryAllocations",
    "Buffers that threads share lie in one piece of memory.",
    |func, context, _| {
        let merged = merge(func, "shared.dyn", "buf_dyn_shmem")?;
        if context.config.bool(STATIC) == Some(true) { merge(&merged, SHARED, "buf_shmem") } else { Ok(merged) }
    }
);

/// Places are multiples of so many bytes: as many as a thread moves at once.
const ALIGNMENT: i64 = 16;

fn merge(func: &PrimFunc, scope: &'static str, name: &'static str) -> Result<PrimFunc, LowerError> {
    let mut nests = Nests { scope, name };
    Ok(func.with_body(nests.mutate_stmt(&func.body)))
}

/// Looks for the outermost loops over threads.
struct Nests {
    scope: &'static str,
    name: &'static str,
}

impl PrimMutator for Nests {}

impl StmtMutator for Nests {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::For(n) if n.kind == ForKind::ThreadBinding => {
                let mut uses = Uses { scope: self.scope, now: 0, around: Vec::new(), known: Vec::new() };
                uses.visit_stmt(&n.body);
                match Merged::of(uses.known, self) {
                    Some(mut merged) => Stmt::loop_around(n, merged.body(&n.body)),
                    None => stmt.clone(),
                }
            }
            _ => self.remake_stmt(stmt),
        }
    }
}

/// A buffer, and when it is needed.
struct Use {
    buffer: Ref<Buffer>,
    bytes: i64,
    /// How many loops and choices are around its allocation.
    depth: usize,
    /// The first and the last statement that needs it.
    needed: Option<(usize, usize)>,
}

/// Numbers statements in order, and notes which buffers they touch.
struct Uses {
    scope: &'static str,
    now: usize,
    /// Loops and choices around, with the first statement in each.
    around: Vec<(usize, Vec<usize>)>,
    known: Vec<Use>,
}

impl Uses {
    fn touch(&mut self, data: &Ref<Var>) {
        let Some(at) = self.known.iter().position(|known| known.buffer.data == *data) else { return };
        let known = &mut self.known[at];
        let begin = self.around.get(known.depth).map_or(self.now, |(begin, _)| *begin);
        let (first, last) = known.needed.unwrap_or((begin, self.now));
        known.needed = Some((first.min(begin), last.max(self.now)));
        // It is needed to the end of what the allocation is around.
        if let Some((_, touched)) = self.around.get_mut(known.depth) {
            touched.push(at);
        }
    }

    fn inside(&mut self, stmt: &Stmt) {
        self.now += 1;
        self.around.push((self.now, Vec::new()));
        self.walk_stmt(stmt);
        let now = self.now;
        for at in self.around.pop().map(|(_, touched)| touched).unwrap_or_default() {
            if let Some((_, last)) = &mut self.known[at].needed {
                *last = now;
            }
        }
    }
}

impl PrimVisitor for Uses {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if let PrimExpr::Var(var) = e {
            self.touch(var);
        }
        self.walk_prim(e);
    }

    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        self.touch(&buffer.data);
    }
}

impl StmtVisitor for Uses {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Alloc(n) if n.buffer.scope == self.scope => {
                if let Some(bytes) = bytes_of(&n.buffer) {
                    let (buffer, depth) = (n.buffer.clone(), self.around.len());
                    self.known.push(Use { buffer, bytes, depth, needed: None });
                }
            }
            // Another view of memory does nothing by itself.
            Stmt::Decl(n) if n.is_view() => {}
            Stmt::For(n) if n.kind == ForKind::ThreadBinding => self.walk_stmt(stmt),
            Stmt::For(_) | Stmt::While(_) | Stmt::If(_) => self.inside(stmt),
            Stmt::Seq(_) | Stmt::Attr(_) => self.walk_stmt(stmt),
            _ => {
                self.now += 1;
                self.walk_stmt(stmt);
            }
        }
    }

    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        self.touch(&buffer.data);
    }
}

/// Bytes of the memory that a buffer has, and from which statement to which it is needed, where that is known.
struct Placed {
    begin: i64,
    end: i64,
    needed: Option<(usize, usize)>,
}

/// The places of buffers in one piece of memory.
struct Merged {
    memory: Ref<Buffer>,
    /// By the pointer of a buffer, the bytes before it.
    places: HashMap<Ref<Var>, i64>,
    /// The buffers that take the place of others.
    views: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl Merged {
    fn of(uses: Vec<Use>, nests: &Nests) -> Option<Merged> {
        if uses.len() < 2 {
            return None;
        }
        let mut placed: Vec<Placed> = Vec::new();
        let mut places = HashMap::new();
        for one in &uses {
            let apart = |other: &Placed| match (one.needed, other.needed) {
                (Some((first, last)), Some((begin, end))) => last < begin || end < first,
                _ => true,
            };
            let beside = placed.iter().filter(|other| !apart(other));
            let mut taken: Vec<(i64, i64)> = beside.map(|other| (other.begin, other.end)).collect();
            taken.sort_unstable();
            let at = taken.iter().fold(0, |at, (begin, end)| if at + one.bytes <= *begin { at } else { at.max(*end) });
            let end = (at + one.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            placed.push(Placed { begin: at, end, needed: one.needed });
            places.insert(one.buffer.data.clone(), at);
        }
        let size = uses.iter().map(|one| places[&one.buffer.data] + one.bytes).max().unwrap_or(0);
        let memory =
            Buffer::scoped(nests.name, DataType::uint(8), [prim::int_of(DataType::int(32), size)], nests.scope);
        Some(Merged { memory, places, views: HashMap::new() })
    }

    fn body(&mut self, body: &Stmt) -> Stmt {
        let alloc = AllocBuffer { buffer: self.memory.clone(), annotations: Attrs::new() };
        Stmt::seq([Stmt::Alloc(Ref::new(alloc)), self.mutate_stmt(body)])
    }

    /// How many elements stand before a buffer, where its one index says it; nothing where its offset does.
    fn shift(&self, buffer: &Buffer) -> Option<i64> {
        let before = self.places.get(&buffer.data)?;
        let plain = buffer.ndim() == 1 && buffer.strides.is_empty() && buffer.elem_offset.is_int(0);
        plain.then(|| before / buffer.dtype.bytes() as i64)
    }

    fn shifted(&mut self, buffer: &Buffer, indices: &[PrimExpr]) -> Vec<PrimExpr> {
        let indices = self.mutate_prims(indices);
        match (self.shift(buffer), indices.as_slice()) {
            (Some(shift), [index]) if shift != 0 => {
                let (dtype, lanes) = (index.dtype(), i64::from(index.dtype().lanes));
                let shift = prim::int_of(dtype.element(), shift);
                vec![index + &if lanes > 1 { prim::broadcast(shift, lanes) } else { shift }]
            }
            _ => indices,
        }
    }
}

impl PrimMutator for Merged {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(n) => {
                let (buffer, indices) = (self.mutate_buffer_use(&n.buffer), self.shifted(&n.buffer, &n.indices));
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                Ref::new(BufferLoad { buffer, indices, predicate }).into()
            }
            PrimExpr::Var(var) => match self.places.get(var) {
                Some(0) => PrimExpr::from(&self.memory.data),
                Some(before) => {
                    let first = prim::load(&self.memory, [prim::int_of(DataType::int(32), *before)]);
                    prim::call(DataType::handle(), "tirx.address_of", vec![first])
                }
                None => e.clone(),
            },
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        let Some(before) = self.places.get(&buffer.data).copied() else { return buffer.clone() };
        if let Some(view) = self.views.get(buffer) {
            return view.clone();
        }
        let elem_offset = match self.shift(buffer) {
            Some(_) => buffer.elem_offset.clone(),
            None => {
                &buffer.elem_offset + prim::int_of(buffer.elem_offset.dtype(), before / buffer.dtype.bytes() as i64)
            }
        };
        let view = Ref::new(Buffer { data: self.memory.data.clone(), elem_offset, ..(**buffer).clone() });
        self.views.insert(buffer.clone(), view.clone());
        view
    }
}

impl StmtMutator for Merged {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Alloc(n) if self.places.contains_key(&n.buffer.data) => {
                let view = self.mutate_buffer_use(&n.buffer);
                Stmt::decl(&view, PrimExpr::from(&self.memory.data))
            }
            Stmt::Decl(n) if self.places.contains_key(&n.buffer.data) => {
                let view = self.mutate_buffer_use(&n.buffer);
                Stmt::decl(&view, PrimExpr::from(&self.memory.data))
            }
            Stmt::Store(n) => {
                let (buffer, indices) = (self.mutate_buffer_use(&n.buffer), self.shifted(&n.buffer, &n.indices));
                let (value, predicate) =
                    (self.mutate_prim(&n.value), n.predicate.as_ref().map(|p| self.mutate_prim(p)));
                Ref::new(BufferStore { buffer, value, indices, predicate }).into()
            }
            _ => self.remake_stmt(stmt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F16: DataType = DataType::float(16);

    /// A nest of 8 threads over three shared buffers of 8 elements, with statements over them.
    fn kernel(stmts: impl FnOnce(&[Ref<Buffer>; 3], &PrimExpr) -> Vec<Stmt>) -> String {
        let buffers = ["a", "b", "c"].map(|name| Buffer::scoped(name, F16, [8i64], "shared.dyn"));
        let out = Buffer::new("out", F16, [8i64]);
        let var = Var::prim("tx", DataType::int(32));
        let tx = PrimExpr::from(&var);
        let mut list: Vec<Stmt> = buffers.iter().map(Stmt::alloc).collect();
        list.extend(stmts(&buffers, &tx));
        list.push(Stmt::store(&out, [tx.clone()], prim::load(&buffers[2], [tx])));
        let (min, extent) = (prim::int_of(DataType::int(32), 0), prim::int_of(DataType::int(32), 8));
        let nest = For::new(ForKind::ThreadBinding, var, min, extent, Stmt::seq(list));
        let nest = For { thread_tag: "threadIdx.x".to_string(), ..nest };
        let func = PrimFunc::over_buffers(&[out], &[], Stmt::For(Ref::new(nest)));
        let merged = merge(&func, "shared.dyn", "buf_dyn_shmem").unwrap();
        crate::verify::verify(&merged).unwrap();
        merged.to_string()
    }

    fn copy(to: &Ref<Buffer>, from: &Ref<Buffer>, at: &PrimExpr) -> Stmt {
        Stmt::store(to, [at.clone()], prim::load(from, [at.clone()]))
    }

    #[test]
    fn what_is_not_needed_at_once_has_one_place() {
        let text = kernel(|[a, b, c], tx| {
            let zero = Stmt::store(a, [tx.clone()], prim::float_of(F16, 0.0));
            vec![zero, copy(b, a, tx), Stmt::barrier(), copy(c, b, tx)]
        });
        // `c` takes the place of `a`, and `b` lies eight elements behind.
        assert!(text.contains("32") && text.contains("tx + 8") && !text.contains("tx + 16"), "{text}");
    }

    #[test]
    fn what_a_loop_touches_is_needed_throughout_it() {
        let text = kernel(|[a, b, c], tx| {
            let zero = Stmt::store(a, [tx.clone()], prim::float_of(F16, 0.0));
            let inside = Stmt::seq([copy(b, a, tx), Stmt::barrier(), copy(c, b, tx)]);
            vec![zero, Stmt::each("i", 4i64, |_| inside)]
        });
        assert!(text.contains("48"), "three buffers of 16 bytes: {text}");
    }
}
