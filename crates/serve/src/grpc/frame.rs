//! Messages as gRPC sends them: whether it is compressed, its length, itself.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use crate::{Error, Fault};

const HEAD: usize = 5;

/// The one message of a body.
pub fn unframe(body: &Bytes) -> Result<Bytes, Error> {
    let Some((head, rest)) = body.split_first_chunk::<HEAD>() else {
        return Err(Error::invalid("the body ends within the head of its message"));
    };
    let [compressed, length @ ..] = *head;
    match compressed {
        0 => {}
        1 => return Err(Error::new(Fault::Unsupported, "compressed messages are not read: send them as they are")),
        other => return Err(Error::invalid(format!("the flag of a message is {other}, neither 0 nor 1"))),
    }
    if u32::from_be_bytes(length) as usize != rest.len() {
        let (wanted, found) = (u32::from_be_bytes(length), rest.len());
        return Err(Error::invalid(format!("the message has {wanted} bytes by its head, but {found} came")));
    }
    Ok(body.slice(HEAD..))
}

/// The body of a message.
pub(crate) fn frame(message: &impl Message) -> Result<Bytes, Error> {
    let large = || Error::new(Fault::TooLarge, "the answer has 4 GB or more, which is no message of gRPC");
    let length = message.encoded_len();
    let mut body = BytesMut::with_capacity(HEAD + length);
    body.put_u8(0);
    body.put_u32(u32::try_from(length).map_err(|_| large())?);
    message.encode(&mut body).map_err(|_| large())?;
    Ok(body.freeze())
}

/// How long a call may take, by the header `grpc-timeout`: up to eight digits and a unit.
pub(crate) fn timeout(text: &str) -> Option<std::time::Duration> {
    use std::time::Duration;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count = Some(digits).filter(|digits| digits.len() <= 8)?.parse::<u64>().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn heads_are_checked() {
        let message = |bytes: &[u8]| unframe(&Bytes::copy_from_slice(bytes)).map_err(|error| error.fault);
        assert_eq!(message(&[0, 0, 0, 0, 2, 7, 8]).unwrap()[..], [7, 8]);
        assert_eq!(message(&[0, 0, 0, 0, 2, 7]), Err(Fault::Invalid));
        assert_eq!(message(&[0, 0, 0, 0, 1, 7, 8]), Err(Fault::Invalid));
        assert_eq!(message(&[0, 255, 255, 255, 255, 7]), Err(Fault::Invalid));
        assert_eq!(message(&[1, 0, 0, 0, 0]), Err(Fault::Unsupported));
        assert_eq!(message(&[9, 0, 0, 0, 0]), Err(Fault::Invalid));
        assert_eq!(message(&[0, 0]), Err(Fault::Invalid));
    }

    #[test]
    fn times_have_units() {
        assert_eq!(timeout("100m"), Some(Duration::from_millis(100)));
        assert_eq!(timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for other in ["", "m", "5", "-5m", "123456789m", "5é"] {
            assert_eq!(timeout(other), None, "{other}");
        }
    }
}
