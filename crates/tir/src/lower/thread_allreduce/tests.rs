//! Groups of every form, in text; what becomes of the results' memory.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{AttrValue, Attrs, Buffer, DataType, Var};

use super::*;

const F32: DataType = DataType::float(32);

fn threads(tag: &str, extent: i64, body: impl FnOnce(&PrimExpr) -> Stmt) -> Stmt {
    let var = Var::prim(tag.replace('.', "_"), INDEX);
    let body = body(&PrimExpr::from(&var));
    let (min, extent) = (prim::int_of(INDEX, 0), prim::int_of(INDEX, extent));
    let nest = For::new(ForKind::ThreadBinding, var, min, extent, body);
    Stmt::For(Ref::new(For { thread_tag: tag.to_string(), ..nest }))
}

/// The sums of rows of `y` times `x` elements, by threads along `x`, on a target.
fn sums(target: &str, y: i64, x: i64) -> PrimFunc {
    let (a, b) = (Buffer::new("A", F32, [y, x]), Buffer::new("B", F32, [y]));
    let (lhs, rhs) = (Var::prim("x", F32), Var::prim("y", F32));
    let result = vec![PrimExpr::from(&lhs) + PrimExpr::from(&rhs)];
    let identity_element = vec![prim::float_of(F32, 0.0)];
    let reducer = Ref::new(CommReducer { lhs: vec![lhs], rhs: vec![rhs], result, identity_element });
    let sum = Buffer::scoped("sum", F32, [1i64], "local");
    let body = threads("threadIdx.y", y, |ty| {
        threads("threadIdx.x", x, |tx| {
            let at = prim::int_of(INDEX, 0);
            let args = vec![
                prim::int_of(DataType::uint(32), 1),
                prim::load(&a, [ty.clone(), tx.clone()]),
                prim::int_of(DataType::bool(), 1),
                prim::load(&sum, [at.clone()]),
                tx.clone(),
            ];
            let call = Stmt::evaluate(prim::call(DataType::void(), ALL_REDUCE, args));
            let (key, value) = ("reduce_scope".to_string(), at.clone());
            let reduce = Stmt::Attr(Ref::new(AttrStmt {
                node: Some(AttrValue::Object(reducer.into())),
                key,
                value,
                body: call,
            }));
            let store = Stmt::store(&b, [ty.clone()], prim::load(&sum, [at.clone()]));
            Stmt::seq([Stmt::alloc(&sum), reduce, Stmt::when(prim::eq(tx, at), store)])
        })
    });
    let attrs = Attrs::new().with("target", target);
    PrimFunc { attrs, ..PrimFunc::over_buffers(&[a, b], &[], body) }
}

fn lowered(target: &str, y: i64, x: i64) -> String {
    let func = lower_thread_allreduce(&sums(target, y, x)).unwrap();
    crate::verify::verify(&func).unwrap();
    func.to_string()
}

#[test]
fn a_group_within_a_warp_takes_the_first_ones_result() {
    let text = lowered("cuda", 4, 8);
    assert_eq!(text.matches("tvm_warp_shuffle_down").count(), 3, "{text}");
    assert_eq!(text.matches("tvm_warp_shuffle(").count(), 1, "{text}");
    assert!(!text.contains("tvm_storage_sync") && !text.contains("tvm_thread_allreduce"), "{text}");
}

#[test]
fn a_group_of_several_warps_goes_through_shared_memory_once() {
    let text = lowered("cuda", 2, 128);
    assert_eq!(text.matches("tvm_storage_sync").count(), 2, "{text}");
    assert_eq!(text.matches("tvm_warp_shuffle_down").count(), 5 + 2, "{text}");
    assert!(text.contains("red_result[threadIdx_y]"), "{text}");
}

#[test]
fn a_group_of_any_size_combines_halves() {
    let text = lowered("opencl", 2, 6);
    assert!(!text.contains("shuffle"), "{text}");
    // Six values, then four, two and one.
    assert_eq!(text.matches("tvm_storage_sync").count(), 2 + 3, "{text}");
    assert!(!lowered("cuda", 2, 6).contains("shuffle"));
    assert!(!lowered("webgpu", 1, 32).contains("shuffle"));
}

#[test]
fn a_call_without_a_reducer_is_refused() {
    let func = sums("cuda", 1, 32);
    struct Drop;
    impl PrimMutator for Drop {}
    impl StmtMutator for Drop {
        fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
            match stmt {
                Stmt::Attr(n) => n.body.clone(),
                _ => self.remake_stmt(stmt),
            }
        }
    }
    let without = func.with_body(Drop.mutate_stmt(&func.body));
    let error = lower_thread_allreduce(&without).unwrap_err();
    assert!(error.to_string().contains("no attribute `reduce_scope`"), "{error}");
}
