//! Inlining of injective stages into the stages that read them.
//!
//! ```text
//! T[i, j] = A[i, j] * s[j]
//! B[i, j] = max(T[i, j], 0)         ->        B[i, j] = max(A[i, j] * s[j], 0)
//! ```
//!
//! A stage is inlined where that does no work twice: it is cheap (arithmetic, a guard, a rearrangement), or it is read at
//! one place that visits each element once. An expensive stage (`exp`) with two readers, or read inside a window, keeps its
//! buffer; so do indices that are computed from floats, and what is gathered by such, where more than one element wants it, and
//! transposes whose reader finds its rows along memory there, at several places. A producer that is used several times at one place becomes a `let`, so that long element-wise chains grow by their length and
//! not by its exponent.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::arith::dims::weight;
use relaxide_ir::prim::{BinaryOp, BufferLoad, Let, PrimExpr, PrimMutator, PrimVisitor, VarMap, any, substitute};
use relaxide_ir::{Buffer, Var};

use super::affine::{all_same, coefficient, cost, flat_index, loads, uses, uses_any};
use super::stage::{Item, Program, Stage};

/// Operations up to which doing a stage's work again costs less than storing and loading it.
const CHEAP: i64 = 12;
/// Operations beyond which a body is not grown by cheap producers with several readers.
const LARGE: i64 = 160;
/// Nodes that inlining may write beyond those of both stages. A row of gathers that look at their indices twice, `i < 0 ? i + n : i`,
/// would double with each.
const MOST_COPIED: usize = 400;

/// Inlines what can be inlined, in program order, and drops the stages that nothing reads any more.
pub fn run(program: &mut Program) {
    let mut position = 0;
    while position < program.items.len() {
        if let Item::Stage(producer) = &program.items[position]
            && is_candidate(program, position, producer)
        {
            let producer = producer.clone();
            for item in &mut program.items[position + 1..] {
                if let Item::Stage(consumer) = item {
                    put_into(&producer, consumer);
                }
            }
            program.items.remove(position);
            program.intermediates.retain(|b| *b != producer.output);
        } else {
            position += 1;
        }
    }
}

/// Whether a stage may and should be inlined into all its readers.
fn is_candidate(program: &Program, position: usize, producer: &Stage) -> bool {
    let buffer = &producer.output;
    if producer.reduction.is_some() || !producer.is_identity() || !program.intermediates.contains(buffer) {
        return false;
    }
    let mut readers = Vec::new();
    for (other, item) in program.items.iter().enumerate().filter(|(other, _)| *other != position) {
        let writes_it = item.writes().contains(buffer);
        let writes_its_input = other > position && item.writes().iter().any(|b| producer.reads().contains(b));
        if writes_it || writes_its_input {
            return false;
        }
        match item {
            Item::Stage(stage) if stage.reads().contains(buffer) => {
                let in_init =
                    stage.reduction.as_ref().is_some_and(|r| loads(&r.init).iter().any(|l| l.buffer == *buffer));
                if other < position || in_init {
                    return false;
                }
                readers.push(stage);
            }
            Item::Opaque(_) if item.reads().contains(buffer) => return false,
            _ => {}
        }
    }
    if readers.iter().any(|reader| copied(producer, reader) > MOST_COPIED) {
        return false;
    }
    if readers.iter().any(|reader| is_transposed_for(producer, reader)) {
        return false;
    }
    let work = cost(&producer.value);
    if (finds_places(producer) || gathers(producer)) && !readers.iter().all(|reader| reads_each_once(reader, buffer)) {
        return false;
    }
    match readers.as_slice() {
        [] => false,
        [reader] => work <= CHEAP || reads_each_once(reader, buffer),
        _ => work <= CHEAP && readers.iter().all(|r| cost(&r.value) <= LARGE),
    }
}

/// How many nodes there are more than once when a producer is inlined: its value at several places of the reader, and indices that the
/// value asks for several times.
fn copied(producer: &Stage, reader: &Stage) -> usize {
    let sites = sites(producer, reader);
    let value = weight(&producer.value);
    let mut uses = Uses(HashMap::new());
    uses.visit_prim(&producer.value);
    let of_indices = |site: &Ref<BufferLoad>| -> usize {
        let asked = producer.indices.iter().map(|axis| axis.as_var().and_then(|var| uses.0.get(var)).copied());
        asked.zip(&site.indices).map(|(n, index)| n.unwrap_or(0).saturating_sub(1) * weight(index)).sum()
    };
    let values = if becomes_let(producer, reader, &sites) { 1 } else { sites.len() };
    values.saturating_sub(1) * value + sites.iter().take(values).map(of_indices).sum::<usize>()
}

/// How often an expression names each variable.
struct Uses(HashMap<Ref<Var>, usize>);

impl PrimVisitor for Uses {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if let PrimExpr::Var(var) = e {
            *self.0.entry(var.clone()).or_default() += 1;
        }
        self.walk_prim(e);
    }
}

/// Whether a stage computes indices from floats, or by divisions of its axes: where the elements lie that a place in an image is mixed
/// from. They are few beside the elements of all channels, and a vector of indices that are loaded is put together faster than one of
/// indices that are converted or divided.
fn finds_places(stage: &Stage) -> bool {
    let converts = |e: &PrimExpr| matches!(e, PrimExpr::Cast(n) if n.dtype.is_int() && n.value.dtype().is_float());
    let divides =
        |e: &PrimExpr| matches!(e, PrimExpr::Binary(n) if matches!(n.op, BinaryOp::FloorDiv | BinaryOp::FloorMod));
    let is_dear = || any(&stage.value, converts) || loads(&stage.value).is_empty() && any(&stage.value, divides);
    stage.output.dtype.is_int() && stage.output.dtype.bits >= 32 && is_dear()
}

/// Whether a stage transposes a tensor so that its reader's rows lie along memory, at several places of it: inlined, each of them would be read
/// element by element.
fn is_transposed_for(producer: &Stage, reader: &Stage) -> bool {
    let (Some(own), Some(x)) = (producer.spatial.last(), reader.spatial.last()) else { return false };
    let lies =
        |load: &BufferLoad, axis: &Ref<Var>| coefficient(&flat_index(&load.buffer, &load.indices), axis) == Some(1);
    let PrimExpr::Load(transposed) = &producer.value else { return false };
    let sites = sites(producer, reader);
    let Some(first) = sites.first() else { return false };
    let is_several = sites.iter().any(|site| !all_same(&site.indices, &first.indices));
    is_several && !lies(transposed, &own.var) && sites.iter().all(|site| lies(site, &x.var))
}

/// Whether neighbours of a stage's row are loaded from where others say, one by one.
fn gathers(stage: &Stage) -> bool {
    let Some(x) = stage.spatial.last() else { return false };
    let says = |index: &PrimExpr| loads(index).iter().any(|l| l.indices.iter().any(|i| uses(i, &x.var)));
    loads(&stage.value).iter().any(|load| load.indices.iter().any(says))
}

/// Whether a stage reads each element of a buffer at one point only, however often it does there.
fn reads_each_once(reader: &Stage, buffer: &Ref<Buffer>) -> bool {
    let sites: Vec<Ref<BufferLoad>> = loads(&reader.value).into_iter().filter(|l| l.buffer == *buffer).collect();
    let Some(first) = sites.first() else { return false };
    let axes = reader.spatial.iter().chain(&reader.reduce);
    sites.iter().all(|s| all_same(&s.indices, &first.indices))
        && axes.clone().all(|a| first.indices.iter().any(|i| i.as_var() == Some(&a.var)))
}

/// Where a consumer reads what a producer writes.
fn sites(producer: &Stage, consumer: &Stage) -> Vec<Ref<BufferLoad>> {
    loads(&consumer.value).into_iter().filter(|l| l.buffer == producer.output).collect()
}

/// Whether a producer is named in its consumer, and used there by name: it is read several times at one place.
fn becomes_let(producer: &Stage, consumer: &Stage, sites: &[Ref<BufferLoad>]) -> bool {
    let [first, _, ..] = sites else { return false };
    sites.iter().all(|s| all_same(&s.indices, &first.indices))
        && !first.indices.iter().any(|i| uses_any(i, &bound_in(&consumer.value)))
        && !is_plain(&producer.value)
        && !in_lazy_side(&consumer.value, &producer.output)
}

/// Replaces a consumer's loads of the producer's buffer by the producer's value.
fn put_into(producer: &Stage, consumer: &mut Stage) {
    let sites = sites(producer, consumer);
    let Some(first) = sites.first() else { return };
    if becomes_let(producer, consumer, &sites) {
        let var = Var::prim(producer.name.clone(), producer.output.dtype);
        let value = value_at(producer, &first.indices);
        let mut replace = ByName { buffer: &producer.output, var: &var };
        let body = replace.mutate_prim(&consumer.value);
        consumer.value = Ref::new(Let { var, value, body }).into();
    } else {
        consumer.value = ByValue { producer }.mutate_prim(&consumer.value);
    }
}

/// The producer's value at some indices, its `let` variables fresh.
fn value_at(producer: &Stage, indices: &[PrimExpr]) -> PrimExpr {
    let mut map = VarMap::new();
    for (axis, index) in producer.indices.iter().zip(indices) {
        if let Some(var) = axis.as_var() {
            map.insert(var.clone(), index.clone());
        }
    }
    freshen_lets(&substitute(&producer.value, &map))
}

/// The same expression with fresh variables in its `let`s, so that each is bound once in a kernel.
pub fn freshen_lets(e: &PrimExpr) -> PrimExpr {
    struct Freshen(HashMap<Ref<Var>, PrimExpr>);
    impl PrimMutator for Freshen {
        fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
            match e {
                PrimExpr::Var(var) => self.0.get(var).cloned().unwrap_or_else(|| e.clone()),
                PrimExpr::Let(n) => {
                    let value = self.mutate_prim(&n.value);
                    let var = Var::new(n.var.name.clone(), n.var.ty.clone());
                    self.0.insert(n.var.clone(), PrimExpr::from(&var));
                    Ref::new(Let { var, value, body: self.mutate_prim(&n.body) }).into()
                }
                _ => self.remake_prim(e),
            }
        }
    }
    Freshen(HashMap::new()).mutate_prim(e)
}

/// The variables that `let`s of an expression bind.
pub fn bound_in(e: &PrimExpr) -> Vec<Ref<Var>> {
    struct Bound(Vec<Ref<Var>>);
    impl PrimVisitor for Bound {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Let(n) = e {
                self.0.push(n.var.clone());
            }
            self.walk_prim(e);
        }
    }
    let mut bound = Bound(Vec::new());
    bound.visit_prim(e);
    bound.0
}

/// Whether a value is an element or a literal: nothing that a name would save.
fn is_plain(e: &PrimExpr) -> bool {
    matches!(e, PrimExpr::Load(_) | PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Var(_))
}

/// Whether a buffer is read on a side of a lazy choice, where an eager `let` around the whole would reach too far.
fn in_lazy_side(e: &PrimExpr, buffer: &Ref<Buffer>) -> bool {
    struct Search<'a> {
        buffer: &'a Ref<Buffer>,
        found: bool,
    }
    impl PrimVisitor for Search<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Call(c) = e
                && c.op == "tirx.if_then_else"
            {
                self.found |= c.args.iter().skip(1).flat_map(loads).any(|l| l.buffer == *self.buffer);
            }
            self.walk_prim(e);
        }
    }
    let mut search = Search { buffer, found: false };
    search.visit_prim(e);
    search.found
}

struct ByName<'a> {
    buffer: &'a Ref<Buffer>,
    var: &'a Ref<Var>,
}

impl PrimMutator for ByName<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(l) if l.buffer == *self.buffer => PrimExpr::from(self.var),
            _ => self.remake_prim(e),
        }
    }
}

struct ByValue<'a> {
    producer: &'a Stage,
}

impl PrimMutator for ByValue<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(l) if l.buffer == self.producer.output => {
                let indices: Vec<PrimExpr> = self.mutate_prims(&l.indices);
                value_at(self.producer, &indices)
            }
            _ => self.remake_prim(e),
        }
    }
}
