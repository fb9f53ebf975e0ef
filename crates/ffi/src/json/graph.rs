//! Any graph of objects as one JSON value, and back, with shared objects kept shared.
//!
//! ```text
//! {"root_index": 2, "nodes": [{"type": "int", "data": 1}, {"type": "ffi.List", "data": [0]},
//!                             {"type": "ffi.Array", "data": [1, 1]}], "metadata": ...}
//! ```
//!
//! A node has the key of its type and, as data, what the value is: plain values literally, sequences as the numbers of
//! their elements' nodes, maps as those of keys and values in turn, objects as their fields by name, of which the plain
//! ones are literal. A type may have its own data by a hook. Children come before their parents when a graph is written;
//! when one is read, nodes may come in any order, and nobody's numbers are believed.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::abi::type_index;
use crate::builtin::{Enum, enum_member, is_enum, is_int_enum};
use crate::graph::create;
use crate::object::ObjectRef;
use crate::reflect::{get_field, members, name_of};
use crate::stack::{Stack, used_up};
use crate::structural::bytes_hash;
use crate::type_attr::{self, Attr};
use crate::type_info::{type_index_of_key, type_info};
use crate::{Any, Array, Bytes, DataType, Device, Dict, Error, ErrorKind, Function, List, Map, Shape};

/// A graph as a JSON value. Metadata, unless it is None, goes along.
pub fn to_graph(root: &Any, metadata: &Any) -> Result<Any, Error> {
    let mut encoder = Encoder::default();
    let root = encoder.node(root)?;
    let mut graph: Vec<(&str, Any)> = vec![("root_index", root.into()), ("nodes", encoder.nodes.into())];
    if !metadata.is_none() {
        graph.push(("metadata", metadata.clone()));
    }
    Ok(graph.into_iter().collect::<Map>().into())
}

#[derive(Default)]
struct Encoder {
    nodes: Vec<Any>,
    stack: Stack,
    /// The nodes of values that were written: by identity, text and bytes by content.
    known: HashMap<(i32, u64), Vec<(Any, usize)>>,
    /// Lists and dicts that are being written.
    open: HashSet<usize>,
}

fn unsupported(key: &str) -> Error {
    Error::new(ErrorKind::RuntimeError, format!("Cannot serialize type `{key}`"))
}

impl Encoder {
    fn node(&mut self, value: &Any) -> Result<usize, Error> {
        let key = match (value.as_str(), value.as_bytes()) {
            (Some(text), _) => (type_index::STR, bytes_hash(text.as_bytes())),
            (_, Some(bytes)) => (type_index::BYTES, bytes_hash(bytes)),
            _ => (value.type_index(), value.as_view().raw().word() as u64),
        };
        if let Some((_, node)) =
            self.known.get(&key).and_then(|known| known.iter().find(|(other, _)| crate::map::same_key(other, value)))
        {
            return Ok(*node);
        }
        if self.stack.is_used_up() {
            return Err(used_up());
        }
        let (type_key, data) = self.encode(value)?;
        let mut node: Vec<(&str, Any)> = vec![("type", type_key.into())];
        if !value.is_none() {
            node.push(("data", data));
        }
        self.nodes.push(node.into_iter().collect::<Map>().into());
        let index = self.nodes.len() - 1;
        self.known.entry(key).or_default().push((value.clone(), index));
        Ok(index)
    }

    fn encode(&mut self, value: &Any) -> Result<(&'static str, Any), Error> {
        if let Some(text) = value.as_str() {
            return Ok(("ffi.String", text.into()));
        }
        if let Some(bytes) = value.as_bytes() {
            return Ok(("ffi.Bytes", BASE64.encode(bytes).into()));
        }
        let data = match value.type_index() {
            type_index::NONE | type_index::BOOL | type_index::INT | type_index::FLOAT => value.clone(),
            type_index::DATA_TYPE => value.to::<DataType>()?.to_string().into(),
            type_index::DEVICE => {
                let device: Device = value.to()?;
                vec![i64::from(device.device_type), i64::from(device.device_id)].into()
            }
            type_index::SHAPE => value.to::<Shape>()?.to_vec().into(),
            type_index::ARRAY => self.sequence(value.to::<Array>()?.as_slice())?,
            type_index::LIST => {
                self.guarded(value, "List", |encoder| encoder.sequence(&value.to::<List>()?.to_vec()))?
            }
            type_index::MAP => {
                let map: Map = value.to()?;
                self.entries(map.iter())?
            }
            type_index::DICT => self.guarded(value, "Dict", |encoder| {
                let entries = value.to::<Dict>()?.to_vec();
                encoder.entries(entries.iter().map(|(key, value)| (key, value)))
            })?,
            _ => match value.as_object() {
                Some(object) => self.object(object)?,
                None => return Err(unsupported(value.type_key())),
            },
        };
        Ok((value.type_key(), data))
    }

    /// Writes something that can contain itself, which is an error.
    fn guarded(
        &mut self,
        value: &Any,
        what: &str,
        write: impl FnOnce(&mut Self) -> Result<Any, Error>,
    ) -> Result<Any, Error> {
        let address = value.as_view().raw().word() as usize;
        if !self.open.insert(address) {
            let message = format!("Cycle detected during serialization: a {what} contains itself");
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let data = write(self)?;
        self.open.remove(&address);
        Ok(data)
    }

    fn sequence(&mut self, values: &[Any]) -> Result<Any, Error> {
        let nodes: Vec<usize> = values.iter().map(|value| self.node(value)).collect::<Result<_, _>>()?;
        Ok(nodes.into())
    }

    fn entries<'a>(&mut self, entries: impl Iterator<Item = (&'a Any, &'a Any)>) -> Result<Any, Error> {
        let mut nodes: Vec<usize> = Vec::new();
        for (key, value) in entries {
            nodes.push(self.node(key)?);
            nodes.push(self.node(value)?);
        }
        Ok(nodes.into())
    }

    fn object(&mut self, object: &ObjectRef) -> Result<Any, Error> {
        let index = object.type_index();
        if is_int_enum(index) {
            return Enum::integer_of(object);
        }
        if is_enum(index) {
            return Enum::text_of(object);
        }
        if let Some(hook) = type_attr::get(Attr::DataToJson, index) {
            return hook.to::<Function>()?.call(&[object.into()]);
        }
        if !type_info(index).is_some_and(create::can_create) {
            let message = format!(
                "Type `{}` does not support ToJSONGraph (no native creator or __ffi_new__ type attr)",
                object.type_key()
            );
            return Err(Error::new(ErrorKind::TypeError, message));
        }
        let mut data: Vec<(&str, Any)> = Vec::new();
        for field in members(index) {
            let value = get_field(object, field)?;
            let value = match field.static_type_index {
                type_index::NONE => Any::none(),
                type_index::BOOL | type_index::INT | type_index::FLOAT => value,
                type_index::DATA_TYPE => value.to::<DataType>()?.to_string().into(),
                _ => self.node(&value)?.into(),
            };
            data.push((name_of(field), value));
        }
        Ok(data.into_iter().collect::<Map>().into())
    }
}

/// The value of a graph.
pub fn from_graph(graph: &Any) -> Result<Any, Error> {
    let graph: Map = graph.to().map_err(|_| invalid("expected an object"))?;
    let root = graph.get("root_index").and_then(Any::as_int);
    let root = root.ok_or_else(|| invalid("expected `root_index` integer field"))?;
    let nodes = graph.get("nodes").and_then(|nodes| nodes.to::<Array>().ok());
    let nodes = nodes.ok_or_else(|| invalid("expected `nodes` array field"))?;
    Decoder { decoded: vec![NodeState::Unseen; nodes.len()], nodes }.root(root)
}

fn invalid(why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::ValueError, format!("Invalid JSON Object Graph: {why}"))
}

#[derive(Clone)]
enum NodeState {
    Unseen,
    /// Its children are being read.
    Open,
    Done(Any),
}

struct Decoder {
    nodes: Array,
    decoded: Vec<NodeState>,
}

impl Decoder {
    /// Reads a node and what it needs, without recursion: a node is looked at twice, once for its children, and once when
    /// they are there.
    fn root(&mut self, root: i64) -> Result<Any, Error> {
        let mut pending = vec![self.check(root)?];
        while let Some(index) = pending.last().copied() {
            match self.decoded[index] {
                NodeState::Done(_) => {
                    pending.pop();
                }
                NodeState::Unseen => {
                    self.decoded[index] = NodeState::Open;
                    for child in self.children(index)? {
                        match self.decoded[child] {
                            NodeState::Unseen => pending.push(child),
                            NodeState::Open => return Err(invalid(format_args!("node {child} contains itself"))),
                            NodeState::Done(_) => {}
                        }
                    }
                }
                NodeState::Open => {
                    let value = self.decode(index)?;
                    self.decoded[index] = NodeState::Done(value);
                    pending.pop();
                }
            }
        }
        self.done(root)
    }

    fn check(&self, index: i64) -> Result<usize, Error> {
        let valid = usize::try_from(index).ok().filter(|index| *index < self.nodes.len());
        valid.ok_or_else(|| invalid(format_args!("invalid node index {index}")))
    }

    fn done(&self, index: i64) -> Result<Any, Error> {
        match self.decoded.get(self.check(index)?) {
            Some(NodeState::Done(value)) => Ok(value.clone()),
            _ => Err(invalid(format_args!("node {index} is not there"))),
        }
    }

    /// A node's type and data.
    fn node(&self, index: usize) -> Result<(i32, Any), Error> {
        let node: Map = self.nodes.get(index).map_or(Ok(Map::from_iter(Vec::<(Any, Any)>::new())), Any::to)?;
        let key = node.get("type").and_then(Any::as_str).ok_or_else(|| invalid("a node has no `type`"))?;
        let type_index = type_index_of_key(key)
            .ok_or_else(|| Error::new(ErrorKind::ValueError, format!("Cannot find type `{key}`")))?;
        Ok((type_index, node.get("data").cloned().unwrap_or_default()))
    }

    /// The nodes that a node refers to.
    fn children(&self, index: usize) -> Result<Vec<usize>, Error> {
        let (type_index, data) = self.node(index)?;
        let all = |data: &Any| data.to::<Vec<i64>>()?.into_iter().map(|child| self.check(child)).collect();
        match type_index {
            type_index::ARRAY | type_index::LIST | type_index::MAP | type_index::DICT => all(&data),
            type_index if !reads_fields(type_index) => Ok(Vec::new()),
            type_index => {
                let data: Map = data.to()?;
                let fields = members(type_index).filter(|field| !is_literal(field.static_type_index));
                let given = fields.filter_map(|field| data.get(name_of(field)));
                given.map(|child| self.check(child.to()?)).collect()
            }
        }
    }

    fn decode(&self, index: usize) -> Result<Any, Error> {
        let (type_index, data) = self.node(index)?;
        let values = |data: &Any| -> Result<Vec<Any>, Error> {
            data.to::<Vec<i64>>()?.into_iter().map(|child| self.done(child)).collect()
        };
        Ok(match type_index {
            type_index::NONE => Any::none(),
            type_index::BOOL => data.to::<bool>()?.into(),
            type_index::INT => data.to::<i64>()?.into(),
            type_index::FLOAT => data.to::<f64>()?.into(),
            type_index::DATA_TYPE => data.to::<DataType>()?.into(),
            type_index::DEVICE => match data.to::<Vec<i32>>()?[..] {
                [device_type, device_id] => Device::new(device_type, device_id).into(),
                ref other => {
                    let count = other.len();
                    let why =
                        format!("Device data must be an array of [device_type, device_id], got {count} element(s)");
                    return Err(invalid(why));
                }
            },
            type_index::STR => data.to::<String>()?.into(),
            type_index::BYTES => {
                let bytes = BASE64.decode(data.to::<String>()?);
                Bytes::new(&bytes.map_err(|error| invalid(format_args!("bytes in base64: {error}")))?).into()
            }
            type_index::SHAPE => Shape::new(&data.to::<Vec<i64>>()?).into(),
            type_index::ARRAY => Array::from_vec(values(&data)?).into(),
            type_index::LIST => List::from_vec(values(&data)?).into(),
            type_index::MAP => pairs(values(&data)?)?.into_iter().collect::<Map>().into(),
            type_index::DICT => pairs(values(&data)?)?.into_iter().collect::<Dict>().into(),
            _ if is_enum(type_index) => enum_member(type_index, &data)?,
            _ => match type_attr::get(Attr::DataFromJson, type_index) {
                Some(hook) => hook.to::<Function>()?.call(&[data.as_view()])?,
                None => self.object(type_index, &data.to()?)?.into(),
            },
        })
    }

    fn object(&self, type_index: i32, data: &Map) -> Result<ObjectRef, Error> {
        if type_index < type_index::OBJECT {
            return Err(unsupported(crate::type_info::key_of(type_index)));
        }
        create::from_fields(type_index, &mut |field| {
            let Some(data) = data.get(name_of(field)) else { return Ok(None) };
            Ok(Some(match field.static_type_index {
                type_index::NONE => Any::none(),
                type_index::BOOL => data.to::<bool>()?.into(),
                type_index::INT => data.to::<i64>()?.into(),
                type_index::FLOAT => data.to::<f64>()?.into(),
                type_index::DATA_TYPE => data.to::<DataType>()?.into(),
                _ => self.done(data.to()?)?,
            }))
        })
    }
}

/// True if a field of that declared type is written literally.
fn is_literal(static_index: i32) -> bool {
    matches!(
        static_index,
        type_index::NONE | type_index::BOOL | type_index::INT | type_index::FLOAT | type_index::DATA_TYPE
    )
}

/// True if objects of the type are read from their fields.
fn reads_fields(index: i32) -> bool {
    const OWN_DATA: &[i32] = &[type_index::STR, type_index::BYTES, type_index::SHAPE];
    index >= type_index::OBJECT
        && !OWN_DATA.contains(&index)
        && !is_enum(index)
        && type_attr::get(Attr::DataFromJson, index).is_none()
}

fn pairs(values: Vec<Any>) -> Result<Vec<(Any, Any)>, Error> {
    let count = values.len();
    if !count.is_multiple_of(2) {
        let why = format!("Map/Dict data must contain an even number of [key, value] entries, got {count}");
        return Err(invalid(why));
    }
    let mut values = values.into_iter();
    Ok(std::iter::from_fn(|| Some((values.next()?, values.next()?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{parse, stringify};

    fn round_trip(value: &Any) -> Any {
        from_graph(&parse(&stringify(&to_graph(value, &Any::none()).unwrap(), 0).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn shared_objects_stay_shared() {
        let list = List::from_vec(vec![1i64.into()]);
        let again: Array = round_trip(&vec![Any::from(&list), (&list).into()].into()).to().unwrap();
        assert!(again.get(0).unwrap().as_object() == again.get(1).unwrap().as_object());
    }

    #[test]
    fn the_text_is_that_of_the_interface() {
        let graph = to_graph(&vec![Any::from(1i64), "k".into(), 1i64.into()].into(), &"m".into()).unwrap();
        let text = stringify(&graph, 0).unwrap();
        let expected = concat!(
            r#"{"root_index":2,"nodes":[{"type":"int","data":1},{"type":"ffi.String","data":"k"},"#,
            r#"{"type":"ffi.Array","data":[0,1,0]}],"metadata":"m"}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn hostile_graphs_are_errors() {
        let cases = [
            r#"{"root_index":0,"nodes":[{"type":"ffi.Array","data":[0]}]}"#,
            r#"{"root_index":0,"nodes":[{"type":"ffi.Array","data":[7]}]}"#,
            r#"{"root_index":0,"nodes":[{"type":"ffi.Map","data":[0]}]}"#,
            r#"{"root_index":-1,"nodes":[]}"#,
            r#"{"root_index":0,"nodes":[{"type":"Device","data":[1]}]}"#,
            r#"{"root_index":0,"nodes":[{"type":"ffi.Function","data":{}}]}"#,
            r#"{"root_index":0,"nodes":[{"type":"ffi.Bytes","data":"?"}]}"#,
            r#"{"root_index":0,"nodes":[{"type":"no.such.Type","data":{}}]}"#,
            r#"{"root_index":0,"nodes":[1]}"#,
            r#"[]"#,
        ];
        for text in cases {
            assert!(from_graph(&parse(text).unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn long_chains_need_no_stack() {
        let mut text = String::from(r#"{"root_index":50000,"nodes":[{"type":"None"}"#);
        for i in 0..50_000 {
            text.push_str(&format!(r#",{{"type":"ffi.Array","data":[{i}]}}"#));
        }
        text.push_str("]}");
        let value = from_graph(&parse(&text).unwrap()).unwrap();
        // Dropping such a chain must not need the stack either, which is the container's affair: take it apart here.
        let mut value = value;
        while let Ok(array) = value.to::<Array>() {
            let Some(inner) = array.get(0).cloned() else { break };
            drop(array);
            value = inner;
        }
    }
}
