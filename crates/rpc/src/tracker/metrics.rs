//! How a tracker stands, in OpenMetrics form.

use std::fmt::Write;

use super::queue::Queues;

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The text.
pub fn text(queues: &Queues, connections: usize, oldest_seconds: u64, now: u64) -> String {
    let mut out = String::new();
    let families: [(&str, &str, &str); 4] = [
        ("relaxide_tracker_free", "gauge", "Servers that have room."),
        ("relaxide_tracker_silent", "gauge", "Servers that have room and do not answer."),
        ("relaxide_tracker_pending", "gauge", "Requests that wait."),
        ("relaxide_tracker_handed", "counter", "Servers that were handed out."),
    ];
    for (family, (name, kind, help)) in families.into_iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(out, "# TYPE {name} {kind}\n# HELP {name} {help}\n");
        for (key, counts) in queues.counts(now) {
            let (suffix, value) = match family {
                0 => ("", counts.free as u64),
                1 => ("", counts.silent as u64),
                2 => ("", counts.pending as u64),
                _ => ("_total", counts.handed),
            };
            let _ = writeln!(out, "{name}{suffix}{{key=\"{}\"}} {value}", escaped(key));
        }
    }
    for (name, help, value) in [
        ("relaxide_tracker_connections", "Open connections.", connections as u64),
        ("relaxide_tracker_leases", "Servers that their requesters hold.", queues.leases().len() as u64),
        ("relaxide_tracker_oldest_connection_seconds", "How long the oldest connection is open.", oldest_seconds),
    ] {
        let _ = write!(out, "# TYPE {name} gauge\n# HELP {name} {help}\n{name} {value}\n");
    }
    out.push_str("# EOF\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_the_text_ends() {
        let mut queues = Queues::default();
        queues.request("a\"b", 1, "", 1, 0);
        let text = text(&queues, 3, 9, 0);
        assert!(text.contains("relaxide_tracker_pending{key=\"a\\\"b\"} 1\n"), "{text}");
        assert!(text.contains("relaxide_tracker_handed_total{key=\"a\\\"b\"} 0\n"));
        assert!(text.ends_with("# EOF\n"));
    }
}
