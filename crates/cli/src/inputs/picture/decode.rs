//! Pictures of PNG and JPEG files, as the files have them: what they say of colours beside the numbers is not looked at.

use std::io::Cursor;

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;

use super::Picture;

/// What a picture, and each table that its file has beside it, may take.
const MOST_BYTES: usize = 512 << 20;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";

/// Why a file is no picture. The file's fault, or a limit.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The file begins otherwise.
    #[error("neither a PNG nor a JPEG file")]
    Unknown,
    /// The picture is too large.
    #[error("a picture of {width} by {height}, which takes more than {} MiB", MOST_BYTES >> 20)]
    Large {
        /// Its columns.
        width: usize,
        /// Its rows.
        height: usize,
    },
    /// A PNG file that cannot be read.
    #[error("{0}")]
    Png(#[from] png::DecodingError),
    /// A JPEG file that cannot be read.
    #[error("{0}")]
    Jpeg(#[from] zune_jpeg::errors::DecodeErrors),
}

/// The picture of a file's bytes, whatever the file is called.
pub(super) fn decode(bytes: &[u8]) -> Result<Picture, DecodeError> {
    match bytes {
        _ if bytes.starts_with(PNG) => decode_png(bytes),
        _ if bytes.starts_with(JPEG) => decode_jpeg(bytes),
        _ => Err(DecodeError::Unknown),
    }
}

/// Palettes become colours, and numbers of less than a byte whole ones.
fn decode_png(bytes: &[u8]) -> Result<Picture, DecodeError> {
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: MOST_BYTES });
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info()?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let size = reader.output_buffer_size().filter(|size| *size <= MOST_BYTES);
    let mut data = vec![0; size.ok_or(DecodeError::Large { width, height })?];
    let frame = reader.next_frame(&mut data)?;
    let (values, largest) = match frame.bit_depth {
        png::BitDepth::Sixteen => {
            (data.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect(), u16::MAX)
        }
        _ => (data.into_iter().map(u16::from).collect(), u16::from(u8::MAX)),
    };
    Ok(Picture { width, height, channels: frame.color_type.samples(), values, largest })
}

fn decode_jpeg(bytes: &[u8]) -> Result<Picture, DecodeError> {
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers()?;
    let colours = match decoder.input_colorspace() {
        Some(grey @ (ColorSpace::Luma | ColorSpace::LumaA)) => grey,
        _ => ColorSpace::RGB,
    };
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    let (width, height) = decoder.dimensions().unwrap_or_default();
    let channels = colours.num_components();
    if width.saturating_mul(height).saturating_mul(channels) > MOST_BYTES {
        return Err(DecodeError::Large { width, height });
    }
    let values = decoder.decode()?.into_iter().map(u16::from).collect();
    Ok(Picture { width, height, channels, values, largest: u16::from(u8::MAX) })
}
