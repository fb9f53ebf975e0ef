"""A language model with a cache of keys and values in pages: described, compiled by passes of its own, asked for tokens."""

import dataclasses
import enum

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.relax import register_pipeline
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, TIRPagedKVCache
from tvm.s_tir import dlight
from tvm_ffi import Shape


@dataclasses.dataclass
class Config:
    hidden_size: int = 32
    intermediate_size: int = 48
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    num_hidden_layers: int = 2
    vocab_size: int = 50
    head_dim: int = 8


class RopeMode(enum.IntEnum):
    NONE = 0
    NORMAL = 1
    INLINE = 2


target, dev = tvm.target.Target("llvm"), tvm.cpu(0)


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate_up_proj = nn.Linear(config.hidden_size, 2 * config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor):
        gate, up = op.split(self.gate_up_proj(x), 2, axis=-1)
        return self.down_proj(op.silu(gate) * up)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.head_dim, self.queries, self.keys = config.head_dim, config.num_attention_heads, config.num_key_value_heads
        self.qkv_proj = nn.Linear(config.hidden_size, (self.queries + 2 * self.keys) * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.queries * self.head_dim, config.hidden_size, bias=False)

    def forward(self, x: Tensor, cache: PagedKVCache, layer: int):
        batch, length, _ = x.shape
        qkv = op.reshape(self.qkv_proj(x), (batch, length, self.queries + 2 * self.keys, self.head_dim))
        found = cache.attention_with_fused_qkv(layer, qkv, self.queries, sm_scale=self.head_dim**-0.5)
        return self.o_proj(op.reshape(found, (batch, length, self.queries * self.head_dim)))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attn, self.mlp = Attention(config), FeedForward(config)
        self.before = nn.RMSNorm(config.hidden_size, -1, 1e-5, bias=False)
        self.after = nn.RMSNorm(config.hidden_size, -1, 1e-5, bias=False)

    def forward(self, x: Tensor, cache: PagedKVCache, layer: int):
        x += self.self_attn(self.before(x), cache, layer)
        x += self.mlp(self.after(x))
        return x


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, self.dtype = config, "float32"
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([Layer(config) for _ in range(config.num_hidden_layers)])
        self.norm = nn.RMSNorm(config.hidden_size, -1, 1e-5, bias=False)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def embed(self, input_ids: Tensor):
        return self.embed_tokens(input_ids)

    def hidden(self, x: Tensor, cache: PagedKVCache):
        for layer, block in enumerate(self.layers):
            x = block(x, cache, layer)
        return self.norm(x)

    def prefill(self, input_embed: Tensor, paged_kv_cache: PagedKVCache):
        def last(x: te.Tensor):
            batch, length, width = x.shape
            return te.compute((batch, 1, width), lambda i, _, k: x[i, length - 1, k], name="last")

        x = op.tensor_expr_op(last, name_hint="last", args=[self.hidden(input_embed, paged_kv_cache)])
        return self.lm_head(x), paged_kv_cache

    def decode(self, input_embed: Tensor, paged_kv_cache: PagedKVCache):
        return self.lm_head(self.hidden(input_embed, paged_kv_cache)), paged_kv_cache

    def create_tir_paged_kv_cache(
        self, max_batch_size: tirx.Var, max_total_seq_len: tirx.Var, prefill_chunk_size: tirx.Var, page_size: tirx.Var
    ) -> PagedKVCache:
        return TIRPagedKVCache(
            attn_kind="mha",
            max_batch_size=max_batch_size,
            max_total_seq_len=max_total_seq_len,
            prefill_chunk_size=prefill_chunk_size,
            page_size=page_size,
            support_sliding_window=0,
            layer_partition=relax.ShapeExpr([0, self.config.num_hidden_layers]),
            num_hidden_layers=self.config.num_hidden_layers,
            num_attention_heads=self.config.num_attention_heads,
            num_key_value_heads=self.config.num_key_value_heads,
            qk_head_dim=self.config.head_dim,
            v_head_dim=self.config.head_dim,
            mla_original_qk_head_dim=0,
            mla_original_v_head_dim=0,
            rope_mode=RopeMode.NORMAL,
            rope_scale=1,
            rope_theta=10000,
            rope_scaling={},
            rope_ext_factors=tirx.IntImm("int64", 0),
            rotary_dim=self.config.head_dim,
            dtype=self.dtype,
            target=target,
            enable_disaggregation=False,
        )

    def get_default_spec(self):
        packed, none = {"param_mode": "packed", "effect_mode": "none"}, {"param_mode": "none", "effect_mode": "none"}
        cache = nn.spec.Object(object_type=PagedKVCache)
        width = self.config.hidden_size
        lengths = ("max_batch_size", "max_total_seq_len", "prefill_chunk_size", "page_size")
        functions = {
            "embed": {"input_ids": nn.spec.Tensor(["seq_len"], "int32"), "$": packed},
            "prefill": {"input_embed": nn.spec.Tensor([1, "seq_len", width], self.dtype), "paged_kv_cache": cache, "$": packed},
            "decode": {"input_embed": nn.spec.Tensor([1, 1, width], self.dtype), "paged_kv_cache": cache, "$": packed},
            "create_tir_paged_kv_cache": {**dict.fromkeys(lengths, int), "$": none},
        }
        return nn.spec.ModuleSpec.from_raw(functions, self)


config = Config()
model = Decoder(config)
model.to("float32")
mod, named_params = model.export_tvm(spec=model.get_default_spec())
print(len(mod["prefill"].script()) > 0, len(named_params))


@register_pipeline("opt_llm_on_cpu")
def opt_llm(ext_mods=None):
    """The passes, kernels of products by a rule for the CPU."""

    @tvm.transform.module_pass(opt_level=0)
    def pipeline(mod: tvm.ir.IRModule, _ctx: tvm.transform.PassContext) -> tvm.ir.IRModule:
        return tvm.transform.Sequential(
            [
                relax.transform.FuseTransposeMatmul(),
                relax.transform.LegalizeOps(),
                relax.transform.AnnotateTIROpPattern(),
                relax.transform.FoldConstant(),
                relax.transform.FuseOps(),
                relax.transform.FuseTIR(),
                relax.transform.DeadCodeElimination(),
                dlight.ApplyDefaultSchedule(dlight.cpu.GEMV()),
                relax.transform.RewriteDataflowReshape(),
                relax.transform.ToNonDataflow(),
                relax.transform.RemovePurityChecking(),
                relax.transform.CallTIRRewrite(),
                relax.transform.StaticPlanBlockMemory(),
                relax.transform.RewriteCUDAGraph(),
                relax.transform.LowerAllocTensor(),
                relax.transform.KillAfterLastUse(),
                relax.transform.LowerRuntimeBuiltin(),
                relax.transform.VMShapeLower(),
                relax.transform.AttachGlobalSymbol(),
                relax.transform.AttachExternModules(ext_mods or []),
            ]
        )(mod)

    return pipeline


with target:
    ex = tvm.compile(mod, target, relax_pipeline=relax.get_pipeline("opt_llm_on_cpu"))
    vm = relax.VirtualMachine(ex, dev)

draw = np.random.default_rng(1)
params = [tvm.runtime.tensor(draw.standard_normal(param.shape).astype("float32") / 4, device=dev) for _, param in named_params]
kv_cache = vm["create_tir_paged_kv_cache"](Shape([1]), Shape([64]), Shape([64]), Shape([16]))
reshape = tvm.get_global_func("vm.builtin.reshape")
add_sequence = tvm.get_global_func("vm.builtin.kv_state_add_sequence")
begin_forward = tvm.get_global_func("vm.builtin.kv_state_begin_forward")
end_forward = tvm.get_global_func("vm.builtin.kv_state_end_forward")
add_sequence(kv_cache, 0)


def step(name, tokens, cache):
    """The likeliest token behind some, and the cache with them in it."""
    embedded = vm["embed"](tvm.runtime.tensor(np.array(tokens, "int32"), device=dev), params)
    embedded = reshape(embedded, Shape([1, embedded.shape[0], embedded.shape[1]]))
    begin_forward(cache, Shape([0]), Shape([len(tokens)]))
    logits, cache = vm[name](embedded, cache, params)
    end_forward(cache)
    return int(np.argmax(logits.numpy())), cache


token, kv_cache = step("prefill", [3, 14, 15, 9, 26], kv_cache)
answer = [token]
for _ in range(8):
    token, kv_cache = step("decode", [token], kv_cache)
    answer.append(token)
print(answer)
