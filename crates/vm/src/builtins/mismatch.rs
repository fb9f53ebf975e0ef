//! What is said where a value does not fit its type.
//!
//! A compiler hands each check a text that says where it stands; TVM's and ours look alike, users are told it in words:
//!
//! ```text
//! ErrorContext(fn=main, loc=param[0], param=x, annotation=R.Tensor((n, 4)))    argument `x` of `main` must be R.Tensor((n, 4))
//! ErrorContext(match_cast, value=w, ty=R.Tensor((n, 4)))                       match_cast: `w` must be R.Tensor((n, 4))
//! ErrorContext(check, value=w, ty=R.Tensor((n, 4)))                            `w` must be R.Tensor((n, 4))
//! ErrorContext(fn=main, loc=return, annotation=R.Tensor((n, 4)))               the return value of `main` must be R.Tensor((n, 4))
//! ```
//!
//! Below ours, lines may follow that have more to say of a dimension. Numbers in braces are dimensions of the value.
//!
//! ```text
//! 1: the new shape must have as many elements as the tensor: the shape has {2}, the tensor {3}
//! ```
//!
//! A line whose text begins with [`GUARD_NOTE`] is about what a program was compiled for and not about what its model allows: a program
//! for other lengths has no such check. Its failure is an error of a kind of its own.

use relaxide_ffi::{AnyView, Error};

/// The kind of errors about shapes. In Python it is both what TVM raises, a `RuntimeError`, and a `ValueError`.
const SHAPE_ERROR: &str = "ShapeError";

/// The kind of errors about lengths that the program was not compiled for, though its model allows them. In Python it is a `ShapeError`.
pub const SHAPE_GUARD_ERROR: &str = "ShapeGuardError";

/// What a note of a dimension begins with whose failure is a [`SHAPE_GUARD_ERROR`].
pub const GUARD_NOTE: &str = "guard: ";

/// What a value is and must be, with which a message begins.
pub(super) fn subject(context: AnyView<'_>) -> String {
    let text = context.as_str().unwrap_or_default();
    let place = text.split('\n').next().unwrap_or_default().trim_end();
    let Some(fields) = place.strip_prefix("ErrorContext(").and_then(|fields| fields.strip_suffix(')')) else {
        return if place.is_empty() { "a value".to_owned() } else { place.to_owned() };
    };
    let declared = [", annotation=", ", ty="].iter().find_map(|name| fields.split_once(name));
    let (fields, ty) = declared.map_or((fields, None), |(fields, ty)| (fields, Some(ty)));
    let cast = if fields.starts_with("match_cast") { "match_cast: " } else { "" };
    let field = |name: &str| fields.split_once(name).map(|(_, value)| value);
    let what = match (field(", param="), field("fn="), field(", value=").or_else(|| field(", var="))) {
        (Some(param), Some(function), _) => {
            format!("argument `{param}` of `{}`", function.split(',').next().unwrap_or_default())
        }
        (_, Some(function), _) if fields.contains("loc=return") => {
            format!("the return value of `{}`", function.split(',').next().unwrap_or_default())
        }
        (_, _, Some(value)) if value.contains(' ') => value.to_owned(),
        (_, _, Some(value)) => format!("{cast}`{value}`"),
        _ => return place.to_owned(),
    };
    ty.map_or(what.clone(), |ty| format!("{what} must be {ty}"))
}

/// A dimension is not what it must be.
#[cold]
pub(super) fn dimension(context: AnyView<'_>, dims: &[i64], dim: usize, expected: i64) -> Error {
    let found = dims.get(dim).copied().unwrap_or_default();
    match note(context.as_str().unwrap_or_default(), dims, dim) {
        Some(text) => match text.strip_prefix(GUARD_NOTE) {
            Some(text) => Error::new(SHAPE_GUARD_ERROR, text),
            None => Error::new(SHAPE_ERROR, text),
        },
        None => Error::new(SHAPE_ERROR, format!("{}: dimension {dim} is {found}, not {expected}", subject(context))),
    }
}

/// A number that stands for a dimension is not what it must be.
#[cold]
pub(super) fn number(context: AnyView<'_>, found: i64, expected: i64) -> Error {
    Error::new(SHAPE_ERROR, format!("{}: it is {found}, not {expected}", subject(context)))
}

/// There are more or fewer dimensions than there must be.
#[cold]
pub(super) fn rank(context: AnyView<'_>, found: usize, expected: usize) -> Error {
    Error::new(SHAPE_ERROR, format!("{}: it has {found} dimensions, not {expected}", subject(context)))
}

/// The line of a context that is about a dimension, with the numbers that it mentions.
fn note(context: &str, dims: &[i64], dim: usize) -> Option<String> {
    let own =
        |line: &'_ str| line.split_once(": ").filter(|(at, _)| at.parse() == Ok(dim)).map(|(_, text)| text.to_owned());
    let text = context.split('\n').skip(1).find_map(own)?;
    Some(dims.iter().enumerate().fold(text, |text, (i, value)| text.replace(&format!("{{{i}}}"), &value.to_string())))
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::Any;

    use super::*;

    fn message(context: &str, dims: &[i64], dim: usize) -> String {
        dimension(Any::from(context).as_view(), dims, dim, 4).message().to_owned()
    }

    #[test]
    fn a_place_is_told_in_words() {
        let annotated = "ErrorContext(fn=main, loc=param[0], param=x, annotation=R.Tensor((3, 4), dtype=\"float32\")) ";
        let expected = "argument `x` of `main` must be R.Tensor((3, 4), dtype=\"float32\"): dimension 1 is 5, not 4";
        assert_eq!(message(annotated, &[3, 5], 1), expected);
        assert_eq!(
            message("ErrorContext(match_cast, value=w, ty=R.Shape([n])) ", &[5], 0),
            "match_cast: `w` must be R.Shape([n]): dimension 0 is 5, not 4"
        );
        assert_eq!(
            message("ErrorContext(match_cast, value=the result of Add `a`, ty=R.Shape([n])) ", &[5], 0),
            "the result of Add `a` must be R.Shape([n]): dimension 0 is 5, not 4"
        );
        assert_eq!(
            message("ErrorContext(match_cast, value=R.shape([n * m, n]), ty=R.Shape([6, n])) ", &[8, 4], 0),
            "R.shape([n * m, n]) must be R.Shape([6, n]): dimension 0 is 8, not 4"
        );
        assert_eq!(message("ErrorContext(match_cast, var=lv) ", &[5], 0), "match_cast: `lv`: dimension 0 is 5, not 4");
        assert_eq!(
            message("ErrorContext(fn=main, loc=return, annotation=R.Shape([n])) ", &[5], 0),
            "the return value of `main` must be R.Shape([n]): dimension 0 is 5, not 4"
        );
        assert_eq!(message("somewhere", &[5], 0), "somewhere: dimension 0 is 5, not 4");
        assert_eq!(message("", &[5], 0), "a value: dimension 0 is 5, not 4");
    }

    #[test]
    fn a_dimension_of_which_there_is_more_to_say_has_its_own_line() {
        let context =
            "ErrorContext(match_cast, value=s, ty=R.Shape([n, 1])) \n1: sizes add up to {2}, the axis has {0}";
        assert_eq!(message(context, &[7, 0, 9], 1), "sizes add up to 9, the axis has 7");
        assert_eq!(message(context, &[7, 0, 9], 0), "match_cast: `s` must be R.Shape([n, 1]): dimension 0 is 7, not 4");
    }

    #[test]
    fn what_a_program_was_compiled_for_is_an_error_of_its_own_kind() {
        let context =
            "ErrorContext(check, value=s, ty=R.Shape([n, 1])) \n1: guard: compiled for {0} rows\n0: rows: {0}";
        let of = |dim| dimension(Any::from(context).as_view(), &[7, 0], dim, 4);
        assert_eq!((of(1).kind(), of(1).message()), (SHAPE_GUARD_ERROR, "compiled for 7 rows"));
        assert_eq!((of(0).kind(), of(0).message()), (SHAPE_ERROR, "rows: 7"));
    }
}
