//! Axes with units: round numbers between zero and an end, and how times and amounts of memory are written.

/// Round values from zero to at most `end`, about so many, a step of 1, 2 or 5 times a power of ten apart.
pub(super) fn ticks(end: f64, about: f64) -> Vec<f64> {
    if !(end > 0.0 && end.is_finite()) {
        return vec![0.0];
    }
    let rough = end / about.max(1.0);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|k| k * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let count = (end / step + 1e-9).floor() as usize;
    (0..=count).map(|i| i as f64 * step).collect()
}

/// A unit of times or of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// How many seconds or bytes it is.
    size: f64,
    name: &'static str,
}

/// The unit of some that suits values up to `end`.
fn unit(end: f64, units: &[(f64, &'static str)]) -> Unit {
    let fits = units.iter().rev().find(|(size, _)| end >= *size);
    let (size, name) = fits.or(units.first()).copied().unwrap_or((1.0, ""));
    Unit { size, name }
}

/// The unit for times up to so many seconds.
pub(super) fn time_unit(end: f64) -> Unit {
    unit(end, &[(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")])
}

/// The unit for amounts of up to so many bytes.
pub(super) fn byte_unit(end: f64) -> Unit {
    unit(end, &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")])
}

/// A value in a unit, without zeros at its end.
pub(super) fn written(value: f64, unit: Unit) -> String {
    let text = format!("{:.3}", value / unit.size);
    format!("{} {}", text.trim_end_matches('0').trim_end_matches('.'), unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_end() {
        assert_eq!(ticks(10.0, 5.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(0.7, 4.0), [0.0, 0.2, 0.4, 0.6000000000000001]);
        assert_eq!(ticks(0.0, 4.0), [0.0]);
        assert_eq!(ticks(f64::NAN, 4.0), [0.0]);
    }

    #[test]
    fn values_have_units_that_suit() {
        assert_eq!(written(0.0025, time_unit(0.004)), "2.5 ms");
        assert_eq!(written(2.0, byte_unit(12.0)), "2 B");
        assert_eq!(written(1_500_000.0, byte_unit(2e6)), "1.5 MB");
        assert_eq!(written(0.0, time_unit(0.0)), "0 ns");
    }
}
