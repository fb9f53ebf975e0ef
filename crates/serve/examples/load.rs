//! Asks a server of the protocol over many connections, and says how many answers came and how late.
//!
//! usage: load ADDRESS PATH BODY-FILE CONNECTIONS SECONDS [RATE]
//!
//! Each connection of HTTP/1.1 asks again when it is answered. With RATE, each waits for its turn, and a request's time runs from the
//! moment when its turn was: what a server that falls behind does to those who come later counts. One line of JSON is printed.

use std::time::{Duration, Instant};

use tokio::net::TcpStream;

/// A connection's answers: their times, and how many were no success.
type Found = (Vec<u32>, usize);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, body, connections, seconds, rate @ ..] = &words[..] else {
        return Err("usage: load ADDRESS PATH BODY-FILE CONNECTIONS SECONDS [RATE]".into());
    };
    let body = std::fs::read(body)?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let request = [head.as_bytes(), &body].concat();
    let (connections, seconds): (u32, f64) = (connections.parse()?, seconds.parse()?);
    let rate: Option<f64> = rate.first().map(|rate| rate.parse()).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut times, failed) = runtime.block_on(async {
        let start = Instant::now();
        let end = start + Duration::from_secs_f64(seconds);
        let mut tasks = tokio::task::JoinSet::new();
        for i in 0..connections {
            let period = rate.map(|rate| Duration::from_secs_f64(f64::from(connections) / rate));
            let first = start + period.unwrap_or_default() * i / connections;
            tasks.spawn(ask(address.clone(), request.clone(), first, end, period));
        }
        let (mut times, mut failed) = (Vec::new(), 0);
        while let Some(done) = tasks.join_next().await {
            let (own, wrong) = done??;
            times.extend(own);
            failed += wrong;
        }
        Ok::<_, Box<dyn std::error::Error>>((times, failed))
    })?;
    times.sort_unstable();
    let at =
        |share: f64| f64::from(times.get(((times.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(0)) / 1e3;
    println!(
        "{{\"requests_per_second\": {:.1}, \"failed\": {failed}, \"p50_ms\": {:.3}, \"p99_ms\": {:.3}, \"max_ms\": {:.3}}}",
        times.len() as f64 / seconds,
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}

/// Asks until the end; times in microseconds.
async fn ask(
    address: String,
    request: Vec<u8>,
    mut turn: Instant,
    end: Instant,
    period: Option<Duration>,
) -> std::io::Result<Found> {
    let stream = TcpStream::connect(&address).await?;
    stream.set_nodelay(true)?;
    let (mut times, mut failed) = (Vec::new(), 0);
    let mut buffer = Vec::with_capacity(1 << 14);
    while turn < end {
        if period.is_some() {
            tokio::time::sleep_until(turn.into()).await;
        }
        let begin = if period.is_some() { turn } else { Instant::now() };
        write(&stream, &request).await?;
        if !answered(&stream, &mut buffer).await? {
            failed += 1;
        }
        times.push(u32::try_from(begin.elapsed().as_micros()).unwrap_or(u32::MAX));
        turn = period.map_or_else(Instant::now, |period| turn + period);
    }
    Ok((times, failed))
}

async fn write(stream: &TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads an answer; whether it is a success.
async fn answered(stream: &TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    buffer.clear();
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            if buffer.len() >= end + 4 + length.unwrap_or(0usize) {
                return Ok(head.starts_with("http/1.1 200"));
            }
        }
        stream.readable().await?;
        match stream.try_read_buf(buffer) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
