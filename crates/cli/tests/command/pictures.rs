//! Pictures as inputs.

use png::{BitDepth, ColorType};
use serde_json::{Value, json};

use crate::workplace::Workplace;

/// The bytes of a picture without a subject.
fn bytes(count: usize, step: usize, first: usize) -> Vec<u8> {
    (0..count).map(|at| (at * step + first) as u8).collect()
}

/// A place with a model that gives back the bytes of a picture of some channels and sides.
fn show(place: &Workplace, [channels, height, width]: [usize; 3], dtype: &str) {
    place.write(
        "show.relax",
        &format!(
            "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((1, {channels}, {height}, {width}), \"{dtype}\")):\n        \
             with R.dataflow():\n            gv = R.add(x, x)\n            R.output(gv)\n        return gv\n"
        ),
    );
}

fn head(place: &Workplace, options: &str) -> Value {
    place.json(&format!("run show.relax --input {options}"))["outputs"][0]["head"].clone()
}

#[test]
fn pictures_are_scaled_and_normalised() {
    let place = Workplace::with_models();
    place.write_png("picture.png", (16, 12), (ColorType::Rgb, BitDepth::Eight), &[255, 0, 51].repeat(16 * 12));
    show(&place, [3, 2, 2], "float32");
    assert_eq!(head(&place, "picture.png"), json!([2.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0]));
    assert_eq!(head(&place, "picture.png --mean 0.5 --std 0.5"), json!([2.0, 2.0, 2.0, 2.0, -2.0, -2.0, -2.0, -2.0]));
    let wrong = place.run("run show.relax --input picture.png --mean 1,2");
    assert!(wrong.code == 2 && wrong.err.contains("--mean has 2 numbers"), "{}", wrong.err);
    assert_eq!(place.run("run model.relax --input x=picture.png").code, 2);
}

/// The numbers are those of the `image` package, by its filter `Triangle`.
#[test]
fn pictures_of_every_kind_are_read() {
    let place = Workplace::new();
    for (name, file) in [
        ("colours.jpg", &include_bytes!("pictures/colours.jpg")[..]),
        ("grey.jpg", include_bytes!("pictures/grey.jpg")),
        ("cmyk.jpg", include_bytes!("pictures/cmyk.jpg")),
    ] {
        std::fs::write(place.path(name), file).unwrap();
    }
    place.write_png("rgb8.png", (7, 5), (ColorType::Rgb, BitDepth::Eight), &bytes(7 * 5 * 3, 37, 11));
    place.write_png("rgba16.png", (4, 3), (ColorType::Rgba, BitDepth::Sixteen), &bytes(4 * 3 * 8, 37, 11));
    place.write_png("grey16.png", (4, 3), (ColorType::GrayscaleAlpha, BitDepth::Sixteen), &bytes(4 * 3 * 4, 37, 11));
    // Four colours, some of which shine through.
    let pixels = [0b0001_1011, 0b1110_0000, 0b1001_0011, 0b0111_0000];
    place.write_png("palette.png", (6, 2), (ColorType::Indexed, BitDepth::Two), &pixels);
    place.write_png("grey4.png", (5, 2), (ColorType::Grayscale, BitDepth::Four), &bytes(6, 37, 11));
    let cases = [
        ("rgb8.png", [103, 134, 158, 113, 114, 145], [121, 144, 110, 145, 136, 107]),
        ("rgba16.png", [119, 119, 145, 156, 147, 101], [127, 142, 138, 122, 123, 123]),
        ("grey16.png", [85, 135, 118, 137, 155, 106], [129, 121, 129, 121, 129, 121]),
        ("palette.png", [122, 103, 91, 140, 95, 124], [110, 173, 131, 82, 88, 87]),
        ("grey4.png", [80, 70, 49, 141, 179, 226], [121, 129, 121, 129, 121, 129]),
        ("colours.jpg", [127, 157, 90, 99, 160, 114], [133, 123, 132, 123, 123, 132]),
        ("grey.jpg", [86, 165, 118, 135, 162, 77], [132, 123, 132, 123, 132, 123]),
        ("cmyk.jpg", [94, 112, 100, 110, 108, 90], [106, 120, 105, 94, 103, 111]),
    ];
    // Twice each, as a byte.
    let twice = |numbers: [i32; 6]| json!(numbers.map(|number| f64::from(number * 2 % 256)));
    for (shape, of) in [([1, 2, 3], 0), ([3, 1, 2], 1)] {
        show(&place, shape, "uint8");
        for (name, grey, colours) in cases {
            assert_eq!(head(&place, name), twice([grey, colours][of]), "{name} as {shape:?}");
        }
    }
}

#[test]
fn files_that_are_no_pictures_are_errors() {
    let place = Workplace::new();
    show(&place, [3, 2, 2], "uint8");
    place.write_png("whole.png", (7, 5), (ColorType::Rgb, BitDepth::Eight), &bytes(7 * 5 * 3, 37, 11));
    let (whole, photo) = (std::fs::read(place.path("whole.png")).unwrap(), include_bytes!("pictures/colours.jpg"));
    for (name, file, said) in [
        ("cut.png", &whole[..60], "cut.png: "),
        ("cut.jpg", &photo[..200], "cut.jpg: "),
        ("other.png", b"GIF89a", "other.png: neither a PNG nor a JPEG file"),
        ("empty.png", b"", "empty.png: neither a PNG nor a JPEG file"),
    ] {
        std::fs::write(place.path(name), file).unwrap();
        let ended = place.run(&format!("run show.relax --input {name}"));
        assert!(ended.code != 0 && ended.err.contains(said), "{}", ended.err);
    }
    // The name says nothing.
    std::fs::rename(place.path("whole.png"), place.path("whole.jpg")).unwrap();
    place.ok("run show.relax --input whole.jpg");
    // A picture of terabytes, in a hundred bytes.
    let mut large = whole;
    large[16..24].copy_from_slice(&[0, 15, 0, 0, 0, 15, 0, 0]);
    let check = png_check(&large[12..29]);
    large[29..33].copy_from_slice(&check.to_be_bytes());
    std::fs::write(place.path("large.png"), large).unwrap();
    let ended = place.run("run show.relax --input large.png");
    assert!(
        ended.code != 0 && ended.err.contains("a picture of 983040 by 983040, which takes more than 512 MiB"),
        "{}",
        ended.err
    );
}

/// The checksum at the end of a part of a PNG file.
fn png_check(part: &[u8]) -> u32 {
    !part.iter().fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 })
    })
}
