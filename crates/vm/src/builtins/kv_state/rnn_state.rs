//! States of a fixed size, with as many earlier ones as tokens may be taken back (`vm.builtin.rnn_state_*`).
//!
//! Each state of a layer has one tensor for all sequences and times: `[sequences, history, …]`. A sequence has a row; the newest of its
//! states is at `newest`, and the next goes behind it, around the end. Kernels of the model read and write the rows of a batch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use relaxide_ffi::{Any, AnyView, Array, Error, ErrorKind, Function, Object, Ref, Tensor};
use relaxide_runtime::device;

use super::{Args, State, batch};
use crate::builtins::kv_cache::rows_of;

/// States as a program's value.
#[derive(Object)]
#[object(key = "relax.vm.RNNStateImp")]
pub(super) struct RnnState {
    /// `[layer][state]`
    #[field(hidden)]
    storages: Vec<Vec<Tensor>>,
    /// What a sequence begins with, for each state.
    #[field(hidden)]
    initial: Vec<Tensor>,
    /// What reads and writes the rows of a batch, for each state.
    #[field(hidden)]
    getters: Vec<Function>,
    #[field(hidden)]
    setters: Vec<Function>,
    #[field(hidden)]
    history: usize,
    #[field(hidden)]
    state: Mutex<Sequences>,
}

struct Sequences {
    known: BTreeMap<i64, Sequence>,
    /// Rows that no sequence has.
    free: Vec<usize>,
    batch: Option<Arc<Pass>>,
}

#[derive(Clone, Copy)]
struct Sequence {
    row: usize,
    newest: usize,
    /// How many tokens may be taken back.
    earlier: usize,
    length: i64,
}

/// A pass over a batch: its sequences, and where their states are.
struct Pass {
    ids: Vec<i64>,
    lengths: Vec<i64>,
    rows: Tensor,
    newest: Tensor,
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::ValueError, message)
}

impl Sequences {
    fn get(&mut self, id: i64) -> Result<&mut Sequence, Error> {
        let unknown = || invalid(format!("The sequence {id} cannot be found in the RNN state"));
        self.known.get_mut(&id).ok_or_else(unknown)
    }
}

impl State for RnnState {
    fn clear(&self) -> Result<(), Error> {
        let mut sequences = self.sequences();
        let rows = sequences.free.len() + sequences.known.len();
        *sequences = Sequences { known: BTreeMap::new(), free: (0..rows).rev().collect(), batch: None };
        Ok(())
    }

    fn add(&self, id: i64) -> Result<(), Error> {
        let mut sequences = self.sequences();
        let row = take_row(&mut sequences, id)?;
        for layer in &self.storages {
            for (storage, initial) in layer.iter().zip(&self.initial) {
                device::copy_into(initial, &self.at(storage, row, 0)?)?;
            }
        }
        sequences.free.pop();
        sequences.known.insert(id, Sequence { row, newest: 0, earlier: 0, length: 0 });
        Ok(())
    }

    fn remove(&self, id: i64) -> Result<(), Error> {
        let mut sequences = self.sequences();
        let row = sequences.get(id)?.row;
        sequences.known.remove(&id);
        sequences.free.push(row);
        Ok(())
    }

    fn fork(&self, parent: i64, child: i64, position: i64) -> Result<(), Error> {
        let mut sequences = self.sequences();
        let mut forked = *sequences.get(parent)?;
        let back = if position == -1 { 0 } else { forked.length - position };
        self.step_back(&mut forked, parent, back)?;
        let from = forked.row;
        forked.row = take_row(&mut sequences, child)?;
        for storage in self.storages.iter().flatten() {
            device::copy_into(&self.row_of(storage, from)?, &self.row_of(storage, forked.row)?)?;
        }
        sequences.free.pop();
        sequences.known.insert(child, forked);
        Ok(())
    }

    fn pop(&self, id: i64, count: i64) -> Result<(), Error> {
        self.step_back(self.sequences().get(id)?, id, count)
    }

    fn begin(&self, ids: &[i64], lengths: &[i64], parents: Option<&[i64]>) -> Result<(), Error> {
        if parents.is_some() {
            return Err(invalid("an RNN state has no trees of tokens".into()));
        }
        if ids.len() != lengths.len() || lengths.iter().any(|length| *length < 0) {
            return Err(invalid(format!(
                "sequences {ids:?} and lengths {lengths:?} do not fit: expected a length for each"
            )));
        }
        let mut sequences = self.sequences();
        let each = ids.iter().map(|id| sequences.get(*id).copied()).collect::<Result<Vec<_>, _>>()?;
        let place = self.initial.first().map_or(relaxide_ffi::Device::cpu(0), Tensor::device);
        let table = |f: fn(&Sequence) -> usize| {
            batch::ints(&each.iter().map(|sequence| f(sequence) as i32).collect::<Vec<_>>(), place)
        };
        let (rows, newest) = (table(|s| s.row)?, table(|s| s.newest)?);
        sequences.batch = Some(Arc::new(Pass { ids: ids.to_vec(), lengths: lengths.to_vec(), rows, newest }));
        Ok(())
    }

    fn end(&self) -> Result<(), Error> {
        let mut sequences = self.sequences();
        let Some(pass) = sequences.batch.take() else { return Ok(()) };
        for (id, length) in pass.ids.iter().zip(&pass.lengths) {
            // A sequence may have been removed while the pass was computed.
            let Ok(sequence) = sequences.get(*id) else { continue };
            sequence.length += length;
            sequence.newest = (sequence.newest + 1) % self.history;
            // What several tokens did at once cannot be taken back.
            sequence.earlier = if *length > 1 { 0 } else { (sequence.earlier + 1).min(self.history - 1) };
        }
        Ok(())
    }
}

/// The next free row, for a sequence that is new.
fn take_row(sequences: &mut Sequences, id: i64) -> Result<usize, Error> {
    if sequences.known.contains_key(&id) {
        return Err(invalid(format!("The sequence {id} is already in the RNN state")));
    }
    let rows = sequences.known.len();
    let full = || invalid(format!("the RNN state is for {rows} sequences: remove one before another is added"));
    sequences.free.last().copied().ok_or_else(full)
}

impl RnnState {
    fn sequences(&self) -> MutexGuard<'_, Sequences> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step_back(&self, sequence: &mut Sequence, id: i64, count: i64) -> Result<(), Error> {
        let back = usize::try_from(count).ok().filter(|count| *count <= sequence.earlier);
        let Some(back) = back else {
            let message =
                format!("the sequence {id} has {} earlier states, and {count} are taken back", sequence.earlier);
            return Err(Error::new(ErrorKind::RuntimeError, message));
        };
        sequence.newest = (sequence.newest + self.history - back) % self.history;
        sequence.earlier -= back;
        sequence.length -= count;
        Ok(())
    }

    /// All states of a sequence.
    fn row_of(&self, storage: &Tensor, row: usize) -> Result<Tensor, Error> {
        let shape = storage.shape().get(1..).unwrap_or_default();
        let size = storage.byte_size().checked_div(rows_of(storage)).unwrap_or(0);
        device::view_at(storage, shape, storage.dtype(), row * size)
    }

    /// One of them.
    fn at(&self, storage: &Tensor, row: usize, time: usize) -> Result<Tensor, Error> {
        let row = self.row_of(storage, row)?;
        let shape = storage.shape().get(2..).unwrap_or_default();
        device::view_at(&row, shape, row.dtype(), time * (row.byte_size() / self.history))
    }

    fn storage(&self, args: &Args<'_, '_>) -> Result<(&Tensor, usize), Error> {
        let (layer, number) = (args.index(1, "layer_id")?, args.index(2, "state_id")?);
        let found = self.storages.get(layer).and_then(|layer| layer.get(number));
        let counts = (self.storages.len(), self.initial.len());
        let missing = || {
            let (layers, states) = counts;
            invalid(format!("there is no state {number} of layer {layer}: {layers} layers have {states} states each"))
        };
        Ok((found.ok_or_else(missing)?, number))
    }
}

/// `(layers, sequences, history, what reads, what writes, what a sequence begins with)`; the last three for each state.
pub(super) fn create(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(6, 6)?;
    let (layers, rows, history) =
        (args.index(0, "num_layers")?, args.index(1, "reserved_num_seqs")?, args.index(2, "max_history")?);
    let functions = |index: usize, name: &str| -> Result<Vec<Function>, Error> {
        let list: Array = args.get(index, name)?;
        list.as_slice().iter().map(|f| f.to().map_err(|e: Error| e.context(name))).collect()
    };
    let (getters, setters) = (functions(3, "f_gets")?, functions(4, "f_sets")?);
    let given: Array = args.get(5, "init_layer_value")?;
    let initial = given.as_slice().iter().map(|t| t.to().map_err(|e: Error| e.context("init_layer_value")));
    let initial: Vec<Tensor> = initial.collect::<Result<_, _>>()?;
    if [layers, rows, history].contains(&0) || getters.len() != initial.len() || setters.len() != initial.len() {
        let (a, b, c) = (getters.len(), setters.len(), initial.len());
        let message = format_args!(
            "{layers} layers, {rows} sequences and {history} times are to be positive, and {a} readers, {b} writers and {c} first \
             states equally many"
        );
        return Err(args.error(ErrorKind::ValueError, message));
    }
    let storage = |initial: &Tensor| {
        let shape: Vec<i64> = [rows as i64, history as i64].iter().chain(initial.shape()).copied().collect();
        device::empty_tensor(&shape, initial.dtype(), initial.device())
    };
    let layer = |_| initial.iter().map(storage).collect::<Result<Vec<_>, _>>();
    let storages = (0..layers).map(layer).collect::<Result<Vec<_>, _>>()?;
    let state = Mutex::new(Sequences { known: BTreeMap::new(), free: (0..rows).rev().collect(), batch: None });
    Ok(Ref::new(RnnState { storages, initial, getters, setters, history, state }).into())
}

/// Calls a kernel over the states of this pass.
fn run(args: &Args<'_, '_>, kernels: impl Fn(&RnnState) -> &[Function]) -> Result<Ref<RnnState>, Error> {
    args.expect_len(4, 4)?;
    let state: Ref<RnnState> = args.get(0, "state")?;
    let (storage, number) = state.storage(args)?;
    let pass = state.sequences().batch.clone();
    let pass = pass.ok_or_else(|| invalid("states are used between begin_forward and end_forward".into()))?;
    let with: [AnyView<'_>; 4] = [storage.into(), (&pass.rows).into(), (&pass.newest).into(), args.view(3, "data")?];
    if let Some(kernel) = kernels(&state).get(number) {
        kernel.call(&with)?;
    }
    Ok(state)
}

/// `(state, layer, number, output)`: the newest states of the sequences of this pass.
pub(super) fn get(args: &Args<'_, '_>) -> Result<Any, Error> {
    run(args, |state| &state.getters)?;
    Ok(Any::none())
}

/// `(state, layer, number, data)`: the next states of the sequences of this pass.
pub(super) fn set(args: &Args<'_, '_>) -> Result<Any, Error> {
    Ok(run(args, |state| &state.setters)?.into())
}

/// `(state, layer, number, sequence)`: a copy of a sequence's newest state.
pub(super) fn debug_get(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(4, 4)?;
    let state: Ref<RnnState> = args.get(0, "state")?;
    let (storage, _) = state.storage(args)?;
    let sequence = *state.sequences().get(args.get(3, "seq_id")?)?;
    let newest = state.at(storage, sequence.row, sequence.newest)?;
    device::copy_tensor(&newest, newest.device()).map(Any::from)
}
