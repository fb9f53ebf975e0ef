//! Floats as text with a fixed number of significant digits, as C prints them by `%g`.

/// The text of a finite float with at most `digits` significant digits, without zeros at the end.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..digits as i32).contains(&exponent) {
        return trim(&format!("{value:.*}", (digits as i32 - 1 - exponent).max(0) as usize)).to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

fn trim(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn text_is_that_of_c() {
        let cases = [
            (1.5, 6, "1.5"),
            (100000.0, 6, "100000"),
            (1e20, 6, "1e+20"),
            (0.00001, 6, "1e-05"),
            (0.1, 17, "0.10000000000000001"),
            (1e300, 17, "1.0000000000000001e+300"),
            (123456789012345680.0, 17, "1.2345678901234568e+17"),
        ];
        for (value, digits, text) in cases {
            assert_eq!(significant(value, digits), text);
        }
    }
}
