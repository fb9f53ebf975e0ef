//! Adjacent axes that every access walks together become one.
//!
//! ```text
//! for c, h, w:  B[c, h, w] = max(A[c, h, w] * s[c], 0)     ->     for c, hw:  B'[c, hw] = max(A'[c, hw] * s[c], 0)
//! ```
//!
//! `A'` and `B'` are views of the same memory. Two axes merge where each access either ignores both, or has them as its
//! indices of two neighbouring dimensions, the inner of which has just the inner axis' extent (dimensions of extent one in
//! between do not count). A row is then as long as the data allows, and no vector loop ends at an image's edge for nothing. The axes of a reduction
//! are put in the order of memory first, whatever the order is in which a program names them.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{BufferLoad, PrimExpr, PrimMutator, PrimVisitor, load, mul};

use super::super::affine::{loads, same};
use super::super::lanes::view;
use super::super::{Axis, Reduce, Reduction, Stage};

/// A stage with its axes merged.
pub fn run(stage: &Stage) -> Stage {
    let mut stage = stage.clone();
    let mut parts = vec![stage.value.clone(), load(&stage.output, stage.indices.clone())];
    merge_all(&mut stage.spatial, &mut parts);
    if let [value, PrimExpr::Load(target)] = parts.as_slice() {
        stage.value = value.clone();
        (stage.output, stage.indices) = (target.buffer.clone(), target.indices.clone());
    }
    stage
}

/// A reduction with its spatial axes and its reduction axes merged, epilogue included.
pub fn reduce(reduce: &Reduce) -> Reduce {
    let mut reduce = reduce.clone();
    let Some(Reduction { op, init }) = reduce.stage.reduction.clone() else { return reduce };
    let mut parts = vec![
        reduce.stage.value.clone(),
        init,
        reduce.epilogue.clone(),
        load(&reduce.output, reduce.indices.clone()),
        load(&reduce.stage.output, reduce.stage.indices.clone()),
    ];
    merge_all(&mut reduce.stage.spatial, &mut parts);
    sort_by_memory(&mut reduce.stage.reduce, &reduce.stage.value);
    merge_all(&mut reduce.stage.reduce, &mut parts);
    if let [value, init, epilogue, PrimExpr::Load(target), PrimExpr::Load(own)] = parts.as_slice() {
        reduce.stage.value = value.clone();
        reduce.stage.reduction = Some(Reduction { op, init: init.clone() });
        reduce.epilogue = epilogue.clone();
        (reduce.output, reduce.indices) = (target.buffer.clone(), target.indices.clone());
        (reduce.stage.output, reduce.stage.indices) = (own.buffer.clone(), own.indices.clone());
    }
    reduce
}

/// Sorts axes by the dimensions that they index, if something is read along all of them.
fn sort_by_memory(axes: &mut [Axis], value: &PrimExpr) {
    let dimension = |load: &BufferLoad, axis: &Axis| load.indices.iter().position(|i| i.as_var() == Some(&axis.var));
    if let Some(read) = loads(value).iter().find(|load| axes.iter().all(|axis| dimension(load, axis).is_some())) {
        axes.sort_by_key(|axis| dimension(read, axis));
    }
}

/// Merges neighbours, innermost first, until no pair is left that may.
fn merge_all(axes: &mut Vec<Axis>, parts: &mut [PrimExpr]) {
    let mut position = axes.len();
    while position >= 2 {
        let pair = Pair { outer: axes[position - 2].clone(), inner: axes[position - 1].clone() };
        if parts.iter().all(|e| pair.allows(e)) {
            let extent = mul(&pair.outer.extent, &pair.inner.extent);
            let var = Var::dim(format!("{}{}", pair.outer.var.name, pair.inner.var.name));
            let mut fuse = Fuse { pair: &pair, var: &var };
            parts.iter_mut().for_each(|e| *e = fuse.mutate_prim(e));
            axes.splice(position - 2..position, [Axis { var, extent }]);
        }
        position -= 1;
    }
}

struct Pair {
    outer: Axis,
    inner: Axis,
}

impl Pair {
    /// Whether every access of an expression takes the pair as one, and nothing else mentions it.
    fn allows(&self, e: &PrimExpr) -> bool {
        struct Search<'a> {
            pair: &'a Pair,
            fits: bool,
        }
        impl PrimVisitor for Search<'_> {
            fn visit_prim(&mut self, e: &PrimExpr) {
                match e {
                    PrimExpr::Var(v) if *v == self.pair.outer.var || *v == self.pair.inner.var => self.fits = false,
                    PrimExpr::Load(n) => {
                        let taken = self.pair.dimensions(n);
                        for (d, index) in n.indices.iter().enumerate() {
                            if !taken.is_some_and(|(a, b)| d == a || d == b) {
                                self.visit_prim(index);
                            }
                        }
                    }
                    _ => self.walk_prim(e),
                }
            }
        }
        let mut search = Search { pair: self, fits: true };
        search.visit_prim(e);
        search.fits
    }

    /// The two neighbouring dimensions that the pair indexes.
    fn dimensions(&self, n: &BufferLoad) -> Option<(usize, usize)> {
        let outer = n.indices.iter().position(|i| i.as_var() == Some(&self.outer.var))?;
        let is_unit = |d: usize| n.buffer.shape[d].is_int(1);
        let inner = (outer + 1..n.indices.len().min(n.buffer.ndim())).find(|d| !is_unit(*d))?;
        let fits =
            n.indices[inner].as_var() == Some(&self.inner.var) && same(&n.buffer.shape[inner], &self.inner.extent);
        fits.then_some((outer, inner))
    }
}

struct Fuse<'a> {
    pair: &'a Pair,
    var: &'a Ref<Var>,
}

impl PrimMutator for Fuse<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let PrimExpr::Load(n) = e else { return self.remake_prim(e) };
        let Some((outer, inner)) = self.pair.dimensions(n) else { return self.remake_prim(e) };
        let mut shape = n.buffer.shape.clone();
        let mut indices = n.indices.clone();
        let fused = mul(&shape[outer], &shape[inner]);
        shape.splice(outer..=inner, [fused]);
        indices.splice(outer..=inner, [PrimExpr::from(self.var)]);
        let indices = self.mutate_prims(&indices);
        Ref::new(BufferLoad { buffer: view(&n.buffer, shape), indices, predicate: n.predicate.clone() }).into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::nest::Tail;
    use super::*;
    use relaxide_ir::prim::int;
    use relaxide_ir::{Buffer, DataType};

    fn axes() -> [Axis; 3] {
        ["c", "h", "w"].map(|name| Axis { var: Var::dim(name), extent: PrimExpr::from(&Var::dim(name.to_uppercase())) })
    }

    fn stage_of(axes: &[Axis; 3], value: PrimExpr) -> Stage {
        let output = Buffer::new("B", DataType::float(32), axes.iter().map(|a| &a.extent));
        Stage {
            name: "B".into(),
            spatial: axes.to_vec(),
            reduce: Vec::new(),
            output,
            indices: axes.iter().map(|a| PrimExpr::from(&a.var)).collect(),
            reduction: None,
            value,
            ahead: None,
            tail: Tail::Masked,
            shown_elsewhere: false,
        }
    }

    #[test]
    fn an_image_becomes_a_row_and_a_channel_scale_keeps_its_axis() {
        let axes = axes();
        let a = Buffer::new("A", DataType::float(32), axes.iter().map(|x| &x.extent));
        let scale = Buffer::new("s", DataType::float(32), [&axes[0].extent]);
        let value = load(&a, axes.iter().map(|x| &x.var)) * load(&scale, [&axes[0].var]);
        assert_eq!(run(&stage_of(&axes, value)).spatial.len(), 2);
    }

    #[test]
    fn a_window_keeps_its_axes() {
        let axes = axes();
        let a = Buffer::new("A", DataType::float(32), [int(9), int(9), int(9)]);
        let shifted = PrimExpr::from(&axes[2].var) + 1;
        let value = load(&a, [PrimExpr::from(&axes[0].var), PrimExpr::from(&axes[1].var), shifted]);
        assert_eq!(run(&stage_of(&axes, value)).spatial.len(), 3);
    }
}
