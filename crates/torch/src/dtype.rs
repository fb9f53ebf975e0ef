//! Element types: PyTorch's numbers for them, and which two become when they meet.

use relaxide_ffi::DataType;

/// The element type of PyTorch's number; `None` where no program here has it.
pub fn of_number(number: i64) -> Option<DataType> {
    Some(match number {
        1 => DataType::uint(8),
        2 => DataType::int(8),
        3 => DataType::int(16),
        4 => DataType::int(32),
        5 => DataType::int(64),
        6 => DataType::float(16),
        7 => DataType::float(32),
        8 => DataType::float(64),
        12 => DataType::bool(),
        13 => DataType::bfloat16(),
        28 => DataType::uint(16),
        29 => DataType::new(10, 8),
        30 => DataType::new(12, 8),
        31 => DataType::new(11, 8),
        32 => DataType::new(13, 8),
        33 => DataType::uint(32),
        34 => DataType::uint(64),
        _ => return None,
    })
}

/// What a number of PyTorch's is called, for messages.
pub fn name_of(number: i64) -> String {
    match number {
        9 => "complex32".into(),
        10 => "complex64".into(),
        11 => "complex128".into(),
        other => of_number(other).map_or_else(|| format!("number {other}"), |dtype| dtype.to_string()),
    }
}

/// Which kind an element type is of; a higher one wins over a lower, whatever the widths.
fn kind(dtype: DataType) -> u8 {
    match dtype {
        d if d.is_bool() => 0,
        d if is_float(d) => 2,
        _ => 1,
    }
}

/// Whether its values have fractions.
pub fn is_float(dtype: DataType) -> bool {
    !dtype.is_bool() && dtype.code != DataType::INT && dtype.code != DataType::UINT
}

/// The type in which values of two types are compared, by PyTorch's rules: the kind decides first, then the width. A value
/// without dimensions, or a number, counts only where its kind is higher.
pub fn promote(a: (DataType, bool), b: (DataType, bool)) -> DataType {
    let ((a, a_weak), (b, b_weak)) = (a, b);
    if kind(a) != kind(b) {
        return if kind(a) > kind(b) { a } else { b };
    }
    match (a_weak, b_weak) {
        (true, false) => b,
        (false, true) => a,
        _ => wider(a, b),
    }
}

fn wider(a: DataType, b: DataType) -> DataType {
    if a == b {
        return a;
    }
    if is_float(a) {
        return match a.bits.cmp(&b.bits) {
            std::cmp::Ordering::Greater => a,
            std::cmp::Ordering::Less => b,
            // float16 and bfloat16 meet in float32.
            std::cmp::Ordering::Equal => DataType::float(32),
        };
    }
    let signed = |d: DataType| d.code == DataType::INT;
    match (signed(a), signed(b)) {
        (true, true) | (false, false) => {
            if a.bits >= b.bits {
                a
            } else {
                b
            }
        }
        (true, false) => DataType::int(a.bits.max((b.bits * 2).min(64))),
        (false, true) => DataType::int(b.bits.max((a.bits * 2).min(64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_win_over_widths() {
        let strong = |d| (d, false);
        assert_eq!(promote(strong(DataType::int(64)), strong(DataType::float(16))), DataType::float(16));
        assert_eq!(promote(strong(DataType::float(16)), strong(DataType::bfloat16())), DataType::float(32));
        assert_eq!(promote(strong(DataType::uint(8)), strong(DataType::int(8))), DataType::int(16));
        assert_eq!(promote(strong(DataType::bool()), strong(DataType::uint(8))), DataType::uint(8));
    }

    #[test]
    fn numbers_take_the_type_of_the_tensor_beside_them() {
        assert_eq!(promote((DataType::float(16), false), (DataType::float(32), true)), DataType::float(16));
        assert_eq!(promote((DataType::int(8), false), (DataType::int(64), true)), DataType::int(8));
        assert_eq!(promote((DataType::int(8), false), (DataType::float(32), true)), DataType::float(32));
    }
}
