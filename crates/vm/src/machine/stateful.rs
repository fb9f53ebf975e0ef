//! Calls in three steps: set the inputs, run, get the outputs. And calls with arguments that are bound once.
//!
//! A remote caller uses them to keep tensors where they are, and a benchmark to keep everything but the run out of the
//! measurement.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use relaxide_ffi::{Any, AnyView, Array, Device, Error, ErrorKind, Tensor};
use relaxide_runtime::device;

use super::{VirtualMachine, Vm};
use crate::executable::FuncInfo;
use crate::host::Host;

/// What is kept between calls.
#[derive(Default)]
pub(super) struct Stateful {
    inputs: HashMap<String, Vec<Any>>,
    outputs: HashMap<String, Any>,
    saved: HashMap<String, SavedCall>,
}

/// A function with its arguments.
#[derive(Clone)]
struct SavedCall {
    index: usize,
    args: Vec<Any>,
    returns: Returns,
}

/// Whether a saved call hands its result out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// It does.
    Result,
    /// It returns nothing, so that a remote caller is sent nothing.
    Nothing,
}

impl VirtualMachine {
    /// Sets the arguments of the next [`invoke_stateful`](Self::invoke_stateful) of a function. Tensors are copied to the
    /// machine's device if they are elsewhere.
    pub fn set_input(&self, name: &str, args: &[AnyView<'_>]) -> Result<(), Error> {
        let vm = self.vm();
        let info = vm.named(name)?;
        if info.num_args != args.len() as i64 {
            let message = format!(
                "The number of provided parameters ({}) doesn't match the number of arguments of {name} ({})",
                args.len(),
                info.num_args
            );
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let args = vm.on_main_device(args)?;
        vm.state().inputs.insert(name.to_owned(), args);
        Ok(())
    }

    /// Runs a function on the arguments that were set, and keeps the result.
    pub fn invoke_stateful(&self, name: &str) -> Result<(), Error> {
        let vm = self.vm();
        let index = vm.index_of(name)?;
        let inputs = vm.state().inputs.get(name).cloned().ok_or_else(|| {
            let message = format!("No inputs set for stateful call of {name}; use `set_input` first.");
            Error::new(ErrorKind::ValueError, message)
        })?;
        let views: Vec<AnyView<'_>> = inputs.iter().map(Any::as_view).collect();
        let result = vm.invoke(index, &views)?;
        vm.state().outputs.insert(name.to_owned(), result);
        Ok(())
    }

    /// The result of the last [`invoke_stateful`](Self::invoke_stateful) of a function, or the part of it that the
    /// indices lead to.
    pub fn get_output(&self, name: &str, indices: &[i64]) -> Result<Any, Error> {
        let mut value = self.vm().state().outputs.get(name).cloned().ok_or_else(|| {
            let message = format!("No output saved for call of \"{name}\"; use `invoke_stateful` to call it first.");
            Error::new(ErrorKind::ValueError, message)
        })?;
        for index in indices {
            let message = "Attempted to index into an object that is not an Array.";
            let array: Array = value.to().map_err(|_| Error::new(ErrorKind::ValueError, message))?;
            let element = usize::try_from(*index).ok().and_then(|index| array.get(index)).cloned();
            value = element.ok_or_else(|| {
                Error::new(ErrorKind::IndexError, format!("Invalid index ({index} >= {}).", array.len()))
            })?;
        }
        Ok(value)
    }

    /// The number of elements of such a part; `None` if it is not a tuple.
    pub fn output_arity(&self, name: &str, indices: &[i64]) -> Result<Option<usize>, Error> {
        Ok(self.get_output(name, indices)?.to::<Array>().ok().map(|array| array.len()))
    }

    /// Binds a function to its last arguments, as a rule all, under a new name, which is called with the others.
    pub fn save_function(
        &self,
        name: &str,
        saved_name: &str,
        args: &[AnyView<'_>],
        returns: Returns,
    ) -> Result<(), Error> {
        let vm = self.vm();
        let saved = SavedCall { index: vm.index_of(name)?, args: vm.on_main_device(args)?, returns };
        vm.state().saved.insert(saved_name.to_owned(), saved);
        vm.has_saved.store(true, Ordering::Release);
        Ok(())
    }

    /// The names of a function's parameters; empty if it has none, or none with a name.
    pub fn param_names(&self, name: &str) -> Result<&[String], Error> {
        self.vm().named(name).map(|info| info.param_names.as_slice())
    }
}

impl Vm {
    fn state(&self) -> std::sync::MutexGuard<'_, Stateful> {
        self.stateful.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn named(&self, name: &str) -> Result<&FuncInfo, Error> {
        self.info(self.index_of(name)?)
    }

    fn on_main_device(&self, args: &[AnyView<'_>]) -> Result<Vec<Any>, Error> {
        let device = self.main_device();
        let convert = |arg: &AnyView<'_>| match arg.to::<Tensor>() {
            // A program over several devices says of each argument where it is to be; who calls has put it there. What lies on the host
            // where the first device is another goes there, as in TVM.
            Ok(tensor) if self.is_placed(tensor.device()) => Ok(tensor.into()),
            Ok(tensor) => device::to_device(&tensor, device).map(Any::from),
            Err(_) => Ok(arg.to_owned()),
        };
        args.iter().map(convert).collect()
    }

    /// Whether an argument on a device has been put there on purpose.
    fn is_placed(&self, device: Device) -> bool {
        let is_own = self.places.iter().any(|place| place.device == device);
        is_own && (device.device_type != Device::CPU || self.main_device().device_type == Device::CPU)
    }

    pub(super) fn has_saved(&self, name: &str) -> bool {
        self.has_saved.load(Ordering::Acquire) && self.state().saved.contains_key(name)
    }

    /// Calls a saved function, if there is one of the name, with the saved arguments behind those that are given.
    pub(super) fn invoke_saved(&self, name: &str, args: &[AnyView<'_>]) -> Option<Result<Any, Error>> {
        if !self.has_saved.load(Ordering::Acquire) {
            return None;
        }
        let saved = self.state().saved.get(name).cloned()?;
        let views: Vec<AnyView<'_>> = args.iter().copied().chain(saved.args.iter().map(Any::as_view)).collect();
        let result = self.invoke(saved.index, &views);
        Some(if saved.returns == Returns::Nothing { result.map(|_| Any::none()) } else { result })
    }
}
