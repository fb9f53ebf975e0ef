//! The module tree inside a shared library, as bytes.
//!
//! A compiled library may hold other modules than its own code: the VM's executable, kernels of other devices,
//! constants. They lie in one read-only symbol, `__tvm_ffi__library_bin`: the length of the rest, then the tree of
//! imports in compressed rows (for each module the end of its children in one list), then for each module its kind
//! and, unless the kind is [`LIBRARY_KIND`], its bytes. Module 0 is the root. The kind [`LIBRARY_KIND`] stands for the
//! code of the library itself.
//!
//! ```text
//! u64 length | u64 n+1, u64 row ends … | u64 m, u64 children … | n × (text kind, bytes payload)
//! ```

use relaxide_ffi::SavedBytes;

/// The symbol that holds the bytes.
pub const SYMBOL: &str = "__tvm_ffi__library_bin";

/// The kind that stands for the code of the library.
pub const LIBRARY_KIND: &str = "_lib";

/// A module of the tree: to be written, with its bytes as [`SavedBytes`], or read from bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleNode<P> {
    /// What kind of module it is.
    pub kind: String,
    /// Its bytes; `None` for the code of the library itself.
    pub payload: Option<P>,
    /// The modules that it imports, by index, in order.
    pub imports: Vec<usize>,
}

/// Why bytes are not a module tree. The library was made by a broken or a newer compiler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// The bytes end inside a field.
    #[error("the module tree in the library ends early, at byte {at} of {length}")]
    Truncated {
        /// Where the field begins.
        at: usize,
        /// How many bytes there are.
        length: usize,
    },
    /// There is no module at all.
    #[error("the module tree in the library is empty")]
    Empty,
    /// The rows are not in order or do not cover the children.
    #[error("the module tree in the library has inconsistent rows")]
    Rows,
    /// A module imports one that does not exist.
    #[error("module {module} imports module {import} of {modules}")]
    NoSuchModule {
        /// The importing module.
        module: usize,
        /// The claimed index.
        import: u64,
        /// How many there are.
        modules: usize,
    },
    /// A module imports itself, perhaps by way of others.
    #[error("module {0} imports itself")]
    Cycle(usize),
    /// A kind is not text.
    #[error("the kind of module {0} is not valid UTF-8")]
    Kind(usize),
}

/// The bytes of a tree: its length, then the rest.
pub fn encode(nodes: Vec<ModuleNode<SavedBytes>>) -> SavedBytes {
    let mut out = SavedBytes::default();
    let number = |out: &mut SavedBytes, value: usize| out.push(&(value as u64).to_le_bytes());
    number(&mut out, nodes.len() + 1);
    number(&mut out, 0);
    let mut end = 0;
    for node in &nodes {
        end += node.imports.len();
        number(&mut out, end);
    }
    number(&mut out, end);
    for import in nodes.iter().flat_map(|node| &node.imports) {
        number(&mut out, *import);
    }
    for node in nodes {
        let kind = if node.payload.is_none() { LIBRARY_KIND } else { &node.kind };
        number(&mut out, kind.len());
        out.push(kind.as_bytes());
        if let Some(payload) = node.payload {
            number(&mut out, payload.len());
            out.append(payload);
        }
    }
    let mut whole = SavedBytes::from((out.len() as u64).to_le_bytes().to_vec());
    whole.append(out);
    whole
}

/// Reads a tree, without the length in front.
pub fn decode(bytes: &[u8]) -> Result<Vec<ModuleNode<&[u8]>>, BlobError> {
    let mut reader = BlobReader { bytes, at: 0 };
    let rows = reader.numbers()?;
    let children = reader.numbers()?;
    let modules = rows.len().checked_sub(1).filter(|n| *n > 0).ok_or(BlobError::Empty)?;
    if rows.first() != Some(&0) || rows.last() != Some(&(children.len() as u64)) || !rows.is_sorted() {
        return Err(BlobError::Rows);
    }
    let mut nodes = Vec::new();
    for module in 0..modules {
        let row = match rows.get(module..module + 2) {
            // The rows are sorted and end with the number of children, so they are indices.
            Some([start, end]) => children.get(*start as usize..*end as usize).ok_or(BlobError::Rows)?,
            _ => return Err(BlobError::Rows),
        };
        let index = |import: &u64| match usize::try_from(*import) {
            Ok(index) if index < modules => Ok(index),
            _ => Err(BlobError::NoSuchModule { module, import: *import, modules }),
        };
        let imports = row.iter().map(index).collect::<Result<Vec<_>, _>>()?;
        let kind = reader.part()?.to_vec();
        let kind = String::from_utf8(kind).map_err(|_| BlobError::Kind(module))?;
        let payload = if kind == LIBRARY_KIND { None } else { Some(reader.part()?) };
        nodes.push(ModuleNode { kind, payload, imports });
    }
    refuse_cycles(&nodes)?;
    Ok(nodes)
}

/// Modules count references to their imports: a cycle would never be freed, and a search would never end.
fn refuse_cycles<P>(nodes: &[ModuleNode<P>]) -> Result<(), BlobError> {
    let mut waiting_for: Vec<usize> = nodes.iter().map(|node| node.imports.len()).collect();
    let mut importers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (module, node) in nodes.iter().enumerate() {
        for import in &node.imports {
            importers.get_mut(*import).into_iter().for_each(|list| list.push(module));
        }
    }
    let mut ready: Vec<usize> = (0..nodes.len()).filter(|module| waiting_for.get(*module) == Some(&0)).collect();
    let mut settled = 0;
    while let Some(module) = ready.pop() {
        settled += 1;
        for importer in importers.get(module).into_iter().flatten() {
            if let Some(count) = waiting_for.get_mut(*importer) {
                *count -= 1;
                if *count == 0 {
                    ready.push(*importer);
                }
            }
        }
    }
    if settled == nodes.len() {
        return Ok(());
    }
    Err(BlobError::Cycle(waiting_for.iter().position(|count| *count > 0).unwrap_or(0)))
}

struct BlobReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BlobReader<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], BlobError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = usize::try_from(count).ok().and_then(|count| rest.get(..count));
        let taken = taken.ok_or(BlobError::Truncated { at: self.at, length: self.bytes.len() })?;
        self.at += taken.len();
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, BlobError> {
        let mut word = [0; 8];
        word.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(word))
    }

    fn part(&mut self) -> Result<&'a [u8], BlobError> {
        let length = self.number()?;
        self.take(length)
    }

    fn numbers(&mut self) -> Result<Vec<u64>, BlobError> {
        let at = self.at;
        let count = self.number()?;
        let bytes = count.checked_mul(8).ok_or(BlobError::Truncated { at, length: self.bytes.len() })?;
        let words = self.take(bytes)?.chunks_exact(8);
        Ok(words.map(|word| word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node<'a>(kind: &str, payload: Option<&'a [u8]>, imports: &[usize]) -> ModuleNode<&'a [u8]> {
        ModuleNode { kind: kind.to_owned(), payload, imports: imports.to_vec() }
    }

    fn bytes_of(nodes: &[ModuleNode<&[u8]>]) -> Vec<u8> {
        let save = |node: &ModuleNode<&[u8]>| ModuleNode {
            kind: node.kind.clone(),
            payload: node.payload.map(|bytes| bytes.to_vec().into()),
            imports: node.imports.clone(),
        };
        encode(nodes.iter().map(save).collect()).into_bytes()
    }

    #[test]
    fn a_tree_comes_back() {
        let nodes = [node("vm", Some(b"abc"), &[1, 2]), node("_lib", None, &[2]), node("cuda", Some(b""), &[])];
        let bytes = bytes_of(&nodes);
        assert_eq!(bytes[..8], (bytes.len() as u64 - 8).to_le_bytes());
        assert_eq!(decode(&bytes[8..]).unwrap(), nodes);
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = bytes_of(&[node("vm", Some(b"abc"), &[1]), node("_lib", None, &[])]);
        for end in 8..bytes.len() {
            assert!(decode(&bytes[8..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn a_cycle_and_a_wrong_index_are_refused() {
        let cycle = bytes_of(&[node("a", Some(b""), &[1]), node("b", Some(b""), &[1])]);
        assert_eq!(decode(&cycle[8..]), Err(BlobError::Cycle(0)));
        let outside = bytes_of(&[node("a", Some(b""), &[1])]);
        assert!(matches!(decode(&outside[8..]), Err(BlobError::NoSuchModule { import: 1, .. })));
    }
}
