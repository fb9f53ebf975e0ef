//! Division of the work: which kernels are compiled together, and which of them are one.

use std::collections::HashMap;

use relaxide_ffi::{FreeVars, structural_equal, structural_hash};
use relaxide_ir::{PrimExpr, Ref, prim::PrimVisitor};
use relaxide_tir::{PrimFunc, Stmt, StmtVisitor};

/// Code, in expressions, below which a shard is not worth an LLVM context of its own.
const SMALLEST: usize = 200;

/// Code of a kernel whatever it does, in expressions: its entry, which checks arguments.
const ENTRY: usize = 24;

/// More shards than this bring nothing on machines of today.
const MOST_SHARDS: usize = 64;

/// For each kernel the first one that computes the same; both then share one body. Names play no part in that.
pub(crate) fn originals(funcs: &[Ref<PrimFunc>]) -> Vec<usize> {
    let nameless = |func: &PrimFunc| {
        let mut func = func.clone();
        func.attrs.0.shift_remove("global_symbol");
        Ref::new(func)
    };
    let mut seen: HashMap<u64, Vec<(usize, Ref<PrimFunc>)>> = HashMap::new();
    let mut originals = Vec::with_capacity(funcs.len());
    for (index, func) in funcs.iter().enumerate() {
        let func = nameless(func);
        let alike = seen.entry(structural_hash(&func, FreeVars::Mapped)).or_default();
        let known = alike.iter().find(|(_, other)| structural_equal(&func, other, FreeVars::Mapped).is_ok());
        let original = known.map_or(index, |(original, _)| *original);
        if original == index {
            alike.push((index, func));
        }
        originals.push(original);
    }
    originals
}

/// Kernels by shard, the largest first; kernels that share a body are together, and small ones are together.
///
/// Threads take shards as they become free, so that one of them waits for the other no longer than the last shard takes.
/// How many shards there are depends on the kernels alone, so that every machine makes the same objects of them.
pub(crate) fn split(funcs: &[Ref<PrimFunc>], originals: &[usize]) -> Vec<Vec<usize>> {
    let distinct = (0..funcs.len()).filter(|index| originals[*index] == *index);
    let mut sizes: Vec<(usize, usize)> = distinct.map(|index| (ENTRY + size(&funcs[index].body), index)).collect();
    sizes.sort_by(|a, b| b.cmp(a));
    let all: usize = sizes.iter().map(|(size, _)| size).sum();
    let enough = SMALLEST.max(all / MOST_SHARDS);
    let mut shards: Vec<(usize, Vec<usize>)> = Vec::new();
    for (size, original) in sizes {
        let kernels = (0..funcs.len()).filter(|index| originals[*index] == original);
        match shards.last_mut().filter(|shard| shard.0 < enough) {
            Some(shard) => {
                shard.0 += size;
                shard.1.extend(kernels);
            }
            None => shards.push((size, kernels.collect())),
        }
    }
    for shard in &mut shards {
        shard.1.sort_unstable();
    }
    shards.into_iter().map(|(_, indices)| indices).collect()
}

fn size(body: &Stmt) -> usize {
    struct Count(usize);
    impl PrimVisitor for Count {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 += 1;
            // An estimate: expressions are graphs, whose full walk could be long.
            if self.0 < 100_000 {
                self.walk_prim(e);
            }
        }
    }
    impl StmtVisitor for Count {}
    let mut count = Count(0);
    count.visit_stmt(body);
    count.0
}
