//! Schedules do what TVM's do: the same steps on the same kernels give the same kernels, which compute the same.
//!
//! `schedules/record.py` writes `schedules/recorded.json`: kernels, steps, and what TVM 0.27 makes of them.

use std::collections::HashMap;

use relaxide_ffi::{DataType, FreeVars, Ref, Tensor, structural_equal};
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, floordiv, floormod};
use relaxide_tir::s_tir::{LoopRV, SBlockRV, Schedule, UnitLoops};
use relaxide_tir::{IndexMap, PrimFunc, interp};
use serde_json::Value;

/// A kernel from its text.
fn parse(text: &str) -> Result<PrimFunc, String> {
    let module = relaxide_script::parse_module(text, "recorded.json").map_err(|e| e.to_string())?;
    let func = module.get_as::<PrimFunc>("main").ok_or("no function main")?;
    Ok(PrimFunc::clone(&func))
}

/// A map of indices of `record.py`.
fn index_map(name: &str) -> Option<Ref<IndexMap>> {
    type Map = fn(&[PrimExpr]) -> Vec<PrimExpr>;
    let (rank, map): (usize, Map) = match name {
        "swap" => (2, |i| vec![i[1].clone(), i[0].clone()]),
        "tiles" => (2, |i| vec![floordiv(&i[0], 4), floordiv(&i[1], 8), floormod(&i[0], 4), floormod(&i[1], 8)]),
        "rows" => (2, |i| vec![floordiv(&i[0], 8), i[1].clone(), floormod(&i[0], 8)]),
        "flat" => (2, |i| vec![&i[0] * 24 + &i[1]]),
        "split_3" => (3, |i| vec![floordiv(&i[0], 8), i[1].clone(), floormod(&i[0], 8), i[2].clone()]),
        "turn_3" => (3, |i| vec![i[1].clone(), i[0].clone(), i[2].clone()]),
        "split_reduction" => (2, |i| vec![i[0].clone(), floordiv(&i[1], 8), floormod(&i[1], 8)]),
        _ => return None,
    };
    let vars: Vec<Ref<Var>> = (0..rank).map(|d| Var::dim(format!("i{d}"))).collect();
    let exprs: Vec<PrimExpr> = vars.iter().map(PrimExpr::from).collect();
    Some(Ref::new(IndexMap { initial_indices: vars, final_indices: map(&exprs), inverse_index_map: None }))
}

/// A schedule, and what its steps have named.
struct Run {
    sch: Schedule,
    blocks: HashMap<String, Ref<SBlockRV>>,
    loops: HashMap<String, Ref<LoopRV>>,
}

impl Run {
    fn block(&self, v: &Value) -> Result<Ref<SBlockRV>, String> {
        let name = v.as_str().and_then(|s| s.strip_prefix('$')).unwrap_or_default();
        self.blocks.get(name).cloned().ok_or_else(|| format!("no block {v}"))
    }

    fn loop_(&self, v: &Value) -> Result<Ref<LoopRV>, String> {
        let name = v.as_str().and_then(|s| s.strip_prefix('$')).unwrap_or_default();
        self.loops.get(name).cloned().ok_or_else(|| format!("no loop {v}"))
    }

    fn step(&mut self, names: &[Value], method: &str, given: &[Value]) -> Result<(), String> {
        let nothing = Value::Null;
        let at = |i: usize| given.get(i).unwrap_or(&nothing);
        let int = |i: usize| at(i).as_i64().ok_or_else(|| format!("{method}: no integer at {i}"));
        let text = |i: usize| at(i).as_str().ok_or_else(|| format!("{method}: no text at {i}"));
        let map = |i: usize| text(i).and_then(|name| index_map(name).ok_or_else(|| format!("no map {name}")));
        let (mut blocks, mut loops) = (Vec::new(), Vec::new());
        let refused = |e: relaxide_tir::s_tir::StepError| e.to_string();
        match method {
            "get_sblock" => blocks.push(self.sch.get_sblock(text(0)?, None).map_err(refused)?),
            "get_loops" => loops = self.sch.get_loops(&self.block(at(0))?).map_err(refused)?,
            "split" => {
                let factors: Vec<Option<PrimExpr>> =
                    at(1).as_array().into_iter().flatten().map(|f| f.as_i64().map(PrimExpr::from)).collect();
                loops = self.sch.split(&self.loop_(at(0))?, &factors).map_err(refused)?;
            }
            "reorder" => {
                let order = given.iter().map(|v| self.loop_(v)).collect::<Result<Vec<_>, _>>()?;
                self.sch.reorder(&order).map_err(refused)?;
            }
            "decompose_reduction" => {
                let (block, loop_) = (self.block(at(0))?, self.loop_(at(1))?);
                blocks.push(self.sch.decompose_reduction(&block, &loop_).map_err(refused)?);
            }
            "compute_at" => {
                let (block, loop_) = (self.block(at(0))?, self.loop_(at(1))?);
                self.sch.compute_at(&block, &loop_, UnitLoops::Dropped, -1).map_err(refused)?;
            }
            "reverse_compute_at" => {
                let (block, loop_) = (self.block(at(0))?, self.loop_(at(1))?);
                self.sch.reverse_compute_at(&block, &loop_, UnitLoops::Dropped, -1).map_err(refused)?;
            }
            "cache_read" => {
                blocks.push(self.sch.cache_read(&self.block(at(0))?, int(1)?, text(2)?, &[]).map_err(refused)?);
            }
            "cache_write" => {
                blocks.push(self.sch.cache_write(&self.block(at(0))?, int(1)?, text(2)?, &[]).map_err(refused)?);
            }
            "reindex" => blocks.push(self.sch.reindex(&self.block(at(0))?, text(1)?, int(2)?).map_err(refused)?),
            "rfactor" => blocks.push(self.sch.rfactor(&self.loop_(at(0))?, int(1)?).map_err(refused)?),
            "blockize" => blocks.push(self.sch.blockize(&self.loop_(at(0))?).map_err(refused)?),
            "transform_layout" => {
                let block = self.block(at(0))?;
                self.sch.transform_layout(&block, text(1)?, int(2)?, &map(3)?, false).map_err(refused)?;
            }
            "transform_block_layout" => {
                self.sch.transform_block_layout(&self.block(at(0))?, &map(1)?).map_err(refused)?;
            }
            "pad_einsum" => {
                let padding: Vec<i64> = at(1).as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
                self.sch.pad_einsum(&self.block(at(0))?, &padding).map_err(refused)?;
            }
            "set_scope" => self.sch.set_scope(&self.block(at(0))?, int(1)?, text(2)?).map_err(refused)?,
            "storage_align" => {
                let block = self.block(at(0))?;
                self.sch.storage_align(&block, int(1)?, int(2)?, int(3)?, int(4)?).map_err(refused)?;
            }
            "unsafe_set_dtype" => {
                self.sch.unsafe_set_dtype(&self.block(at(0))?, int(1)?, text(2)?).map_err(refused)?;
            }
            other => return Err(format!("no method {other}")),
        }
        let names: Vec<String> = names.iter().filter_map(Value::as_str).map(String::from).collect();
        self.blocks.extend(names.iter().cloned().zip(blocks));
        self.loops.extend(names.into_iter().zip(loops));
        Ok(())
    }
}

/// Small multiples of one eighth, exact in any order of sums.
fn tensor(shape: &[i64], dtype: DataType, seed: usize) -> Tensor {
    let count = shape.iter().product::<i64>() as usize;
    let number = |i: usize| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 97) >> 7) % 17;
    if dtype.is_float() {
        let values: Vec<f32> = (0..count).map(|i| number(i) as f32 / 8.0 - 1.0).collect();
        Tensor::from_slice(&values, shape).unwrap()
    } else {
        let values: Vec<i64> = (0..count).map(|i| number(i) as i64).collect();
        Tensor::from_slice(&values, shape).unwrap()
    }
}

/// Everything that a kernel leaves in its tensors.
fn results(func: &PrimFunc) -> Result<Vec<Vec<u8>>, String> {
    let buffers = func.buffers.iter().flatten().enumerate();
    let tensors: Vec<Tensor> = buffers
        .map(|(i, b)| tensor(&b.shape.iter().filter_map(PrimExpr::as_int).collect::<Vec<_>>(), b.dtype, i))
        .collect();
    let args: Vec<interp::Arg> = tensors.iter().cloned().map(interp::Arg::Tensor).collect();
    interp::run(func, &args).map_err(|e| e.to_string())?;
    let bytes = |t: &Tensor| match t.dtype().is_float() {
        true => t.to_vec::<f32>().unwrap().iter().flat_map(|v| v.to_ne_bytes()).collect(),
        false => t.to_vec::<i64>().unwrap().iter().flat_map(|v| v.to_ne_bytes()).collect(),
    };
    Ok(tensors.iter().map(bytes).collect())
}

fn case(source: &str, steps: &[Value], expected: &str) -> Result<(), String> {
    let before = parse(source)?;
    let mut run = Run { sch: Schedule::of_func(before.clone()), blocks: HashMap::new(), loops: HashMap::new() };
    for step in steps {
        let parts = step.as_array().ok_or("a step is a list")?;
        let [Value::Array(names), Value::String(method), Value::Array(given)] = parts.as_slice() else {
            return Err("a step is names, a method and operands".into());
        };
        run.step(names, method, given)?;
    }
    let found = run.sch.func("main").map_err(|e| e.to_string())?;
    let expected = Ref::new(parse(expected)?);
    if let Err(mismatch) = structural_equal(&found, &expected, FreeVars::Same) {
        return Err(format!("{mismatch}\nhere:\n{found}\nTVM:\n{expected}"));
    }
    let shapes = |f: &PrimFunc| f.buffers.iter().flatten().map(|b| format!("{:?}", b.shape)).collect::<Vec<_>>();
    let exact = !steps.iter().any(|s| s.to_string().contains("float16"));
    if exact && shapes(&before) == shapes(&found) && results(&before)? != results(&found)? {
        return Err(format!("other results:\n{found}"));
    }
    Ok(())
}

#[test]
fn steps_make_of_kernels_what_tvm_makes_of_them() {
    let recorded: Value = serde_json::from_str(include_str!("schedules/recorded.json")).unwrap();
    let cases = recorded["cases"].as_array().unwrap();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let mut failed = Vec::new();
    for one in cases {
        let program = one["program"].as_str().unwrap();
        let (source, steps) = (recorded["programs"][program].as_str().unwrap(), one["steps"].as_array().unwrap());
        if let Err(error) = case(source, steps, one["after"].as_str().unwrap()) {
            failed.push(format!("== {program}: {}\n{error}", steps.last().unwrap()));
        }
    }
    assert!(failed.is_empty(), "{} of {} differ\n{}", failed.len(), cases.len(), failed.join("\n"));
}
