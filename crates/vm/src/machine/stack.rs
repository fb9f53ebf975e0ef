//! The stack of one run: the registers of all active functions in one array, and a frame for each.

use relaxide_ffi::{Any, Error};

use super::allocation_cache::AllocationCache;

/// How many functions may be active in one run.
pub const MAX_FRAMES: usize = 1 << 18;
/// How many registers they may have together.
pub const MAX_REGISTERS: usize = 1 << 23;

/// An active function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Index in the function table.
    pub(super) func: u32,
    /// The caller's register for the result.
    pub(super) dst: super::program::Destination,
    /// Where its registers begin.
    pub(super) base: usize,
    /// The instruction of the caller that called it.
    pub(super) call: usize,
}

/// Registers and frames. They keep their memory from run to run.
#[derive(Default)]
pub(super) struct Stack {
    pub(super) registers: Vec<Any>,
    pub(super) frames: Vec<Frame>,
    /// What the program's plans keep.
    pub(super) cache: AllocationCache,
}

impl Stack {
    /// Opens a frame: the caller has pushed the arguments, from `frame.base` on; the rest of the registers is empty.
    #[inline]
    pub(super) fn open(&mut self, frame: Frame, registers: usize) -> Result<(), Error> {
        let top = frame.base + registers;
        if self.frames.len() >= MAX_FRAMES || top > MAX_REGISTERS {
            return Err(self.overflow());
        }
        self.registers.resize(top, Any::none());
        self.frames.push(frame);
        Ok(())
    }

    /// Closes the innermost frame and drops its values.
    #[inline]
    pub(super) fn close(&mut self) -> Option<Frame> {
        let frame = self.frames.pop()?;
        self.registers.truncate(frame.base);
        Some(frame)
    }

    /// Drops everything, after a run that failed.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.registers.clear();
        // A run that went deep does not keep its memory for ever.
        const KEPT: usize = 1 << 16;
        if self.registers.capacity() > KEPT {
            self.registers.shrink_to(KEPT);
            self.frames.shrink_to(KEPT);
        }
    }

    #[cold]
    fn overflow(&self) -> Error {
        let (frames, registers) = (self.frames.len(), self.registers.len());
        let message = format!(
            "the call stack is full: {frames} functions with {registers} registers are active, and the limits are \
             {MAX_FRAMES} functions and {MAX_REGISTERS} registers; does the recursion end?"
        );
        Error::new("RecursionError", message)
    }
}
