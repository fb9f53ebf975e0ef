//! Which functions of the runtime a module calls. The others are replaced by traps, which keeps all indices as they are.

/// The functions that one calls by their index, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct CalledFunctions(Vec<u32>);

impl CalledFunctions {
    pub fn add(&mut self, function: u32) {
        if !self.0.contains(&function) {
            self.0.push(function);
        }
    }
}

/// A body without variables, whose one instruction is a trap.
pub(super) const TRAP: &[u8] = &[0, 0, 0x0b];

/// For each function whether it is called, from these or from others that are.
pub(super) fn reached(calls: &[CalledFunctions], from: impl IntoIterator<Item = u32>) -> Vec<bool> {
    let mut reached = vec![false; calls.len()];
    let mut next: Vec<u32> = from.into_iter().collect();
    while let Some(function) = next.pop() {
        let Some(known) = reached.get_mut(function as usize) else { continue };
        if !std::mem::replace(known, true) {
            next.extend(calls.get(function as usize).into_iter().flat_map(|calls| &calls.0));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_by_way_of_others_is_reached() {
        let calls = |functions: &[u32]| CalledFunctions(functions.to_vec());
        let all = [calls(&[1]), calls(&[2]), calls(&[0]), calls(&[0])];
        assert_eq!(reached(&all, [1]), [true, true, true, false]);
        assert_eq!(reached(&all, []), [false; 4]);
    }
}
