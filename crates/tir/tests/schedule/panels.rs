//! Convolutions whose filters lie in panels: vectors along the filters.

use super::*;

fn cases(plain: Conv) -> Vec<Case> {
    vec![
        plain.case("conv"),
        Conv { n: 2, stride: (2, 2), ..plain }.case("conv"),
        Conv { stride: (2, 1), kernel: (1, 3), pad: (0, 1), image: (3, 17), ..plain }.case("conv"),
        Conv { stride: (1, 3), kernel: (5, 2), pad: (2, 0), ..plain }.case("conv"),
        Conv { dilation: 2, pad: (2, 2), stride: (3, 2), image: (9, 8), ..plain }.case("conv"),
        // More taps than are unrolled.
        Conv { kernel: (5, 7), pad: (2, 3), stride: (2, 2), ..plain }.case("conv"),
        // Windows of one pixel, next to each other and apart.
        Conv { kernel: (1, 1), pad: (0, 0), ..plain }.case("conv"),
        Conv { kernel: (1, 1), pad: (0, 0), stride: (2, 2), n: 2, ..plain }.case("conv"),
        // What is read lies in a border.
        Conv { kernel: (1, 1), ..plain }.case("conv"),
        Conv { image: (1, 2), ..plain }.case("conv"),
        Conv { image: (4, 2), pad: (0, 0), kernel: (2, 2), ..plain }.case("conv"),
    ]
}

#[test]
fn filters_in_panels() {
    check(cases(Conv { channels: (3, 64), panel: Some(32), ..PLAIN }));
}

#[test]
fn filters_in_panels_over_images_of_named_lengths() {
    check(cases(Conv { channels: (2, 32), panel: Some(16), symbolic: true, ..PLAIN }));
}

#[test]
fn windows_that_lie_in_the_padding_of_an_image_for_the_most_part() {
    let plain = Conv { channels: (5, 32), panel: Some(16), kernel: (4, 4), pad: (3, 3), ..PLAIN };
    let mut all = Vec::new();
    for symbolic in [false, true] {
        let plain = Conv { symbolic, ..plain };
        all.extend([
            Conv { image: (1, 1), ..plain }.case("conv"),
            Conv { image: (2, 5), n: 2, ..plain }.case("conv"),
            Conv { image: (9, 4), ..plain }.case("conv"),
            Conv { image: (1, 3), kernel: (3, 3), pad: (2, 2), ..plain }.case("conv"),
            Conv { image: (3, 7), kernel: (5, 3), pad: (4, 1), stride: (2, 1), ..plain }.case("conv"),
            Conv { image: (2, 6), kernel: (3, 3), pad: (5, 2), dilation: 2, ..plain }.case("conv"),
        ]);
    }
    check(all);
}

#[test]
fn the_last_panel_may_have_fewer_filters() {
    let plain = Conv { channels: (3, 41), panel: Some(32), ..PLAIN };
    let named = Conv { channels: (2, 17), panel: Some(16), symbolic: true, ..PLAIN };
    check(vec![
        plain.case("conv"),
        Conv { channels: (5, 100), panel: Some(64), stride: (2, 2), ..plain }.case("conv"),
        named.case("conv"),
        Conv { kernel: (1, 1), pad: (0, 0), ..named }.case("conv"),
    ]);
}

#[test]
fn sums_of_many_terms_are_computed_block_by_block() {
    let plain = Conv { channels: (41, 64), panel: Some(64), image: (3, 7), ..PLAIN };
    check(vec![
        plain.case("conv"),
        Conv { channels: (30, 48), panel: Some(48), stride: (2, 2), symbolic: true, ..plain }.case("conv"),
        // So many weights that threads share a workspace, or read an image where it lies.
        Conv { channels: (120, 256), image: (5, 3), ..plain }.case("conv"),
        Conv { channels: (700, 128), image: (3, 3), kernel: (1, 1), pad: (0, 0), panel: Some(32), ..plain }
            .case("conv"),
        // A long row in pieces.
        Conv { channels: (8, 16), image: (20, 40), kernel: (1, 1), pad: (0, 0), panel: Some(16), ..plain }.case("conv"),
    ]);
}

#[test]
fn panels_that_are_too_few_tasks_divide_pixels() {
    let plain = Conv { channels: (6, 48), panel: Some(16), ..PLAIN };
    let pixel = Conv { kernel: (1, 1), pad: (0, 0), ..plain };
    check(vec![
        // Rows that chunks do not divide.
        Conv { image: (9, 5), ..plain }.case("conv"),
        Conv { image: (11, 6), stride: (2, 1), ..plain }.case("conv"),
        // Tiles of one row, of two lengths.
        Conv { image: (13, 13), ..pixel }.case("conv"),
        Conv { image: (7, 11), channels: (9, 48), panel: Some(48), n: 2, ..pixel }.case("conv"),
        Conv { image: (5, 8), channels: (9, 41), panel: Some(32), ..pixel }.case("conv"),
        // Images are tasks.
        Conv { image: (7, 5), n: 5, ..plain }.case("conv"),
        Conv { image: (5, 7), n: 4, ..pixel }.case("conv"),
    ]);
}

#[test]
fn pixels_lie_tile_by_tile_for_many_panels() {
    let plain = Conv { channels: (9, 96), kernel: (1, 1), pad: (0, 0), panel: Some(16), ..PLAIN };
    check(vec![
        plain.case("conv"),
        Conv { image: (13, 13), n: 2, ..plain }.case("conv"),
        Conv { image: (9, 15), stride: (2, 2), ..plain }.case("conv"),
        Conv { image: (6, 31), channels: (11, 75), n: 5, ..plain }.case("conv"),
        // Pixels beside a border, and chunks of an image that is larger than a cache.
        Conv { pad: (1, 1), stride: (2, 1), ..plain }.case("conv"),
        Conv { image: (7, 7), channels: (1500, 32), panel: Some(8), ..plain }.case("conv"),
        Conv { symbolic: true, ..plain }.case("conv"),
    ]);
}

#[test]
fn panels_that_vectors_do_not_fill_are_read_as_rows() {
    check(vec![
        Conv { channels: (3, 18), panel: Some(6), ..PLAIN }.case("conv"),
        Conv { channels: (2, 20), panel: Some(10), stride: (2, 2), symbolic: true, ..PLAIN }.case("conv"),
    ]);
}
