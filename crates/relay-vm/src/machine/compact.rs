//! Operations that need not be executed, and those that are one.
//!
//! A choice between constructors is three instructions: the tag, a number, the comparison. Where nothing else looks at the two
//! numbers, it is one operation ([`Decoded::Case`]), and a comparison with a number is one, too ([`Decoded::IfIs`]). Numbers that only
//! choices look at hold no memory, so they need not be forgotten; and what a decoder left as a jump to the next operation is
//! nothing at all. What remains moves together, and each operation knows the instruction that it came of, for errors.
//!
//! ```text
//! get_tag $3 $0; load_consti $4 7; if $3 $4 1 9; kill $3; kill $4    becomes    case $0 7 1 7
//! ```

use super::program::Decoded;

/// What is known of registers where operations are joined.
pub(super) struct Numbers<'f> {
    /// How often each place holds a number that one choice looks at, and nothing else: by instruction that writes it.
    pub only_here: &'f dyn Fn(usize) -> bool,
    /// Whether an instruction forgets a register that holds numbers only.
    pub forgets_number: &'f dyn Fn(usize) -> bool,
}

/// The operations that remain, and the instruction of each.
pub(super) fn compact(mut ops: Vec<Decoded>, numbers: &Numbers<'_>) -> (Vec<Decoded>, Vec<u32>) {
    let mut is_target = vec![false; ops.len() + 1];
    for op in &mut ops {
        each_target(op, |target| {
            if let Some(flag) = is_target.get_mut(*target as usize) {
                *flag = true;
            }
        });
    }
    let mut dropped = vec![false; ops.len()];
    for at in 0..ops.len() {
        match &ops[at] {
            Decoded::Goto { target } if *target as usize == at + 1 => dropped[at] = true,
            Decoded::Kill { .. } if (numbers.forgets_number)(at) => dropped[at] = true,
            Decoded::GetTag { .. } | Decoded::LoadInt { .. } => {
                if let Some((joined, count)) = joined(&ops[at..], at, &is_target, numbers) {
                    ops[at] = joined;
                    dropped[at + 1..at + count].fill(true);
                }
            }
            _ => {}
        }
    }
    moved_together(ops, &dropped)
}

/// One operation in the place of the first ones, and how many they are.
fn joined(ops: &[Decoded], at: usize, is_target: &[bool], numbers: &Numbers<'_>) -> Option<(Decoded, usize)> {
    let alone = |from: usize, count: usize| (from + 1..from + count).all(|pc| !is_target[pc]);
    let narrow = |value: i64| value as i32;
    match *ops {
        [
            Decoded::GetTag { object, dst: tag, plain: true },
            Decoded::LoadInt { value, dst: number, plain: true },
            Decoded::If { test, target, then, other },
            ..,
        ] if alone(at, 3)
            && tag != number
            && [(tag, number), (number, tag)].contains(&(test, target))
            && (numbers.only_here)(at)
            && (numbers.only_here)(at + 1) =>
        {
            Some((Decoded::Case { object, tag: narrow(value), then, other }, 3))
        }
        [Decoded::LoadInt { value, dst: number, plain: true }, Decoded::If { test, target, then, other }, ..]
            if alone(at, 2) && (test == number) != (target == number) && (numbers.only_here)(at) =>
        {
            let test = if test == number { target } else { test };
            Some((Decoded::IfIs { test, value: narrow(value), then, other }, 2))
        }
        _ => None,
    }
}

fn each_target(op: &mut Decoded, mut with: impl FnMut(&mut u32)) {
    match op {
        Decoded::Goto { target } => with(target),
        Decoded::If { then, other, .. } | Decoded::Case { then, other, .. } | Decoded::IfIs { then, other, .. } => {
            with(then);
            with(other);
        }
        _ => {}
    }
}

fn moved_together(ops: Vec<Decoded>, dropped: &[bool]) -> (Vec<Decoded>, Vec<u32>) {
    let mut place = Vec::with_capacity(ops.len() + 1);
    let mut count = 0u32;
    for is_dropped in dropped {
        place.push(count);
        count += u32::from(!is_dropped);
    }
    place.push(count);
    let kept = ops.into_iter().enumerate().filter(|(at, _)| !dropped[*at]);
    kept.map(|(at, mut op)| {
        each_target(&mut op, |target| *target = place[*target as usize]);
        (op, at as u32)
    })
    .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Numbers<'static> = Numbers { only_here: &|_| true, forgets_number: &|_| true };

    fn choice() -> Vec<Decoded> {
        vec![
            Decoded::GetTag { object: 0, dst: 2, plain: true },
            Decoded::LoadInt { value: 7, dst: 3, plain: true },
            Decoded::If { test: 2, target: 3, then: 3, other: 5 },
            Decoded::Kill { dst: 2 },
            Decoded::Goto { target: 6 },
            Decoded::Kill { dst: 3 },
            Decoded::Ret { result: 1 },
        ]
    }

    #[test]
    fn a_choice_between_constructors_is_one_operation() {
        let (ops, origin) = compact(choice(), &ALL);
        assert_eq!(origin, [0, 4, 6]);
        assert!(matches!(ops[0], Decoded::Case { object: 0, tag: 7, then: 1, other: 2 }));
        assert!(matches!(ops[1], Decoded::Goto { target: 2 }));
    }

    #[test]
    fn what_others_look_at_or_jump_to_stays() {
        let kept = Numbers { only_here: &|_| false, forgets_number: &|_| false };
        assert_eq!(compact(choice(), &kept).0.len(), 7);
        let mut code = choice();
        code.push(Decoded::Goto { target: 2 });
        let (ops, _) = compact(code, &ALL);
        assert!(matches!(ops[0], Decoded::GetTag { .. }));
        assert!(matches!(ops[1], Decoded::LoadInt { .. }));
        assert!(matches!(ops[2], Decoded::If { then: 3, other: 4, .. }));
    }

    #[test]
    fn a_comparison_with_a_number_is_one_operation() {
        let code = vec![
            Decoded::LoadInt { value: 1, dst: 3, plain: true },
            Decoded::If { test: 0, target: 3, then: 2, other: 3 },
            Decoded::Ret { result: 0 },
            Decoded::Ret { result: 1 },
        ];
        let (ops, origin) = compact(code, &ALL);
        assert!(matches!(ops[0], Decoded::IfIs { test: 0, value: 1, then: 1, other: 2 }));
        assert_eq!(origin, [0, 2, 3]);
    }
}
