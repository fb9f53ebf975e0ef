//! Images as inputs: what a file shows, as numbers in the layout that networks for images take, NCHW.
//!
//! Channels are red, green and blue, or grey alone where the input has one channel; values are 0 to 1 (0 to 255 for inputs of
//! bytes), less the mean, by the deviation. An image of another size than the input wants is scaled to it.

use std::path::Path;

mod decode;
mod scale;

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

/// What each colour adds to how bright it looks: the second row of the matrix from sRGB to CIE XYZ, for a white at (0.31272, 0.32903).
const LUMINANCE: [f32; 3] = [0.212_647_81, 0.715_179_15, 0.072_173_04];

/// A picture as its file has it, row by row.
struct Picture {
    width: usize,
    height: usize,
    /// One of grey or three of colours; one more says what shines through, which is not looked at.
    channels: usize,
    values: Vec<u16>,
    /// The number of white.
    largest: u16,
}

impl Picture {
    /// The bytes of all pixels in one channel, grey, or in three.
    fn bytes(&self, channels: usize) -> Vec<u8> {
        let byte = |value: u16| match self.largest {
            u16::MAX => ((u32::from(value) + 128) / 257) as u8,
            _ => value as u8,
        };
        let unit = 1.0 / f32::from(self.largest);
        let grey = |colours: &[u16]| {
            let sum = colours.iter().zip(LUMINANCE).fold(0.0, |sum, (value, by)| sum + f32::from(*value) * unit * by);
            (sum * 255.0).round() as u8
        };
        let pixels = self.values.chunks_exact(self.channels);
        match (self.channels > 2, channels) {
            (true, 1) => pixels.map(|pixel| grey(&pixel[..3])).collect(),
            (true, _) => pixels.flat_map(|pixel| [pixel[0], pixel[1], pixel[2]].map(byte)).collect(),
            (false, _) => pixels.flat_map(|pixel| std::iter::repeat_n(byte(pixel[0]), channels)).collect(),
        }
    }
}

/// Reads an image as a tensor of shape (1, channels, height, width).
pub fn read(path: &Path, dtype: DataType, frame: Frame, normalisation: &Normalisation) -> Result<Tensor, CliError> {
    let file = std::fs::read(path).map_err(CliError::file(path))?;
    let unreadable = |error: decode::DecodeError| CliError::file(path)(std::io::Error::other(error.to_string()));
    let mut picture = decode::decode(&file).map_err(unreadable)?;
    let size = |given: Option<u32>, own: usize| given.map_or(own, |size| size as usize);
    let (height, width) = (size(frame.height, picture.height), size(frame.width, picture.width));
    if (picture.height, picture.width) != (height, width) {
        picture = scale::scaled(&picture, width, height);
    }
    let bytes = picture.bytes(frame.channels);
    let channels = normalisation.of_channels(frame.channels)?;
    let area = height * width;
    let value = |at: usize| {
        let (channel, pixel) = (at / area, at % area);
        let (mean, std) = channels.get(channel).copied().unwrap_or((0.0, 1.0));
        let byte = f32::from(bytes.get(pixel * frame.channels + channel).copied().unwrap_or(0));
        f64::from(if dtype.is_float() { (byte / 255.0 - mean) / std } else { byte })
    };
    let shape = [1, frame.channels as i64, height as i64, width as i64];
    element::from_numbers(dtype, &shape, (0..frame.channels * area).map(value))
}
