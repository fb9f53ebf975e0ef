//! Instructions of devices, and functions of their libraries: what `T.cuda`, `T.nvshmem`, `T.nki`, `T.metal`, `T.ptx_legacy` and
//! `T.s_tir` hold.
//!
//! They are read, printed and built as calls with their types, as passes of a program's own match them. No code is made of them here:
//! kernels for devices say what they compute ([`relaxide_tir::schedule`]).
//!
//! One table serves the reader, the printer and Python, which makes a function of each row.

use relaxide_ffi::DataType;
use relaxide_ir::PrimExpr;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct DeviceIntrinsic {
    /// The name behind `T.`.
    pub path: &'static str,
    /// The operator, if it is not the name behind `tirx.`.
    op: &'static str,
    /// The type of the call: nothing, a type, that of an argument (`=value`), or a first argument (`dtype`).
    pub result: &'static str,
    /// The arguments, with what stands for those that are left out; the last may take all that follow (`*args`).
    pub params: &'static str,
}

const fn row(path: &'static str, op: &'static str, result: &'static str, params: &'static str) -> DeviceIntrinsic {
    DeviceIntrinsic { path, op, result, params }
}

/// All of them.
#[rustfmt::skip]
pub static DEVICE_INTRINSICS: &[DeviceIntrinsic] = &[
    row("cuda.__activemask", "", "uint32", ""),
    row("cuda.__shfl_down_sync", "", "=var", "mask var delta width"),
    row("cuda.__shfl_sync", "", "=var", "mask var lane width"),
    row("cuda.__shfl_up_sync", "", "=var", "mask var delta width"),
    row("cuda.__shfl_xor_sync", "", "=var", "mask var lane_mask width"),
    row("cuda.any_sync", "", "int32", "mask pred"),
    row("cuda.atomic_add", "", "=value", "res_addr value"),
    row("cuda.atomic_cas", "", "=old_val", "ptr old_val new_val"),
    row("cuda.ballot_sync", "", "uint32", "mask pred"),
    row("cuda.bfloat1622float2", "", "uint64", "packed"),
    row("cuda.bfloat162float", "", "float32", "src"),
    row("cuda.clock64", "", "uint64", ""),
    row("cuda.cluster_sync", "", "", ""),
    row("cuda.cta_reduce", "", "=value", "value op num_warps scratch"),
    row("cuda.cta_sync", "", "", ""),
    row("cuda.cvta_generic_to_shared", "", "uint32", "ptr"),
    row("cuda.elect_sync", "", "uint32", ""),
    row("cuda.fadd2_rn", "", "uint64", "a b"),
    row("cuda.fdividef", "", "float32", "x y"),
    row("cuda.ffs_u32", "", "int32", "value"),
    row("cuda.float22bfloat162_rn", "", "uint32", "v0 v1"),
    row("cuda.float22bfloat162_rn_from_float2", "", "uint32", "packed"),
    row("cuda.float22half2", "", "", "dst src"),
    row("cuda.float2_x", "", "float32", "packed"),
    row("cuda.float2_y", "", "float32", "packed"),
    row("cuda.float8tohalf8", "", "", "src_addr dst_addr"),
    row("cuda.float_as_uint", "", "uint32", "x"),
    row("cuda.fmul2_rn", "", "uint64", "a b"),
    row("cuda.fp8x4_e4m3_from_float4", "", "uint32", "x y z w"),
    row("cuda.get_tmem_addr", "", "uint32", "addr row_offset col_offset"),
    row("cuda.grid_sync", "", "", ""),
    row("cuda.half2float", "", "float32", "src"),
    row("cuda.half8tofloat8", "", "", "src_addr dst_addr"),
    row("cuda.hmax2", "", "uint32", "a b"),
    row("cuda.hmin2", "", "uint32", "a b"),
    row("cuda.make_float2", "", "uint64", "x y"),
    row("cuda.mbarrier_wait", "", "", "bar phase"),
    row("cuda.mbarrier_wait_acquire_cluster", "", "", "bar phase"),
    row("cuda.mma_fill", "tirx.mma_fill", "dtype", "local_size local_ptr offset"),
    row("cuda.mma_fill_legacy", "tirx.mma_fill_legacy", "dtype", "local_size local_ptr offset"),
    row("cuda.mma_store", "tirx.mma_store", "dtype", "m n dst_ptr src_ptr src_offset dst_stride"),
    row("cuda.mma_store_legacy", "tirx.mma_store_legacy", "dtype", "m n dst_ptr src_ptr src_offset dst_stride"),
    row("cuda.mov_sreg", "", "int32", "bits reg"),
    row("cuda.nano_sleep", "", "", "time"),
    row("cuda.printf", "", "", "fmt *args"),
    row("cuda.reduce_add_sync_u32", "", "uint32", "mask value"),
    row("cuda.reduce_min_sync_u32", "", "uint32", "mask value"),
    row("cuda.runtime_instr_desc", "", "", "desc sf_id"),
    row("cuda.smem_addr_from_uint64", "", "uint32", "cluster_addr"),
    row("cuda.syncthreads_and", "", "int64", "cond"),
    row("cuda.syncthreads_or", "", "int64", "cond"),
    row("cuda.tcgen05.encode_instr_descriptor", "tirx.cuda.tcgen05_encode_instr_descriptor", "", "desc d_dtype a_dtype b_dtype M N K trans_a trans_b n_cta_groups=1 neg_a=False neg_b=False sat_d=False is_sparse=False"),
    row("cuda.tcgen05.encode_instr_descriptor_block_scaled", "tirx.cuda.tcgen05_encode_instr_descriptor_block_scaled", "", "desc d_dtype a_dtype b_dtype sfa_dtype sfb_dtype sfa_tmem_addr sfb_tmem_addr M N K trans_a trans_b n_cta_groups=1 neg_a=False neg_b=False is_sparse=False"),
    row("cuda.tcgen05.encode_matrix_descriptor", "tirx.cuda.tcgen05_encode_matrix_descriptor", "", "desc addr ldo sdo swizzle"),
    row("cuda.thread_fence", "", "", ""),
    row("cuda.thread_rank", "", "int32", ""),
    row("cuda.timer_end", "tirx.timer_end_cuda", "", "event_type profiler_buffer profiler_tag profiler_write_offset profiler_write_stride leader_cond"),
    row("cuda.timer_finalize", "tirx.timer_finalize_cuda", "", "profiler_buffer profiler_tag profiler_write_offset profiler_write_stride leader_cond"),
    row("cuda.timer_init", "tirx.timer_init_cuda", "", "profiler_buffer profiler_tag profiler_write_offset num_groups group_id"),
    row("cuda.timer_start", "tirx.timer_start_cuda", "", "event_type profiler_buffer profiler_tag profiler_write_offset profiler_write_stride leader_cond"),
    row("cuda.trap_when_assert_failed", "", "", "cond"),
    row("cuda.uint_as_float", "", "float32", "bits"),
    row("cuda.warp_reduce", "", "=value", "value op width=32"),
    row("cuda.warp_sync", "", "", ""),
    row("cuda.warpgroup_sync", "", "", "bar_no"),
    row("cuda.wgmma.encode_matrix_descriptor", "tirx.cuda.wgmma_encode_matrix_descriptor", "", "desc addr ldo sdo swizzle"),
    row("cuda.wgmma.noop_barrier", "tirx.cuda.wgmma_noop_barrier", "", "reg"),
    row("metal.make_filled_simdgroup_matrix", "tirx.make_filled_simdgroup_matrix", "", "d index value col=8 row=8"),
    row("metal.simdgroup_load", "tirx.simdgroup_load", "", "d index ptr stride col=8 row=8 transpose_matrix=False"),
    row("metal.simdgroup_multiply_accumulate", "tirx.simdgroup_multiply_accumulate", "", "d index_d a index_a b index_b c index_c"),
    row("metal.simdgroup_store", "tirx.simdgroup_store", "", "d index ptr stride col=8 row=8 transpose_matrix=False"),
    row("nki.activation", "", "", "result data opcode bias=0.0 scale=1.0"),
    row("nki.activation_reduce", "", "", "reduce_res act_res data opcode reduce_opcode bias=0.0 scale=1.0"),
    row("nki.affine_select", "", "", "result pred true_value false_value"),
    row("nki.identity", "", "", "result size"),
    row("nki.load", "", "", "res data"),
    row("nki.matmul", "", "", "res lhs rhs accum=True"),
    row("nki.memset", "", "", "result value"),
    row("nki.reciprocal", "", "", "result data"),
    row("nki.scalar_tensor_scalar", "", "", "result data operand0 operand1 opcode0 opcode1 reverse0=False reverse1=False"),
    row("nki.scalar_tensor_tensor", "", "", "result data operand0 operand1 opcode0 opcode1 reverse0=False reverse1=False"),
    row("nki.store", "", "", "res data"),
    row("nki.tensor_copy", "", "", "res data"),
    row("nki.tensorreduce", "", "", "result data opcode negate *axes"),
    row("nki.tensorscalar", "", "", "result operand0 operand1 opcode reverse=False"),
    row("nki.tensorscalar_reduce", "", "", "reduce_res tensorscalar_res operand0 operand1 opcode reduce_opcode reverse=False"),
    row("nki.tensortensor", "", "", "result operand0 operand1 opcode"),
    row("nvshmem.barrier_all", "", "", ""),
    row("nvshmem.fence", "", "", ""),
    row("nvshmem.getmem_nbi", "", "", "dst src nelems pe"),
    row("nvshmem.getmem_nbi.block", "tirx.nvshmem.getmem_nbi_block", "", "dst src nelems pe"),
    row("nvshmem.getmem_nbi.warp", "tirx.nvshmem.getmem_nbi_warp", "", "dst src nelems pe"),
    row("nvshmem.my_pe", "", "int32", ""),
    row("nvshmem.n_pes", "", "int32", ""),
    row("nvshmem.putmem_nbi", "", "", "dst src nelems pe"),
    row("nvshmem.putmem_nbi.block", "tirx.nvshmem.putmem_nbi_block", "", "dst src nelems pe"),
    row("nvshmem.putmem_nbi.warp", "tirx.nvshmem.putmem_nbi_warp", "", "dst src nelems pe"),
    row("nvshmem.putmem_signal_nbi", "", "", "dst src nelems sig_addr signal sig_op pe"),
    row("nvshmem.putmem_signal_nbi.block", "tirx.nvshmem.putmem_signal_nbi_block", "", "dst src nelems sig_addr signal sig_op pe"),
    row("nvshmem.putmem_signal_nbi.warp", "tirx.nvshmem.putmem_signal_nbi_warp", "", "dst src nelems sig_addr signal sig_op pe"),
    row("nvshmem.quiet", "", "", ""),
    row("nvshmem.signal_op", "", "", "sig_addr signal sig_op pe"),
    row("nvshmem.wait_until", "", "", "ivar cmp cmp_value type=uint64_t"),
    row("ptx_legacy.ldmatrix", "", "dtype", "*args"),
    row("ptx_legacy.mma", "", "", "*args"),
    row("s_tir.cp_async_raw", "", "dtype", "dst dst_offset src src_offset cp_size"),
    row("s_tir.ldg32", "", "=reg", "reg guard addr local_addr"),
];

impl DeviceIntrinsic {
    /// The one of a name behind `T.`.
    pub fn of_path(path: &str) -> Option<&'static DeviceIntrinsic> {
        DEVICE_INTRINSICS.iter().find(|known| known.path == path)
    }

    /// The one that is printed for a call.
    pub fn of_op(op: &str) -> Option<&'static DeviceIntrinsic> {
        DEVICE_INTRINSICS.iter().find(|known| known.has_op(op))
    }

    fn has_op(&self, op: &str) -> bool {
        if self.op.is_empty() { op.strip_prefix("tirx.") == Some(self.path) } else { self.op == op }
    }

    /// The operator.
    pub fn op(&self) -> String {
        if self.op.is_empty() { format!("tirx.{}", self.path) } else { self.op.to_string() }
    }

    /// Whether the type of a call is its first argument.
    pub fn is_typed_by_text(&self) -> bool {
        self.result == "dtype"
    }

    /// The type of a call whose arguments are these; nothing where it is written.
    pub fn result_type(&self, args: &[PrimExpr]) -> Option<DataType> {
        match self.result {
            "" => Some(DataType::void()),
            "dtype" => None,
            name => match name.strip_prefix('=') {
                Some(name) => {
                    let place = self.params.split(' ').position(|param| param == name)?;
                    args.get(place).map(PrimExpr::dtype)
                }
                None => name.parse().ok(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_an_operator_and_a_type_of_its_own() {
        for known in DEVICE_INTRINSICS {
            assert!(DeviceIntrinsic::of_path(known.path).is_some_and(|found| found.path == known.path));
            assert_eq!(DeviceIntrinsic::of_op(&known.op()).map(|found| found.path), Some(known.path));
            let count = known.params.split(' ').count();
            let args = vec![PrimExpr::from(1); count];
            assert_eq!(known.result_type(&args).is_none(), known.is_typed_by_text(), "{}", known.path);
            let variable = known.params.split(' ').position(|param| param.starts_with('*'));
            assert!(variable.is_none_or(|place| place + 1 == count), "{}", known.path);
        }
    }
}
