//! How long a function takes.
//!
//! One measurement calls the function `number` times in a row and divides; `repeat` measurements are taken. If a minimal
//! duration is asked for, `number` grows until a measurement lasts that long, so that short functions are not measured
//! with the clock's own grain. One call goes first and is not measured: it fills caches and pools.
//!
//! Whether the user wants to interrupt is asked between measurements, and whether the measuring was cancelled within them too: about every
//! millisecond, by what the first call took.

use std::time::{Duration, Instant};

use relaxide_ffi::{Any, AnyView, Bytes, Device, Error, ErrorKind, FromAny, Function, Module, get_global, signal};

use crate::device::{Stream, device_api};

/// What to measure, and how often.
#[derive(Clone, Copy, Debug)]
pub struct TimingOptions {
    /// Calls in one measurement; at least one.
    pub number: u32,
    /// How many measurements.
    pub repeat: u32,
    /// How long a measurement lasts at least.
    pub min_repeat: Duration,
    /// How often the number of calls may grow without the clock moving at all.
    pub limit_zero_time_iterations: u32,
    /// How long to rest between measurements.
    pub cooldown: Duration,
    /// After how many measurements to rest.
    pub repeats_to_cooldown: u32,
}

impl Default for TimingOptions {
    fn default() -> Self {
        Self {
            number: 10,
            repeat: 1,
            min_repeat: Duration::ZERO,
            limit_zero_time_iterations: 100,
            cooldown: Duration::ZERO,
            repeats_to_cooldown: 1,
        }
    }
}

/// Measures a function: the seconds of one call, for each measurement. `prepare` runs before each and is not measured.
pub fn measure(
    device: Device,
    options: &TimingOptions,
    prepare: impl FnMut() -> Result<(), Error>,
    call: impl FnMut() -> Result<(), Error>,
) -> Result<Vec<f64>, Error> {
    measure_with(u32::MAX, device, options, prepare, call)
}

/// The same with so many calls in one measurement at most.
fn measure_with(
    most: u32,
    device: Device,
    options: &TimingOptions,
    mut prepare: impl FnMut() -> Result<(), Error>,
    mut call: impl FnMut() -> Result<(), Error>,
) -> Result<Vec<f64>, Error> {
    let api = device_api(device)?;
    let begin = Instant::now();
    call()?;
    api.synchronize(device, Stream::DEFAULT)?;
    let stride = (1_000_000 / begin.elapsed().as_nanos().max(1)).clamp(1, 1024) as u32;
    let mut number = options.number.max(1);
    let mut out = Vec::new();
    for index in 0..options.repeat {
        let mut zeros = 0;
        let elapsed = loop {
            signal::check()?;
            prepare()?;
            let start = Instant::now();
            for index in 0..number {
                call()?;
                if index % stride == stride - 1 {
                    signal::check_stopped()?;
                }
            }
            api.synchronize(device, Stream::DEFAULT)?;
            let elapsed = start.elapsed();
            zeros = if elapsed.is_zero() { zeros + 1 } else { 0 };
            // A call that takes no time at all never lasts long enough.
            let is_free = zeros > options.limit_zero_time_iterations || number >= most;
            if elapsed >= options.min_repeat || is_free {
                break elapsed;
            }
            number = grown(number, elapsed, options.min_repeat).min(most);
        };
        out.push(elapsed.as_secs_f64() / f64::from(number));
        if !options.cooldown.is_zero() && (index + 1) % options.repeats_to_cooldown.max(1) == 0 {
            std::thread::sleep(options.cooldown);
        }
    }
    Ok(out)
}

/// The number of calls that should last long enough, by the last measurement; at least half as many again.
fn grown(number: u32, elapsed: Duration, wanted: Duration) -> u32 {
    let needed = wanted.as_secs_f64() / elapsed.as_secs_f64().max(1e-9) * f64::from(number);
    // A float that is too large becomes the largest integer.
    (needed as u32).saturating_add(1).max(number.saturating_add(number / 2 + 1))
}

fn argument<T: FromAny>(args: &[AnyView<'_>], index: usize, name: &str) -> Result<T, Error> {
    let missing = || Error::new(ErrorKind::TypeError, format!("time evaluator: argument {index} ({name}) is missing"));
    let value: Result<T, Error> = args.get(index).ok_or_else(missing)?.to();
    value.map_err(|error| error.context(format_args!("time evaluator: argument {index} ({name})")))
}

fn milliseconds(args: &[AnyView<'_>], index: usize, name: &str) -> Result<Duration, Error> {
    argument::<u64>(args, index, name).map(Duration::from_millis)
}

/// The global function `runtime.RPCTimeEvaluator`: it takes a module or nothing, the name of a function in it (or of a
/// global one), and the options, and returns a function that measures.
///
/// `(module, name, device type, device id, number, repeat, min_repeat_ms, limit_zero_time_iterations,
/// cooldown_interval_ms, repeats_to_cooldown, cache_flush_bytes, f_preproc)`.
pub(crate) fn evaluator(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let module: Option<Module> = argument(args, 0, "module")?;
    let name: String = argument(args, 1, "function name")?;
    let device = Device { device_type: argument(args, 2, "device type")?, device_id: argument(args, 3, "device id")? };
    let options = TimingOptions {
        number: argument(args, 4, "number")?,
        repeat: argument(args, 5, "repeat")?,
        min_repeat: milliseconds(args, 6, "min_repeat_ms")?,
        limit_zero_time_iterations: argument(args, 7, "limit_zero_time_iterations")?,
        cooldown: milliseconds(args, 8, "cooldown_interval_ms")?,
        repeats_to_cooldown: argument(args, 9, "repeats_to_cooldown")?,
    };
    let flushed: usize = argument(args, 10, "cache_flush_bytes")?;
    let preparing: String = argument(args, 11, "f_preproc")?;

    let unknown = |name: &str| Error::new(ErrorKind::ValueError, format!("there is no function {name} to measure"));
    let found = module.as_ref().map_or_else(|| get_global(&name), |module| module.get_function(&name, true));
    let function = found.ok_or_else(|| unknown(&name))?;
    let preparation = match preparing.as_str() {
        "" => None,
        name => Some(get_global(name).ok_or_else(|| unknown(name))?),
    };
    Ok(Function::new(move |args| {
        let mut cold = vec![0_u8; flushed];
        let prepare = || {
            cold.iter_mut().for_each(|byte| *byte = std::hint::black_box(byte.wrapping_add(1)));
            preparation.as_ref().map_or(Ok(()), |function| function.call(args).map(|_| ()))
        };
        let seconds = measure(device, &options, prepare, || function.call(args).map(|_| ()))?;
        let bytes: Vec<u8> = seconds.iter().flat_map(|value| value.to_ne_bytes()).collect();
        Ok(Bytes::new(&bytes).into())
    })
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_lasts_as_long_as_asked() {
        let mut calls = 0_u64;
        let options =
            TimingOptions { number: 1, repeat: 3, min_repeat: Duration::from_millis(2), ..Default::default() };
        let begin = Instant::now();
        let seconds = measure(
            Device::cpu(0),
            &options,
            || Ok(()),
            || {
                // Without the box, a compiler may make one addition of all calls.
                calls = std::hint::black_box(calls + 1);
                Ok(())
            },
        );
        let seconds = seconds.unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(6) && calls > 3, "{calls}");
        assert!(seconds.len() == 3 && seconds.iter().all(|time| (0.0..2e-3).contains(time)), "{seconds:?}");
    }

    #[test]
    fn a_call_that_takes_no_time_is_measured_too() {
        let mut calls = 0;
        let call = || {
            calls += 1;
            Ok(())
        };
        let options = TimingOptions { min_repeat: Duration::from_secs(1 << 40), ..Default::default() };
        // Without optimization a call takes time, and four billion take a minute.
        let seconds = measure_with(10_000, Device::cpu(0), &options, || Ok(()), call).unwrap();
        assert!(seconds.len() == 1 && seconds.iter().all(|time| *time < 1e-3), "{seconds:?}");
        // One that goes first, a measurement of as many as asked, and one of as many as allowed.
        assert_eq!(calls, 1 + 10 + 10_000);
    }

    #[test]
    fn the_number_of_calls_grows_to_the_largest_and_stays_there() {
        let century = Duration::from_secs(1 << 32);
        assert_eq!(grown(10, Duration::ZERO, century), u32::MAX);
        assert_eq!(grown(u32::MAX, Duration::from_secs(1), century), u32::MAX);
        assert_eq!(grown(10, Duration::from_millis(1), Duration::from_millis(2)), 21);
        assert_eq!(grown(10, Duration::from_millis(1), Duration::from_millis(1)), 16);
    }

    #[cfg(feature = "front-ends")]
    #[test]
    fn the_evaluator_returns_a_double_for_each_measurement() {
        crate::register();
        let _ = relaxide_ffi::register_global("test.timing.identity", Function::typed(|x: i64| Ok::<_, Error>(x)));
        let make = get_global("runtime.RPCTimeEvaluator").unwrap();
        let (name, none) = (Any::from("test.timing.identity"), Any::from(""));
        let mut args = vec![AnyView::none(), name.as_view()];
        args.extend([1_i64, 0, 5, 4, 0, 100, 0, 1, 0].map(AnyView::from));
        args.push(none.as_view());
        let evaluator: Function = make.call(&args).unwrap().to().unwrap();
        let bytes: Bytes = evaluator.call(&[3_i64.into()]).unwrap().to().unwrap();
        assert_eq!(bytes.as_slice().len(), 4 * 8);
        assert!(evaluator.call(&[]).is_err(), "the function's own error comes through");
        args[1] = none.as_view();
        assert!(make.call(&args).is_err());
    }
}
