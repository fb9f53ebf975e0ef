//! Two kernels timed in turns.

use relaxide::Comparison;

/// How often each of both is timed.
const ROUNDS: usize = 15;
/// Seconds that a measurement takes at least: of a short kernel it is many calls, as clocks are coarse.
const LEAST: f64 = 1e-3;

/// How many calls a measurement has, of a kernel that takes so many seconds.
pub fn calls_of_round(seconds: f64) -> usize {
    (LEAST / seconds.max(1e-7)).clamp(1.0, 1000.0) as usize
}

/// Times both in turns; `timed` gives the seconds of a call of the first (0) or the second (1).
pub fn in_rounds<E>(agrees: bool, mut timed: impl FnMut(usize) -> Result<f64, E>) -> Result<Comparison, E> {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        // Who comes first changes, as the caches are the other's.
        let first = round % 2;
        let early = timed(first)?;
        let late = timed(1 - first)?;
        times[first].push(early);
        times[1 - first].push(late);
    }
    let wins = times[0].iter().zip(&times[1]).filter(|(old, new)| new < old).count() as f64 / ROUNDS as f64;
    let [incumbent, candidate] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times.get(ROUNDS / 2).copied().unwrap_or(f64::NAN)
    });
    Ok(Comparison { incumbent, candidate, wins, agrees })
}
