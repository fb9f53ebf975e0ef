//! Pictures in other sizes.
//!
//! Each element becomes the mean of those around its place, which weigh less the further away they are (a triangle as wide as two elements of
//! the smaller picture): first along columns, then along rows.

use super::Picture;

/// A picture of another size.
pub(super) fn scaled(picture: &Picture, width: usize, height: usize) -> Picture {
    let Picture { channels, largest, .. } = *picture;
    let row = picture.width * channels;
    let mut rows = vec![0.0f32; row * height];
    for (made, near) in rows.chunks_exact_mut(row.max(1)).zip(weights(picture.height, height)) {
        for (number, weight) in near {
            let from = picture.values.iter().skip(number * row);
            made.iter_mut().zip(from).for_each(|(sum, value)| *sum += f32::from(*value) * weight);
        }
    }
    let near: Vec<_> = weights(picture.width, width).map(Iterator::collect::<Vec<_>>).collect();
    let mut values = Vec::with_capacity(width * height * channels);
    for row in rows.chunks_exact(row.max(1)) {
        for near in &near {
            let sum = |channel: usize| {
                near.iter().fold(0.0, |sum, (number, weight)| sum + row[number * channels + channel] * weight)
            };
            values.extend((0..channels).map(|channel| sum(channel).clamp(0.0, f32::from(largest)).round() as u16));
        }
    }
    Picture { width, height, channels, values, largest }
}

/// Which elements of a row of `from` each of `to` is the mean of, and what they weigh.
fn weights(from: usize, to: usize) -> impl Iterator<Item = impl Iterator<Item = (usize, f32)>> {
    let ratio = from as f32 / to as f32;
    let support = ratio.max(1.0);
    (0..to).map(move |at| {
        let middle = (at as f32 + 0.5) * ratio;
        let first = ((middle - support).floor().max(0.0) as usize).min(from.saturating_sub(1));
        let end = ((middle + support).ceil() as usize).clamp(first + 1, from.max(first + 1));
        let weight = move |number: usize| (1.0 - ((number as f32 - (middle - 0.5)) / support).abs()).max(0.0);
        let all: f32 = (first..end).map(weight).sum();
        (first..end).map(move |number| (number, weight(number) / all))
    })
}
