//! What a tracker is asked, and what it answers: lists of JSON, as TVM has them.
//!
//! TVM's codes are 1 to 7. Ours behind them are answered by our trackers alone.

use serde_json::{Value, json};

/// The longest message.
pub const MAX_MESSAGE: usize = 1 << 20;

/// The codes.
pub mod code {
    /// It did not work.
    pub const FAIL: i64 = -1;
    /// It worked.
    pub const SUCCESS: i64 = 0;
    /// Is somebody there?
    pub const PING: i64 = 1;
    /// Ends the tracker, for who knows its key.
    pub const STOP: i64 = 2;
    /// Offers a resource.
    pub const PUT: i64 = 3;
    /// Asks for a resource.
    pub const REQUEST: i64 = 4;
    /// Says who the connection is.
    pub const UPDATE_INFO: i64 = 5;
    /// Asks how the queues stand.
    pub const SUMMARY: i64 = 6;
    /// Asks which of the connection's resources nobody has.
    pub const GET_PENDING_MATCHKEYS: i64 = 7;
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Is somebody there?
    Ping,
    /// End, if the key is right.
    Stop(String),
    /// A resource.
    Put {
        /// The key that it is asked for by.
        key: String,
        /// Its port.
        port: u16,
        /// The key that its client says.
        match_key: String,
        /// Its address, if it is not that of the connection.
        address: Option<String>,
    },
    /// A wish.
    Request {
        /// The key.
        key: String,
        /// Who wishes.
        user: String,
        /// How much.
        priority: i64,
    },
    /// Who the connection is.
    Info(serde_json::Map<String, Value>),
    /// How do the queues stand?
    Summary,
    /// Which of mine are unused?
    Unused,
}

impl Message {
    /// Reads a message; nothing if it is none.
    pub fn parse(text: &[u8]) -> Option<Message> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let list = value.as_array()?;
        let text = |at: usize| list.get(at).and_then(Value::as_str).map(str::to_owned);
        match list.first()?.as_i64()? {
            code::PING => Some(Message::Ping),
            code::STOP => Some(Message::Stop(text(1)?)),
            code::PUT => {
                let value = list.get(2)?.as_array()?;
                Some(Message::Put {
                    key: text(1)?,
                    port: port(value.first()?)?,
                    match_key: value.get(1)?.as_str()?.to_owned(),
                    address: text(3),
                })
            }
            code::REQUEST => Some(Message::Request {
                key: text(1)?,
                user: text(2).unwrap_or_default(),
                priority: list.get(3).and_then(Value::as_i64).unwrap_or(1),
            }),
            code::UPDATE_INFO => list.get(1)?.as_object().cloned().map(Message::Info),
            code::SUMMARY => Some(Message::Summary),
            code::GET_PENDING_MATCHKEYS => Some(Message::Unused),
            _ => None,
        }
    }

    /// The message as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Message::Ping => json!([code::PING]),
            Message::Stop(key) => json!([code::STOP, key]),
            Message::Put { key, port, match_key, address } => json!([code::PUT, key, [port, match_key], address]),
            Message::Request { key, user, priority } => json!([code::REQUEST, key, user, priority]),
            Message::Info(info) => json!([code::UPDATE_INFO, info]),
            Message::Summary => json!([code::SUMMARY]),
            Message::Unused => json!([code::GET_PENDING_MATCHKEYS]),
        }
    }
}

/// A port, which TVM's C++ server sends as text.
pub fn port(value: &Value) -> Option<u16> {
    match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64().and_then(|port| u16::try_from(port).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_as_they_are_written() {
        for text in [
            r#"[1]"#,
            r#"[2, "tracker:0.5"]"#,
            r#"[3, "board", [9090, "board:0.25"], null]"#,
            r#"[3, "board", [9090, "board:0.25"], "10.0.0.1"]"#,
            r#"[4, "board", "", 1]"#,
            r#"[5, {"key": "server:board", "addr": [null, 9090]}]"#,
            r#"[6]"#,
            r#"[7]"#,
        ] {
            let message = Message::parse(text.as_bytes()).unwrap();
            let again = super::super::text::text(&message.to_json());
            // The order of a map's keys is nobody's.
            if !text.contains('{') {
                assert_eq!(again, text);
            }
            assert_eq!(Message::parse(again.as_bytes()), Some(message));
        }
        for text in ["", "[]", "{}", "[99]", "[3]", "[4]", "[\"1\"]", "nonsense", "[3, \"k\", [99999, \"k:1\"]]"] {
            assert_eq!(Message::parse(text.as_bytes()), None, "{text}");
        }
    }
}
