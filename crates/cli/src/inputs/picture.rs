//! Images as inputs: what a file shows, as numbers in the layout that networks for images take, NCHW.
//!
//! Channels are red, green and blue, or grey alone where the input has one channel; values are 0 to 1 (0 to 255 for inputs of
//! bytes), less the mean, by the deviation. An image of another size than the input wants is scaled to it.

use std::path::Path;

use image::imageops::FilterType;
use relaxide::ffi::{DataType, Tensor};

use super::element;
use crate::error::CliError;

/// What is done to the channels.
#[derive(Clone, Debug, Default)]
pub struct Normalisation {
    /// What is taken away; empty for nothing.
    pub mean: Vec<f32>,
    /// What is divided by; empty for one.
    pub std: Vec<f32>,
}

impl Normalisation {
    /// The numbers for the channels.
    fn of_channels(&self, channels: usize) -> Result<Vec<(f32, f32)>, CliError> {
        let spread = |name: &str, given: &[f32], default: f32| match given {
            [] => Ok(vec![default; channels]),
            [one] => Ok(vec![*one; channels]),
            many if many.len() == channels => Ok(many.to_vec()),
            many => Err(CliError::usage(
                format!("{name} has {} numbers, and the input has {channels} channels", many.len()),
                "give one number, or one for each channel",
            )),
        };
        let (mean, std) = (spread("--mean", &self.mean, 0.0)?, spread("--std", &self.std, 1.0)?);
        if std.contains(&0.0) {
            return Err(CliError::usage("--std is 0", "channels are divided by it"));
        }
        Ok(mean.into_iter().zip(std).collect())
    }
}

/// What an input of an image looks like: `None` stands for a length that the image decides.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Channels: 1 or 3.
    pub channels: usize,
    /// Rows.
    pub height: Option<u32>,
    /// Columns.
    pub width: Option<u32>,
}

/// Reads an image as a tensor of shape (1, channels, height, width).
pub fn read(path: &Path, dtype: DataType, frame: Frame, normalisation: &Normalisation) -> Result<Tensor, CliError> {
    let unreadable = |e: image::ImageError| {
        let source = match e {
            image::ImageError::IoError(source) => source,
            other => std::io::Error::other(other.to_string()),
        };
        CliError::file(path)(source)
    };
    let mut picture = image::ImageReader::open(path)
        .map_err(CliError::file(path))?
        .with_guessed_format()
        .map_err(CliError::file(path))?
        .decode()
        .map_err(unreadable)?;
    let (height, width) = (frame.height.unwrap_or(picture.height()), frame.width.unwrap_or(picture.width()));
    if (picture.height(), picture.width()) != (height, width) {
        picture = picture.resize_exact(width, height, FilterType::Triangle);
    }
    let bytes = if frame.channels == 1 { picture.to_luma8().into_raw() } else { picture.to_rgb8().into_raw() };
    let channels = normalisation.of_channels(frame.channels)?;
    let area = height as usize * width as usize;
    let value = |at: usize| {
        let (channel, pixel) = (at / area, at % area);
        let (mean, std) = channels.get(channel).copied().unwrap_or((0.0, 1.0));
        let byte = f32::from(bytes.get(pixel * frame.channels + channel).copied().unwrap_or(0));
        f64::from(if dtype.is_float() { (byte / 255.0 - mean) / std } else { byte })
    };
    let shape = [1, frame.channels as i64, i64::from(height), i64::from(width)];
    element::from_numbers(dtype, &shape, (0..frame.channels * area).map(value))
}
