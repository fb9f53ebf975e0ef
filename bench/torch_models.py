"""Networks of torchvision and transformers with random weights: what is imported, and whether it agrees with PyTorch.

usage: python bench/torch_models.py [--batch N] [name…]    (names may be parts; needs torch, torchvision, transformers)

Networks are exported with an open batch where PyTorch exports them so, imported, compiled, and called with another batch than they
were exported with. Each is a process of its own, so that none fails for another's sake.
"""

import argparse
import subprocess
import sys
import time
import warnings

SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=99)
VIT = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8)
DECODER = dict(SIZES, num_key_value_heads=2, max_position_embeddings=64, head_dim=8, pad_token_id=0, use_cache=False)


def ids(torch, *shape):
    return torch.randint(3, 90, shape)


def text(torch):
    return {"input_ids": ids(torch, 2, 12)}


def masked(torch):
    return {"input_ids": ids(torch, 2, 12), "attention_mask": torch.ones(2, 12, dtype=torch.int64)}


def pair(torch):
    return {"input_ids": ids(torch, 2, 12), "decoder_input_ids": ids(torch, 2, 5)}


def image(size, channels=3):
    return lambda torch: {"pixel_values": torch.randn(2, channels, size, size)}


def sound(torch):
    return {"input_values": torch.randn(2, 2000)}


# Class, configuration with its sizes, inputs.
FAMILIES = {
    "bert": ("BertModel", "BertConfig", SIZES, masked),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", dict(n_embd=32, n_layer=2, n_head=4, vocab_size=99, use_cache=False), text),
    "t5": ("T5ForConditionalGeneration", "T5Config", dict(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=99, use_cache=False), pair),
    "llama": ("LlamaForCausalLM", "LlamaConfig", DECODER, text),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", DECODER, text),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", DECODER, text),
    "mamba": ("MambaForCausalLM", "MambaConfig", dict(hidden_size=32, state_size=8, num_hidden_layers=2, vocab_size=99, use_cache=False), text),
    "vit": ("ViTModel", "ViTConfig", VIT, image(32)),
    "clip": ("CLIPVisionModel", "CLIPVisionConfig", VIT, image(32)),
    "clip_text": ("CLIPTextModel", "CLIPTextConfig", SIZES, text),
    "whisper": ("WhisperModel", "WhisperConfig", dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=16, max_source_positions=50, vocab_size=99, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, use_cache=False), lambda torch: {"input_features": torch.randn(2, 16, 100), "decoder_input_ids": ids(torch, 2, 5)}),
    "deberta": ("DebertaModel", "DebertaConfig", dict(SIZES, relative_attention=True, pos_att_type=["p2c", "c2p"]), masked),
    "deberta_v2": ("DebertaV2Model", "DebertaV2Config", dict(SIZES, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8), masked),
    "electra": ("ElectraModel", "ElectraConfig", dict(SIZES, embedding_size=16), masked),
    "albert": ("AlbertModel", "AlbertConfig", dict(SIZES, embedding_size=16), masked),
    "roberta": ("RobertaModel", "RobertaConfig", SIZES, masked),
    "xlm_roberta": ("XLMRobertaForSequenceClassification", "XLMRobertaConfig", SIZES, masked),
    "distilbert": ("DistilBertModel", "DistilBertConfig", dict(dim=32, n_layers=2, n_heads=4, hidden_dim=64, vocab_size=99), masked),
    "mobilebert": ("MobileBertModel", "MobileBertConfig", dict(SIZES, embedding_size=16, true_hidden_size=32, intra_bottleneck_size=32), masked),
    "squeezebert": ("SqueezeBertModel", "SqueezeBertConfig", dict(SIZES, embedding_size=32), masked),
    "mpnet": ("MPNetModel", "MPNetConfig", SIZES, masked),
    "fnet": ("FNetModel", "FNetConfig", SIZES, text),
    "funnel": ("FunnelModel", "FunnelConfig", dict(d_model=32, n_head=4, d_head=8, d_inner=64, block_sizes=[1, 1], vocab_size=99), masked),
    "longformer": ("LongformerModel", "LongformerConfig", dict(SIZES, attention_window=4), masked),
    "bart": ("BartModel", "BartConfig", dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=99, use_cache=False), pair),
    "pegasus": ("PegasusModel", "PegasusConfig", dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=99, use_cache=False), pair),
    "opt": ("OPTForCausalLM", "OPTConfig", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, vocab_size=99, word_embed_proj_dim=32, use_cache=False), masked),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", dict(SIZES, use_cache=False), text),
    "gpt_neo": ("GPTNeoForCausalLM", "GPTNeoConfig", dict(hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], vocab_size=99, use_cache=False), text),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", dict(n_embd=32, n_layer=2, n_head=4, rotary_dim=4, vocab_size=99, use_cache=False), text),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(hidden_size=32, n_layer=2, n_head=4, vocab_size=99, use_cache=False), text),
    "falcon": ("FalconForCausalLM", "FalconConfig", dict(SIZES, use_cache=False), text),
    "phi": ("PhiForCausalLM", "PhiConfig", dict(SIZES, use_cache=False, pad_token_id=0), text),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", DECODER, text),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", DECODER, text),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", DECODER, text),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", DECODER, text),
    "mistral": ("MistralForCausalLM", "MistralConfig", DECODER, text),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", dict(DECODER, num_local_experts=4), text),
    "olmo": ("OlmoForCausalLM", "OlmoConfig", DECODER, text),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", DECODER, text),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", DECODER, text),
    "cohere": ("CohereForCausalLM", "CohereConfig", DECODER, text),
    "granite": ("GraniteForCausalLM", "GraniteConfig", DECODER, text),
    "deit": ("DeiTModel", "DeiTConfig", VIT, image(32)),
    "beit": ("BeitModel", "BeitConfig", dict(VIT, use_relative_position_bias=True), image(32)),
    "swin": ("SwinModel", "SwinConfig", dict(image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4), image(32)),
    "swinv2": ("Swinv2Model", "Swinv2Config", dict(image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4), image(32)),
    "convnext": ("ConvNextModel", "ConvNextConfig", dict(hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1]), image(64)),
    "convnextv2": ("ConvNextV2Model", "ConvNextV2Config", dict(hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1]), image(64)),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", dict(hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16), image(64)),
    "dinov2": ("Dinov2Model", "Dinov2Config", dict(VIT, mlp_ratio=2), image(32)),
    "mobilevit": ("MobileViTModel", "MobileViTConfig", dict(image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 64], num_attention_heads=4), image(64)),
    "resnet": ("ResNetModel", "ResNetConfig", dict(embedding_size=8, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1]), image(64)),
    "regnet": ("RegNetModel", "RegNetConfig", dict(embedding_size=8, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], groups_width=4), image(64)),
    "efficientnet": ("EfficientNetModel", "EfficientNetConfig", dict(image_size=64, width_coefficient=0.25, depth_coefficient=0.3, hidden_dim=64), image(64)),
    "poolformer": ("PoolFormerModel", "PoolFormerConfig", dict(hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1]), image(64)),
    "levit": ("LevitModel", "LevitConfig", dict(image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 3, 4], depths=[1, 1, 1], key_dim=[8, 8, 8]), image(64)),
    "pvt": ("PvtModel", "PvtConfig", dict(image_size=64, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4]), image(64)),
    "dpt": ("DPTForDepthEstimation", "DPTConfig", dict(VIT, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16), image(32)),
    "yolos": ("YolosForObjectDetection", "YolosConfig", dict(VIT, image_size=[32, 32], num_detection_tokens=5), image(32)),
    "detr": ("DetrForObjectDetection", "DetrConfig", dict(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config={"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "out_features": ["stage4"]}, d_model=32, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=64, decoder_ffn_dim=64, encoder_attention_heads=4, decoder_attention_heads=4, num_queries=6), image(64)),
    "sam": ("SamVisionModel", "SamVisionConfig", dict(VIT, window_size=2, global_attn_indexes=[1], output_channels=16), image(32)),
    "siglip": ("SiglipVisionModel", "SiglipVisionConfig", VIT, image(32)),
    "vitmae": ("ViTMAEModel", "ViTMAEConfig", dict(VIT, mask_ratio=0.0), image(32)),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", dict(SIZES, conv_dim=[16, 16, 16], conv_stride=[5, 2, 2], conv_kernel=[10, 3, 3], num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2), sound),
    "hubert": ("HubertModel", "HubertConfig", dict(SIZES, conv_dim=[16, 16, 16], conv_stride=[5, 2, 2], conv_kernel=[10, 3, 3], num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2), sound),
    "wavlm": ("WavLMModel", "WavLMConfig", dict(SIZES, conv_dim=[16, 16, 16], conv_stride=[5, 2, 2], conv_kernel=[10, 3, 3], num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2), sound),
    "clap": ("ClapTextModel", "ClapTextConfig", SIZES, masked),
    "ast": ("ASTModel", "ASTConfig", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, patch_size=8, frequency_stride=8, time_stride=8, max_length=32, num_mel_bins=16), lambda torch: {"input_values": torch.randn(2, 32, 16)}),
    "speecht5": ("Speech2TextModel", "Speech2TextConfig", dict(d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, input_feat_per_channel=16, vocab_size=99, conv_channels=16, use_cache=False), lambda torch: {"input_features": torch.randn(2, 40, 16), "decoder_input_ids": ids(torch, 2, 5)}),
    "encodec": ("EncodecModel", "EncodecConfig", dict(num_filters=4, hidden_size=16, codebook_size=32, codebook_dim=16, upsampling_ratios=[4, 2], target_bandwidths=[1.5], num_lstm_layers=1), lambda torch: {"input_values": torch.randn(2, 1, 320)}),
    "patchtst": ("PatchTSTModel", "PatchTSTConfig", dict(num_input_channels=2, context_length=32, patch_length=8, patch_stride=8, d_model=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=32), lambda torch: {"past_values": torch.randn(2, 32, 2)}),
}

VISION = """alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5 mobilenet_v2
mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x0_5 squeezenet1_1 swin_t swin_v2_t
vgg11_bn vit_b_16 wide_resnet50_2 deeplabv3_mobilenet_v3_large deeplabv3_resnet50 fcn_resnet50 lraspp_mobilenet_v3_large
fasterrcnn_mobilenet_v3_large_320_fpn fasterrcnn_resnet50_fpn fcos_resnet50_fpn keypointrcnn_resnet50_fpn maskrcnn_resnet50_fpn
retinanet_resnet50_fpn ssd300_vgg16 ssdlite320_mobilenet_v3_large r3d_18 mc3_18 r2plus1d_18 s3d mvit_v1_b swin3d_t raft_small""".split()

DETECTION = ("rcnn", "fcos", "retinanet", "ssd")


def vision(torch, name):
    import torchvision

    options = {"weights": None}
    if any(part in name for part in (*DETECTION, "deeplab", "fcn", "lraspp")):
        options["weights_backbone"] = None
    if name in ("googlenet", "inception_v3"):
        options["init_weights"] = False
    model = torchvision.models.get_model(name, **options)
    if any(part in name for part in DETECTION):
        size = 320 if "ssdlite" in name else 300 if "ssd" in name else 96
        if size == 96:
            model.transform.min_size, model.transform.max_size = (96,), 96
        return model, [([torch.rand(3, size, size)],)], False
    size = {"inception_v3": 96, "vit_b_16": 224, "maxvit_t": 224, "swin_v2_t": 64, "swin_t": 64}.get(name, 64)
    if name == "raft_small":
        made = lambda n: (torch.rand(n, 3, 128, 128) * 2 - 1, torch.rand(n, 3, 128, 128) * 2 - 1)
    elif "3d" in name or name in ("mc3_18", "r2plus1d_18", "mvit_v1_b", "s3d"):
        frames, side = (16, 224) if name == "mvit_v1_b" else (16, 64)
        made = lambda n: (torch.rand(n, 3, frames, side, side),)
    else:
        made = lambda n: (torch.rand(n, 3, size, size),)
    return model, [made(2), made(3)], True


def family(torch, name):
    import transformers

    cls, config, sizes, inputs = FAMILIES[name]
    model = getattr(transformers, cls)(getattr(transformers, config)(**sizes))
    given = inputs(torch)

    class Called(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *values):
            return self.model(**dict(zip(given, values)), return_dict=True).to_tuple()

    two = tuple(given.values())
    return Called(), [two, tuple(torch.cat([value, value[:1]]) for value in two)], True


def flat(value):
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in flat(part)]
    return [] if value is None else [value]


def one(name):
    """The outcome in a line."""
    import numpy as np
    import torch

    import relaxide as tvm
    from relaxide import relax
    from relaxide.relax.frontend.torch import from_exported_program

    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, calls, batched = family(torch, name) if name in FAMILIES else vision(torch, name)
    model = model.eval()
    note, dynamic = "open batch", None
    if batched:
        batch = torch.export.Dim("batch", min=1, max=64)
        dynamic = tuple({0: batch} for _ in calls[0])
        if name in FAMILIES:
            dynamic = (dynamic,)
    with torch.no_grad():
        begun = time.time()
        try:
            program = torch.export.export(model, calls[0], dynamic_shapes=dynamic)
        except Exception as error:
            try:
                program = torch.export.export(model, calls[0])
            except Exception as error:
                return f"not exported by PyTorch: {str(error).splitlines()[0][:120]}"
            note, calls = "fixed batch" + (f" ({str(error).splitlines()[0][:60]})" if batched else ""), calls[:1]
        exported, begun = time.time() - begun, time.time()
        module = from_exported_program(program)
        imported, begun = time.time() - begun, time.time()
        machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
        compiled = time.time() - begun
        worst = 0.0
        for call in calls:
            wanted = flat(model(*call))
            got = machine["main"](*(tvm.runtime.tensor(value.numpy()) for value in flat(call)))
            assert len(got) == len(wanted), f"{len(got)} results, {len(wanted)} wanted"
            for ours, theirs in zip(got, wanted):
                ours, theirs = ours.numpy(), theirs.numpy()
                assert ours.shape == theirs.shape, f"shape {ours.shape}, {theirs.shape} wanted"
                assert np.array_equal(np.isfinite(ours), np.isfinite(theirs)), "other elements are finite"
                ours, theirs = (value[np.isfinite(theirs)].astype("float64") for value in (ours, theirs))
                if ours.size:
                    # Of the greatest element, which random weights may leave tiny.
                    worst = max(worst, float(np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), 1e-30)))
    verdict = "agrees" if worst <= 1e-4 else "DIFFERS"
    return f"{verdict}, {worst:.1e}, {note}; export {exported:.1f} s, import {imported:.1f}, compile {compiled:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--one", help="in this process")
    parser.add_argument("--seconds", type=int, default=400, help="for each")
    options = parser.parse_args()
    if options.one:
        print(one(options.one))
        return 0
    failed = 0
    for name in [*FAMILIES, *VISION]:
        if options.names and not any(part in name for part in options.names):
            continue
        try:
            command = [sys.executable, __file__, "--one", name]
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds)
            line = (done.stdout if done.returncode == 0 else done.stderr).strip() or f"exit {done.returncode}"
            line = line.splitlines()[-1] if done.returncode == 0 else "FAILED " + line[-1500:]
            failed += done.returncode != 0 or "DIFFERS" in line
        except subprocess.TimeoutExpired:
            line, failed = "FAILED: too slow", failed + 1
        print(f"{name}: {line}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
