//! `relaxide devices`.

use clap::Args;
use relaxide::ffi::{Any, Device};
use relaxide::runtime::device::{Attribute, device_api, device_kinds};
use serde_json::{Value, json};

use crate::answer::{self, Form};
use crate::error::CliError;

/// Arguments of `relaxide devices`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide devices\n  relaxide devices --json")]
pub struct DevicesArgs {}

/// More devices of one kind than this are not looked for.
const MOST: i32 = 64;

/// What is asked of a device, and the name that it is shown by.
const ASKED: [(&str, Attribute); 7] = [
    ("name", Attribute::DeviceName),
    ("version", Attribute::ComputeVersion),
    ("driver", Attribute::DriverVersion),
    ("processors", Attribute::MultiProcessorCount),
    ("memory", Attribute::TotalGlobalMemory),
    ("threads_per_block", Attribute::MaxThreadsPerBlock),
    ("shared_memory_per_block", Attribute::MaxSharedMemoryPerBlock),
];

/// A device that is there.
struct FoundDevice {
    device: Device,
    said: Vec<(&'static str, Value)>,
}

fn value(any: &Any) -> Value {
    any.as_int().map_or_else(|| json!(any.as_str().unwrap_or_default()), |number| json!(number))
}

fn look(device: Device) -> Result<FoundDevice, CliError> {
    let api = device_api(device)?;
    let mut said = Vec::new();
    for (name, attribute) in ASKED {
        if let Some(answer) = api.attribute(device, attribute)? {
            said.push((name, value(&answer)));
        }
    }
    Ok(FoundDevice { device, said })
}

/// Lists the devices of this machine, and says why there are none of a kind.
pub fn run(_args: &DevicesArgs, form: Form) -> Result<(), CliError> {
    relaxide::runtime::register();
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    for kind in device_kinds() {
        let api = device_api(Device::new(kind, 0))?;
        // All numbers of CPUs are the same one.
        let most = if kind == Device::CPU { 1 } else { MOST };
        let devices = (0..most).map(|id| Device::new(kind, id)).take_while(|device| api.exists(*device));
        let devices = devices.map(look).collect::<Result<Vec<_>, _>>()?;
        if devices.is_empty() {
            let name = Device::new(kind, 0).type_name().unwrap_or("unknown").to_owned();
            absent.push((name, api.why_none().unwrap_or_else(|| "there is none".into())));
        }
        found.extend(devices);
    }
    if form == Form::Json {
        let one = |found: &FoundDevice| {
            let mut fields = serde_json::Map::from_iter([("device".to_owned(), json!(found.device.to_string()))]);
            fields.extend(found.said.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            Value::Object(fields)
        };
        let devices: Vec<Value> = found.iter().map(one).collect();
        let absent: Vec<Value> = absent.iter().map(|(kind, why)| json!({ "kind": kind, "why": why })).collect();
        return answer::json("devices", json!({ "devices": devices, "absent": absent }));
    }
    for FoundDevice { device, said } in &found {
        let said: Vec<String> = said.iter().map(|(name, value)| shown(name, value)).collect();
        answer::line(&format!("{:<10} {}", device.to_string(), said.join(", ")))?;
    }
    absent.iter().try_for_each(|(kind, why)| answer::line(&format!("{kind:<10} none: {why}")))
}

fn shown(name: &str, value: &Value) -> String {
    match (name, value.as_u64()) {
        ("memory", Some(bytes)) => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
        ("shared_memory_per_block", Some(bytes)) => format!("{} KiB shared by a block", bytes >> 10),
        ("threads_per_block", Some(count)) => format!("{count} threads in a block"),
        ("processors", Some(count)) => format!("{count} processors"),
        ("driver", _) => format!("driver {}", value.as_str().unwrap_or_default()),
        _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}
