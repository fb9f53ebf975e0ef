//! [`Framer`]: packets out of a stream of bytes, however it is cut.
//!
//! Packets are given out whole, but for those that carry a copy's payload: these are given out as soon as their head is there, and
//! the payload is taken from the framer, or straight from the stream into where it belongs.

use super::{Code, Copy, Dialect, Head, Limits, Malformed, Reader, WireTensor};

/// What a read asks for at least: most packets fit.
const CHUNK: usize = 64 << 10;
/// The length in front of a packet.
const LENGTH: usize = 8;
/// The word behind it.
const WORD: usize = 4;
/// A copy's tensor as far as its number of dimensions, and what stands before: data, device, number of dimensions.
const TO_NDIM: usize = WORD + 8 + 8 + 4;

/// A piece of the stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// A whole packet, and its body.
    Packet(Head, Vec<u8>),
    /// A copy here, whose payload follows.
    CopyTo(Head, Copy),
    /// An acknowledged copy, with that many bytes of payload to follow.
    CopyAck(Head, u64),
}

/// Bytes that have come and are not yet given out.
pub struct Framer {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of payload that are still to come, those in the buffer among them.
    payload: u64,
    dialect: Dialect,
    limits: Limits,
}

impl Framer {
    /// A framer at the beginning of a stream.
    pub fn new(dialect: Dialect, limits: Limits) -> Framer {
        Framer { buffer: Vec::new(), start: 0, end: 0, payload: 0, dialect, limits }
    }

    /// Changes the form that packets have from here on.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.dialect = dialect;
    }

    /// A place for bytes from the stream; say with [`filled`](Self::filled) how many came. It grows with what has come, not with
    /// what is claimed.
    pub fn space(&mut self) -> &mut [u8] {
        let have = self.end - self.start;
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, have);
        }
        let wanted = have + have.max(CHUNK);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        } else if have == 0 && self.buffer.len() > 16 * CHUNK {
            // A large packet has been and gone.
            self.buffer = vec![0; CHUNK];
        }
        &mut self.buffer[self.end..]
    }

    /// Says how many bytes were put into [`space`](Self::space).
    pub fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// True if nothing is there that has begun and not ended: the stream may end here.
    pub fn is_at_boundary(&self) -> bool {
        self.start == self.end && self.payload == 0
    }

    /// The bytes of payload that are still to be taken.
    pub fn payload_left(&self) -> u64 {
        self.payload
    }

    /// Takes payload that has come already.
    pub fn take_payload(&mut self, place: &mut [u8]) -> usize {
        let count = place.len().min(self.end - self.start).min(usize::try_from(self.payload).unwrap_or(usize::MAX));
        place[..count].copy_from_slice(&self.buffer[self.start..self.start + count]);
        self.start += count;
        self.payload -= count as u64;
        count
    }

    /// Says that so much payload was read from the stream into its place. Only where nothing is left to take.
    pub fn payload_read(&mut self, count: usize) {
        self.payload = self.payload.saturating_sub(count as u64);
    }

    /// How many bytes have come and are not given out.
    pub fn buffered(&self) -> usize {
        self.end - self.start
    }

    /// What the next packet is and how long, its length word with it, once that can be seen. Nothing is taken.
    pub fn peek(&self) -> Option<(Head, u64)> {
        let mut there = self.buffer.get(self.start..self.end)?;
        loop {
            let (length, rest) = there.split_first_chunk::<LENGTH>()?;
            match u64::from_le_bytes(*length) {
                0 => there = rest,
                length => {
                    let (word, _) = rest.split_first_chunk::<WORD>()?;
                    let head = Head::from_word(i32::from_le_bytes(*word), self.dialect)?;
                    return Some((head, length.saturating_add(LENGTH as u64)));
                }
            }
        }
    }

    /// The next piece; nothing if more bytes must come first. `may_stream` says whether a copy here of that depth can be served
    /// now; if not, the packet is given out whole.
    pub fn next(&mut self, may_stream: impl Fn(u16) -> bool) -> Result<Option<Piece>, Malformed> {
        debug_assert_eq!(self.payload, 0, "payload is taken before the next piece");
        loop {
            let there = &self.buffer[self.start..self.end];
            let Some((length, rest)) = there.split_first_chunk::<LENGTH>() else { return Ok(None) };
            let length = u64::from_le_bytes(*length);
            if length == 0 {
                // Says only that the other end is there.
                self.start += LENGTH;
                continue;
            }
            if length < WORD as u64 {
                return Err(malformed(format!("a packet claims {length} bytes, and has at least {WORD}")));
            }
            let Some((word, _)) = rest.split_first_chunk::<WORD>() else { return Ok(None) };
            let word = i32::from_le_bytes(*word);
            let head = Head::from_word(word, self.dialect);
            let head = head.ok_or_else(|| malformed(format!("no packet has the code {word}")))?;
            let piece = match head.code {
                Code::CopyAck => self.copy_ack(head, length)?,
                Code::CopyToRemote if may_stream(head.depth) => self.copy_to(head, length)?,
                _ => self.whole(head, length)?,
            };
            return Ok(piece);
        }
    }

    fn whole(&mut self, head: Head, length: u64) -> Result<Option<Piece>, Malformed> {
        self.within(length, self.limits.packet)?;
        // Within the limit, which fits.
        let length = length as usize;
        let end = self.start + LENGTH + length;
        if end > self.end {
            return Ok(None);
        }
        let body = self.buffer[self.start + LENGTH + WORD..end].to_vec();
        self.start = end;
        Ok(Some(Piece::Packet(head, body)))
    }

    fn copy_ack(&mut self, head: Head, length: u64) -> Result<Option<Piece>, Malformed> {
        self.within(length, self.limits.copy)?;
        self.start += LENGTH + WORD;
        self.payload = length - WORD as u64;
        Ok(Some(Piece::CopyAck(head, self.payload)))
    }

    fn copy_to(&mut self, head: Head, length: u64) -> Result<Option<Piece>, Malformed> {
        self.within(length, self.limits.copy)?;
        let packet = &self.buffer[self.start + LENGTH..self.end];
        let Some(ndim) = packet.get(TO_NDIM - 4..TO_NDIM) else { return self.short(length) };
        let ndim = i32::from_le_bytes(ndim.try_into().unwrap_or_default());
        let head_bytes = WireTensor::copy_overhead(usize::try_from(ndim).unwrap_or(0).min(64)) as usize;
        let Some(bytes) = packet.get(WORD..head_bytes) else { return self.short(length) };
        let mut reader = Reader::new(bytes, &self.limits);
        let copy = Copy::read(&mut reader)?;
        reader.end()?;
        let expected = (head_bytes as u64).checked_add(copy.bytes);
        if expected != Some(length) {
            return Err(malformed(format!("a copy of {} bytes is in a packet of {length}", copy.bytes)));
        }
        self.start += LENGTH + head_bytes;
        self.payload = copy.bytes;
        Ok(Some(Piece::CopyTo(head, copy)))
    }

    /// More must come, if the packet has more.
    fn short(&self, length: u64) -> Result<Option<Piece>, Malformed> {
        let there = (self.end - self.start - LENGTH) as u64;
        match there < length {
            true => Ok(None),
            false => Err(malformed(format!("a copy's packet of {length} bytes is too short"))),
        }
    }

    fn within(&self, length: u64, limit: u64) -> Result<(), Malformed> {
        match length <= limit {
            true => Ok(()),
            false => Err(malformed(format!("a packet claims {length} bytes, and may have {limit}"))),
        }
    }
}

fn malformed(what: String) -> Malformed {
    Malformed { what, at: 0 }
}
