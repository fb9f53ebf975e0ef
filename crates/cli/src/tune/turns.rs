//! Two kernels timed in turns.

use relaxide::Comparison;

/// How often each of both is timed.
const TURNS: usize = 15;
/// Seconds that a turn takes at least: a turn of a short kernel is many calls, as clocks are coarse.
const TURN: f64 = 1e-3;

/// How many calls a turn has, of a kernel that takes so many seconds.
pub fn calls_of_turn(seconds: f64) -> usize {
    (TURN / seconds.max(1e-7)).clamp(1.0, 1000.0) as usize
}

/// Times both in turns; `of_turn` gives the seconds of a call in a turn of the first (0) or the second (1).
pub fn in_turns<E>(agrees: bool, mut of_turn: impl FnMut(usize) -> Result<f64, E>) -> Result<Comparison, E> {
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..TURNS {
        // Who comes first changes, as the caches are the other's.
        let first = turn % 2;
        let early = of_turn(first)?;
        let late = of_turn(1 - first)?;
        times[first].push(early);
        times[1 - first].push(late);
    }
    let wins = times[0].iter().zip(&times[1]).filter(|(old, new)| new < old).count() as f64 / TURNS as f64;
    let [incumbent, candidate] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times.get(TURNS / 2).copied().unwrap_or(f64::NAN)
    });
    Ok(Comparison { incumbent, candidate, wins, agrees })
}
