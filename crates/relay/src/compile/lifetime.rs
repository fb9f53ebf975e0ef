//! Registers are forgotten behind their last use, so that memory is given back as early as it can be.
//!
//! Liveness is computed per stretch of code without jumps, backwards, to a fixed point; inside a stretch a register that is
//! read and not live behind the reading is killed there. A register that is live on one way out of a jump and not on the
//! other is killed where that other way begins. Parameters are killed like all others.

use std::collections::HashSet;

use relaxide_relay_vm::Instruction;

/// Code with jumps to labels, which are places in the list.
pub(super) struct Listing {
    pub code: Vec<Instruction>,
    pub params: usize,
}

/// Where a jump at a place leads, absolute.
fn targets(code: &[Instruction], pc: usize) -> Vec<usize> {
    let at = |offset: i64| (pc as i64 + offset) as usize;
    match &code[pc] {
        Instruction::Ret { .. } | Instruction::Fatal => Vec::new(),
        Instruction::Goto { offset } => vec![at(*offset)],
        Instruction::If { then, other, .. } => vec![at(*then), at(*other)],
        _ => vec![pc + 1],
    }
}

struct Stretch {
    start: usize,
    end: usize,
    live_in: HashSet<i64>,
    live_out: HashSet<i64>,
}

/// The code with kills.
pub(super) fn with_kills(listing: Listing, writes: &dyn Fn(&Instruction) -> Vec<i64>) -> Vec<Instruction> {
    let code = listing.code;
    if code.is_empty() {
        return code;
    }
    let mut leaders: HashSet<usize> = HashSet::from([0]);
    for pc in 0..code.len() {
        if matches!(
            code[pc],
            Instruction::If { .. } | Instruction::Goto { .. } | Instruction::Ret { .. } | Instruction::Fatal
        ) {
            leaders.extend(targets(&code, pc));
            leaders.insert(pc + 1);
        }
    }
    let mut starts: Vec<usize> = leaders.into_iter().filter(|pc| *pc < code.len()).collect();
    starts.sort_unstable();
    let mut stretches: Vec<Stretch> = starts
        .iter()
        .enumerate()
        .map(|(i, start)| {
            let end = starts.get(i + 1).copied().unwrap_or(code.len());
            Stretch { start: *start, end, live_in: HashSet::new(), live_out: HashSet::new() }
        })
        .collect();
    solve(&code, &mut stretches, &starts, writes);
    let mut kills: Vec<(Vec<i64>, Vec<i64>)> = vec![(Vec::new(), Vec::new()); code.len()];
    for stretch in &stretches {
        let mut live = stretch.live_out.clone();
        for pc in (stretch.start..stretch.end).rev() {
            let written = writes(&code[pc]);
            let reads: HashSet<i64> = code[pc].reads().into_iter().collect();
            let ends = matches!(code[pc], Instruction::Ret { .. } | Instruction::Fatal);
            if !ends {
                let mut dead: Vec<i64> = reads.iter().chain(&written).copied().filter(|r| !live.contains(r)).collect();
                dead.sort_unstable();
                dead.dedup();
                // Behind a jump the kills stand where it leads.
                if !matches!(code[pc], Instruction::If { .. } | Instruction::Goto { .. }) {
                    kills[pc].1 = dead;
                }
            }
            for register in &written {
                live.remove(register);
            }
            live.extend(reads);
        }
    }
    entry_kills(&code, &stretches, &starts, listing.params, &mut kills);
    rebuilt(&code, &kills)
}

/// What each stretch needs from before and leaves for behind.
fn solve(code: &[Instruction], stretches: &mut [Stretch], starts: &[usize], writes: &dyn Fn(&Instruction) -> Vec<i64>) {
    let index = |pc: usize| starts.binary_search(&pc).ok();
    let mut changed = true;
    while changed {
        changed = false;
        for i in (0..stretches.len()).rev() {
            let (start, end) = (stretches[i].start, stretches[i].end);
            let mut live: HashSet<i64> = HashSet::new();
            for next in targets(code, end - 1).into_iter().filter_map(index) {
                live.extend(&stretches[next].live_in);
            }
            let out = live.clone();
            for pc in (start..end).rev() {
                for register in writes(&code[pc]) {
                    live.remove(&register);
                }
                live.extend(code[pc].reads());
            }
            if live != stretches[i].live_in || out != stretches[i].live_out {
                (stretches[i].live_in, stretches[i].live_out) = (live, out);
                changed = true;
            }
        }
    }
}

/// Kills at the beginning of a stretch what was live before the jumps to it and is not needed any more.
fn entry_kills(
    code: &[Instruction],
    stretches: &[Stretch],
    starts: &[usize],
    params: usize,
    kills: &mut [(Vec<i64>, Vec<i64>)],
) {
    let index = |pc: usize| starts.binary_search(&pc).ok();
    for (i, stretch) in stretches.iter().enumerate() {
        let mut before: HashSet<i64> = HashSet::new();
        if i == 0 {
            before.extend(0..params as i64);
        }
        for other in stretches {
            let last = other.end - 1;
            if targets(code, last).into_iter().filter_map(index).any(|next| next == i) {
                before.extend(&other.live_out);
                before.extend(code[last].reads());
            }
        }
        let mut dead: Vec<i64> = before.difference(&stretch.live_in).copied().collect();
        dead.sort_unstable();
        // What ends the function forgets everything anyway.
        if !matches!(code[stretch.start], Instruction::Ret { .. } | Instruction::Fatal) {
            kills[stretch.start].0 = dead;
        }
    }
}

/// The code with kills in their places and jumps made to fit.
fn rebuilt(code: &[Instruction], kills: &[(Vec<i64>, Vec<i64>)]) -> Vec<Instruction> {
    let mut place = Vec::with_capacity(code.len() + 1);
    let mut at = 0usize;
    for (before, behind) in kills {
        place.push(at);
        at += before.len() + 1 + behind.len();
    }
    place.push(at);
    let mut out = Vec::with_capacity(at);
    for (pc, instruction) in code.iter().enumerate() {
        let (before, behind) = &kills[pc];
        out.extend(before.iter().map(|dst| Instruction::KillRegister { dst: *dst }));
        let here = out.len() as i64;
        let offset = |old: i64| place[(pc as i64 + old) as usize] as i64 - here;
        out.push(match instruction {
            Instruction::Goto { offset: old } => Instruction::Goto { offset: offset(*old) },
            Instruction::If { test, target, then, other } => {
                Instruction::If { test: *test, target: *target, then: offset(*then), other: offset(*other) }
            }
            other => other.clone(),
        });
        out.extend(behind.iter().map(|dst| Instruction::KillRegister { dst: *dst }));
    }
    out
}
