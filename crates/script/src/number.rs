//! Numbers as TVMScript writes them.

/// A floating-point number: 17 significant digits, and whole numbers in full with `.0`, so that reading gives the same bits.
///
/// Infinities and NaN have no literal; [`is_literal`] tells, and callers write them as text.
pub(crate) fn float_text(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value:.1}");
    }
    let scientific = format!("{value:.16e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..17).contains(&exponent) {
        let decimals = usize::try_from(16 - exponent).unwrap_or(0);
        return trim_zeros(&format!("{value:.decimals$}")).to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs())
}

/// Whether a number has a literal.
pub(crate) fn is_literal(value: f64) -> bool {
    value.is_finite()
}

/// `inf`, `-inf` or `nan`.
pub(crate) fn special_text(value: f64) -> &'static str {
    match value {
        v if v.is_nan() => "nan",
        v if v > 0.0 => "inf",
        _ => "-inf",
    }
}

fn trim_zeros(text: &str) -> &str {
    if !text.contains('.') {
        return text;
    }
    let text = text.trim_end_matches('0');
    text.strip_suffix('.').unwrap_or(text)
}

/// Text as a Python literal in double quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_as_the_reference_writes_them() {
        let cases = [
            (2.0, "2.0"),
            (-0.75, "-0.75"),
            (1e-5, "1.0000000000000001e-05"),
            (0.1, "0.10000000000000001"),
            (1e20, "100000000000000000000.0"),
            (f64::from(f32::MIN), "-340282346638528859811704183484516925440.0"),
            (1.17549435e-38, "1.17549435e-38"),
            (-0.0, "-0.0"),
        ];
        for (value, text) in cases {
            assert_eq!(float_text(value), text);
            assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()));
        }
    }
}
