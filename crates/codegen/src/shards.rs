//! Division of the work: which kernels are compiled together, and which of them are one.

use std::collections::HashMap;

use relaxide_ffi::{structural_equal, structural_hash};
use relaxide_ir::{PrimExpr, Ref, prim::PrimVisitor};
use relaxide_tir::{PrimFunc, Stmt, StmtVisitor};

/// Fewer kernels than this are not worth an LLVM context of their own.
const KERNELS_PER_SHARD: usize = 4;

/// More shards than this bring nothing on machines of today.
const MOST_SHARDS: usize = 32;

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
        let alike = seen.entry(structural_hash(&func, true)).or_default();
        let known = alike.iter().find(|(_, other)| structural_equal(&func, other, true).is_ok());
        let original = known.map_or(index, |(original, _)| *original);
        if original == index {
            alike.push((index, func));
        }
        originals.push(original);
    }
    originals
}

/// Kernels by shard, so that the shards have about the same amount of code and kernels that share a body are together.
///
/// How many shards there are depends on the kernels alone, so that every machine makes the same objects of them.
pub(crate) fn split(funcs: &[Ref<PrimFunc>], originals: &[usize]) -> Vec<Vec<usize>> {
    let distinct: Vec<usize> = (0..funcs.len()).filter(|index| originals[*index] == *index).collect();
    let count = (distinct.len() / KERNELS_PER_SHARD).clamp(1, MOST_SHARDS);
    let mut sizes: Vec<(usize, usize)> = distinct.iter().map(|&index| (size(&funcs[index].body), index)).collect();
    sizes.sort_by(|a, b| b.cmp(a));
    let mut shards = vec![(0usize, Vec::new()); count];
    for (size, original) in sizes {
        if let Some(shard) = shards.iter_mut().min_by_key(|shard| shard.0) {
            shard.0 += size + 16;
            shard.1.extend((0..funcs.len()).filter(|index| originals[*index] == original));
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
