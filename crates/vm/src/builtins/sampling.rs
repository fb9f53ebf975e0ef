//! Choosing the next element from scores, on the host: penalties, temperature, and draws with a number that the caller has
//! drawn.
//!
//! Scores are tensors of `float32`; what changes them changes them in place. Probabilities of one draw lie in the last
//! dimension.

use relaxide_ffi::{Any, DataType, Device, Error, ErrorKind, Tensor};
use relaxide_runtime::device;

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.sample_top_p_from_logits", sample_top_p_from_logits),
    Builtin::plain("vm.builtin.sample_top_p_from_prob", sample_top_p_from_prob),
    Builtin::plain("vm.builtin.multinomial_from_uniform", multinomial_from_uniform),
    Builtin::plain("vm.builtin.apply_repetition_penalty", apply_repetition_penalty),
    Builtin::plain("vm.builtin.apply_presence_and_frequency_penalty", apply_presence_and_frequency_penalty),
    Builtin::plain("vm.builtin.apply_softmax_with_temperature", apply_softmax_with_temperature),
];

/// Below this temperature the largest score is chosen.
const COLDEST: f64 = 1e-6;

/// A tensor of scores.
fn scores(args: &Args<'_, '_>, index: usize, name: &str) -> Result<Tensor, Error> {
    let tensor: Tensor = args.get(index, name)?;
    if tensor.dtype() != DataType::float(32) {
        return Err(
            args.error(ErrorKind::TypeError, format_args!("argument {index} ({name}) is {tensor:?}, not float32"))
        );
    }
    Ok(tensor)
}

/// The scores of one draw: all dimensions but the last are 1.
fn one_row(args: &Args<'_, '_>, index: usize, name: &str) -> Result<Vec<f32>, Error> {
    let tensor = scores(args, index, name)?;
    let is_row =
        tensor.shape().split_last().is_some_and(|(last, leading)| *last > 0 && leading.iter().all(|dim| *dim == 1));
    if !is_row {
        let message = format_args!("argument {index} ({name}) is {tensor:?}: its leading dimensions must be 1");
        return Err(args.error(ErrorKind::ValueError, message));
    }
    device::on_host(&tensor)?.to_vec()
}

/// Values with their positions, the largest first; equal ones in the order of their positions.
fn sorted(values: impl IntoIterator<Item = f32>) -> Vec<(f32, usize)> {
    let mut sorted: Vec<(f32, usize)> = values.into_iter().zip(0..).collect();
    sorted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    sorted
}

/// Draws from probabilities, largest first, of which only those count that are needed to reach `top_p`.
fn draw(sorted: &[(f32, usize)], top_p: f64, uniform: f64) -> i64 {
    let (mut sum, mut kept) = (0.0_f32, 0.0_f32);
    let mut cumulative = Vec::with_capacity(sorted.len());
    for (probability, _) in sorted {
        if f64::from(sum) < top_p {
            kept += probability;
        }
        sum += probability;
        cumulative.push(sum);
    }
    let drawn = cumulative.iter().position(|sum| uniform < f64::from(sum / kept)).unwrap_or(0);
    sorted.get(drawn).map_or(0, |(_, position)| *position as i64)
}

/// `(logits, temperature, top_p, uniform)`.
fn sample_top_p_from_logits(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(4, 4)?;
    let logits = one_row(args, 0, "logits")?;
    let (temperature, top_p, uniform): (f64, f64, f64) =
        (args.get(1, "temperature")?, args.get(2, "top_p")?, args.get(3, "uniform_sample")?);
    let mut sorted = sorted(logits);
    let largest = sorted.first().copied().unwrap_or_default();
    if temperature < COLDEST {
        return Ok((largest.1 as i64).into());
    }
    let scale = 1.0 / temperature as f32;
    sorted.iter_mut().for_each(|(value, _)| *value = ((*value - largest.0) * scale).exp());
    let sum: f32 = sorted.iter().map(|(value, _)| value).sum();
    sorted.iter_mut().for_each(|(value, _)| *value /= sum);
    Ok(draw(&sorted, top_p, uniform).into())
}

/// `(probabilities, top_p, uniform)`.
fn sample_top_p_from_prob(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    let sorted = sorted(one_row(args, 0, "prob")?);
    Ok(draw(&sorted, args.get(1, "top_p")?, args.get(2, "uniform_sample")?).into())
}

/// `(probabilities, uniform)`: a row of probabilities and a number for each draw; the positions, as a column of `int64`.
fn multinomial_from_uniform(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let (prob, uniform) = (scores(args, 0, "prob")?, scores(args, 1, "uniform_sample")?);
    let &[rows, columns] = prob.shape() else {
        return Err(
            args.error(ErrorKind::ValueError, format_args!("argument 0 (prob) is {prob:?}: it has rows and columns"))
        );
    };
    let host = Device::cpu(0);
    let numbers: Vec<f32> = device::to_device(&uniform, host)?.to_vec()?;
    if numbers.len() as i64 != rows || columns == 0 {
        let message = format_args!("{uniform:?} is not one number for each row of {prob:?}");
        return Err(args.error(ErrorKind::ValueError, message));
    }
    let values: Vec<f32> = device::to_device(&prob, host)?.to_vec()?;
    let chosen = values.chunks(columns as usize).zip(numbers).map(|(row, number)| {
        let mut sum = 0.0;
        let sums = row.iter().map(|probability| {
            sum += probability;
            sum
        });
        // Rounding may leave the sum below the number; then it is the last.
        sums.take(row.len().saturating_sub(1)).take_while(|sum| number >= *sum).count() as i64
    });
    let chosen: Vec<i64> = chosen.collect();
    let column = Tensor::from_slice(&chosen, &[rows, 1])?;
    device::to_device(&column, prob.device()).map(Any::from)
}

/// The tokens that an argument names.
fn tokens(args: &Args<'_, '_>, index: usize, name: &str) -> Result<Vec<i32>, Error> {
    let tensor: Tensor = args.get(index, name)?;
    if tensor.dtype() != DataType::int(32) {
        return Err(
            args.error(ErrorKind::TypeError, format_args!("argument {index} ({name}) is {tensor:?}, not int32"))
        );
    }
    device::on_host(&tensor)?.to_vec()
}

/// Changes scores on the host, and puts them back where they were.
fn change(tensor: &Tensor, with: impl FnOnce(&mut [f32]) -> Result<(), Error>) -> Result<Any, Error> {
    let mut values: Vec<f32> = device::on_host(tensor)?.to_vec()?;
    with(&mut values)?;
    device::copy_into(&Tensor::from_slice(&values, tensor.shape())?, tensor)?;
    Ok(Any::none())
}

/// The score of a token.
fn score<'a>(args: &Args<'_, '_>, values: &'a mut [f32], token: i32) -> Result<&'a mut f32, Error> {
    let size = values.len();
    let place = usize::try_from(token).ok().and_then(|token| values.get_mut(token));
    place.ok_or_else(|| args.error(ErrorKind::IndexError, format_args!("token {token} is not among the {size} scores")))
}

/// `(logits, token_ids, penalty)`: makes tokens that were there less likely, each time that they are named.
fn apply_repetition_penalty(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    let (logits, tokens) = (scores(args, 0, "logits")?, tokens(args, 1, "token_ids")?);
    let penalty: f32 = args.get(2, "penalty")?;
    change(&logits, |values| {
        for token in tokens {
            let score = score(args, values, token)?;
            *score = if *score <= 0.0 { *score * penalty } else { *score / penalty };
        }
        Ok(())
    })
}

/// `(logits, token_ids, token_freqs, presence_penalty, frequency_penalty)`.
fn apply_presence_and_frequency_penalty(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(5, 5)?;
    let logits = scores(args, 0, "logits")?;
    let (ids, counts) = (tokens(args, 1, "token_ids")?, tokens(args, 2, "token_freqs")?);
    let (presence, frequency): (f32, f32) = (args.get(3, "presence_penalty")?, args.get(4, "frequency_penalty")?);
    if ids.len() != counts.len() {
        let message = format_args!("{} tokens have {} counts", ids.len(), counts.len());
        return Err(args.error(ErrorKind::ValueError, message));
    }
    change(&logits, |values| {
        for (token, count) in ids.into_iter().zip(counts) {
            *score(args, values, token)? -= count as f32 * frequency + presence;
        }
        Ok(())
    })
}

/// `(logits, temperature)`: probabilities of the last dimension, in the place of its scores.
fn apply_softmax_with_temperature(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let logits = scores(args, 0, "logits")?;
    let scale = 1.0 / args.get::<f32>(1, "temperature")?;
    let columns = logits.shape().last().copied().filter(|columns| *columns > 0).map_or(1, |columns| columns as usize);
    change(&logits, |values| {
        for row in values.chunks_mut(columns) {
            row.iter_mut().for_each(|value| *value *= scale);
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            row.iter_mut().for_each(|value| *value = (*value - largest).exp());
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|value| *value /= sum);
        }
        Ok(())
    })
}
