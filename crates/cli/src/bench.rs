//! `relaxide bench`.

use std::time::Instant;

use crate::args::BenchArgs;
use crate::error::CliError;
use crate::inputs::Call;

/// Times a function and prints the distribution.
pub fn run(args: &BenchArgs) -> Result<(), CliError> {
    if args.runs == 0 {
        return Err(CliError::usage("--runs 0 times nothing", "give --runs 1 or more"));
    }
    let call = Call::prepare(&args.file, &args.inputs)?;
    for _ in 0..args.warmup {
        call.invoke()?;
    }
    let mut times = Vec::with_capacity(args.runs);
    for _ in 0..args.runs {
        let start = Instant::now();
        call.invoke()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let at = |q: f64| times[((times.len() - 1) as f64 * q).round() as usize];
    if args.json {
        let figures = serde_json::json!({
            "runs": args.runs, "threads": relaxide::num_threads(), "min_ms": at(0.0), "median_ms": at(0.5),
            "p90_ms": at(0.9), "p99_ms": at(0.99), "max_ms": at(1.0),
        });
        println!("{figures}");
    } else {
        println!(
            "{}: median {:.3} ms  (min {:.3}, p90 {:.3}, p99 {:.3}, max {:.3}; {} runs, {} threads)",
            args.inputs.function,
            at(0.5),
            at(0.0),
            at(0.9),
            at(0.99),
            at(1.0),
            args.runs,
            relaxide::num_threads()
        );
    }
    Ok(())
}
