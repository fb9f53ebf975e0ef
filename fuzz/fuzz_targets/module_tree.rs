//! Bytes as the module tree inside a library, and as its table of processors.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_runtime::library::blob::{self, ModuleNode};
use relaxide_runtime::processor::variants::Variants;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data)
        && let Some(table) = Variants::from_text(text)
    {
        assert_eq!(Variants::from_text(&table.to_text()).as_ref(), Some(&table), "what was written is readable");
        // It is chosen of, or refused, by what the processor has.
        assert!(table.choose().is_ok_and(|chosen| chosen < table.rows().len()) || table.choose().is_err());
    }
    let Ok(nodes) = blob::decode(data) else { return };
    let count = nodes.len();
    let saved = |node: ModuleNode<&[u8]>| ModuleNode {
        kind: node.kind,
        payload: node.payload.map(|bytes| bytes.to_vec().into()),
        imports: node.imports,
    };
    let bytes = blob::encode(nodes.into_iter().map(saved).collect()).into_bytes();
    assert_eq!(blob::decode(&bytes[8..]).map(|n| n.len()), Ok(count), "what was written is readable");
});
