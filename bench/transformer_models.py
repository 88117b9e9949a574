"""The architectures of `transformers` that `bench/architectures.py` makes: class, configuration and input of each."""

from __future__ import annotations

from typing import Any

LAYERS, WORDS, TOKENS = 4, 4000, 128

# transformers: the class of the model, the fields of its configuration, and the shape of its input (of tokens: None).
BERT = {"vocab_size": WORDS, "num_hidden_layers": LAYERS}
WIDE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
DEBERTA = {
    "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0, "position_biased_input": False,
}  # fmt: skip
T5 = {"vocab_size": WORDS, "num_layers": LAYERS}
WHISPER = {"d_model": 384, "encoder_layers": LAYERS, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
LLAMA = {
    "vocab_size": WORDS, "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": LAYERS,
    "num_attention_heads": 12, "num_key_value_heads": 4,
}  # fmt: skip
IMAGE, SECOND = (1, 3, 224, 224), (1, 16000)
TRANSFORMERS: dict[str, tuple[str, dict[str, Any], tuple[int, ...] | None]] = {
    "albert": ("AlbertModel", {**BERT, **WIDE}, None),
    "beit": ("BeitModel", {"num_hidden_layers": LAYERS}, IMAGE),
    "bloom": ("BloomModel", {"vocab_size": WORDS, "hidden_size": 512, "n_layer": LAYERS, "n_head": 8}, None),
    "clip-text": ("CLIPTextModel", BERT, None),
    "clip-vision": ("CLIPVisionModel", {"num_hidden_layers": LAYERS}, IMAGE),
    "convbert": ("ConvBertModel", BERT, None),
    "convnextv2": ("ConvNextV2Model", {}, IMAGE),
    "cvt": ("CvtModel", {}, IMAGE),
    "deberta-v2": ("DebertaV2Model", {**BERT, **WIDE, **DEBERTA}, None),
    "dinov2": ("Dinov2Model", {"hidden_size": 384, "num_hidden_layers": LAYERS, "num_attention_heads": 6}, IMAGE),
    "distilbert": ("DistilBertModel", {"vocab_size": WORDS, "n_layers": LAYERS}, None),
    "dpt": ("DPTForDepthEstimation", {"num_hidden_layers": 12, "image_size": 224}, IMAGE),
    "electra": ("ElectraModel", BERT, None),
    "falcon": ("FalconModel", {**BERT, "hidden_size": 768, "num_attention_heads": 12}, None),
    "focalnet": ("FocalNetModel", {}, IMAGE),
    "funnel": ("FunnelModel", {"vocab_size": WORDS, "block_sizes": [2, 2, 2]}, None),
    "gemma2": ("Gemma2Model", {**LLAMA, "head_dim": 64}, None),
    "gpt-neox": ("GPTNeoXModel", {**LLAMA, "num_key_value_heads": 12}, None),
    "hubert": ("HubertModel", {"num_hidden_layers": LAYERS}, SECOND),
    "layoutlm": ("LayoutLMModel", BERT, None),
    "levit": ("LevitModel", {}, IMAGE),
    "llama": ("LlamaForCausalLM", LLAMA, None),
    "mistral": ("MistralModel", LLAMA, None),
    "mobilebert": ("MobileBertModel", BERT, None),
    "mobilevit": ("MobileViTModel", {}, (1, 3, 256, 256)),
    "mobilevitv2": ("MobileViTV2Model", {}, (1, 3, 256, 256)),
    "mpnet": ("MPNetModel", BERT, None),
    "opt": ("OPTModel", {**BERT, "hidden_size": 768, "num_attention_heads": 12, "ffn_dim": 3072}, None),
    "phi": ("PhiModel", {**LLAMA, "num_key_value_heads": 12}, None),
    "poolformer": ("PoolFormerModel", {}, IMAGE),
    "pvt": ("PvtModel", {}, IMAGE),
    "qwen3": ("Qwen3Model", {**LLAMA, "head_dim": 64}, None),
    "roberta": ("RobertaModel", BERT, None),
    "roformer": ("RoFormerModel", BERT, None),
    "segformer": ("SegformerForSemanticSegmentation", {}, (1, 3, 256, 256)),
    "siglip-vision": ("SiglipVisionModel", {"num_hidden_layers": LAYERS}, IMAGE),
    "squeezebert": ("SqueezeBertModel", BERT, None),
    "swin2sr": ("Swin2SRForImageSuperResolution", {}, (1, 3, 64, 64)),
    "t5-encoder": ("T5EncoderModel", {**T5, "feed_forward_proj": "gated-gelu", "attn_implementation": "eager"}, None),
    "wav2vec2": ("Wav2Vec2Model", {"num_hidden_layers": LAYERS}, SECOND),
    "whisper-encoder": ("WhisperEncoder", WHISPER, (1, 80, 3000)),
    "yolos": ("YolosForObjectDetection", {"num_hidden_layers": LAYERS, "image_size": [256, 256]}, (1, 3, 256, 256)),
}

# Experts as products of batches of matrices, which exporters know; detectors with attention that they know.
EXPERTS = {**LLAMA, "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 2,
           "experts_implementation": "batched_mm"}  # fmt: skip
RESNET = {
    "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None, "encoder_layers": 2,
    "decoder_layers": 2, "attn_implementation": "eager",
}  # fmt: skip
DINO = {
    "model_type": "dinov2", "hidden_size": 384, "num_attention_heads": 6, "num_hidden_layers": 12, "image_size": 224,
    "patch_size": 14, "out_features": ["stage3", "stage6", "stage9", "stage12"], "reshape_hidden_states": False,
}  # fmt: skip
POSE = {
    "model_type": "vitpose_backbone", "num_hidden_layers": LAYERS, "hidden_size": 384, "num_attention_heads": 6,
    "out_features": ["stage4"],
}  # fmt: skip
SERIES = {"num_input_channels": 7, "context_length": 96, "patch_length": 16, "patch_stride": 8}

TRANSFORMERS |= {
    # texts
    "deepseek-v3": (
        "DeepseekV3Model",
        {
            **EXPERTS, "moe_intermediate_size": 256, "num_key_value_heads": 8, "n_routed_experts": 8, "n_group": 2,
            "first_k_dense_replace": 1, "q_lora_rank": 128, "kv_lora_rank": 64, "topk_group": 1,
            "num_experts_per_tok": 2,
        },
        None,
    ),
    "esm": ("EsmModel", {**BERT, "hidden_size": 480, "num_attention_heads": 20, "intermediate_size": 1920,
                         "pad_token_id": 1, "mask_token_id": 32, "position_embedding_type": "rotary"}, None),
    "fnet": ("FNetModel", BERT, None),
    "gemma3": ("Gemma3TextModel", {**LLAMA, "head_dim": 64, "sliding_window": 32}, None),
    "gpt-oss": ("GptOssModel", {**EXPERTS, "intermediate_size": 512, "num_local_experts": 4, "head_dim": 64}, None),
    "lfm2": ("Lfm2Model", {**LLAMA, "layer_types": ["conv", "full_attention"] * 2}, None),
    "mamba": ("MambaModel", {"vocab_size": WORDS, "hidden_size": 512, "num_hidden_layers": 2}, None),
    "mamba2": (
        "Mamba2Model",
        {"vocab_size": WORDS, "hidden_size": 512, "num_hidden_layers": 2, "num_heads": 16, "n_groups": 1},
        None,
    ),
    "mixtral": ("MixtralModel", {**EXPERTS, "num_local_experts": 4}, None),
    "modernbert": ("ModernBertModel", {**BERT, "reference_compile": False, "pad_token_id": 0}, None),
    "qwen3-moe": (
        "Qwen3MoeModel",
        {**EXPERTS, "moe_intermediate_size": 256, "num_experts": 8, "num_experts_per_tok": 2, "head_dim": 64},
        None,
    ),
    "xlnet": ("XLNetModel", {"vocab_size": WORDS, "n_layer": LAYERS}, None),
    # images and videos
    "deformable-detr": (
        "DeformableDetrForObjectDetection",
        {**RESNET, "backbone_config": {"model_type": "resnet", "out_features": ["stage2", "stage3", "stage4"]}},
        (1, 3, 256, 256),
    ),
    "depth-anything": (
        "DepthAnythingForDepthEstimation",
        {"backbone_config": DINO, "reassemble_hidden_size": 384},
        IMAGE,
    ),
    "detr": (
        "DetrModel",
        {**RESNET, "backbone_config": {"model_type": "resnet", "out_features": ["stage4"]}},
        (1, 3, 256, 256),
    ),
    "dinov3": ("DINOv3ViTModel", {"num_hidden_layers": LAYERS}, IMAGE),
    "dinov3-convnext": ("DINOv3ConvNextModel", {}, IMAGE),
    "glpn": ("GLPNForDepthEstimation", {}, (1, 3, 256, 256)),
    "hiera": ("HieraModel", {}, IMAGE),
    "mask2former": ("Mask2FormerModel", {"encoder_layers": 2, "decoder_layers": 3}, (1, 3, 256, 256)),
    "perceiver": (
        "PerceiverModel",
        {"num_latents": 128, "d_latents": 512, "d_model": 512, "num_self_attends_per_block": 2},
        (1, 256, 512),
    ),
    "pp-ocrv5-det": ("PPOCRV5MobileDetForObjectDetection", {"attn_implementation": "eager"}, (1, 3, 320, 320)),
    "pvt-v2": ("PvtV2Model", {}, IMAGE),
    "rt-detr": ("RTDetrForObjectDetection", {"attn_implementation": "eager"}, (1, 3, 320, 320)),
    "sam-vision": (
        "SamVisionModel",
        {"num_hidden_layers": 3, "image_size": 512, "global_attn_indexes": [2]},
        (1, 3, 512, 512),
    ),
    "sam2-vision": ("Sam2VisionModel", {}, (1, 3, 256, 256)),
    "swiftformer": ("SwiftFormerModel", {}, IMAGE),
    "swinv2": ("Swinv2Model", {}, (1, 3, 256, 256)),
    "timesformer": ("TimesformerModel", {"num_hidden_layers": 2, "num_frames": 4}, (1, 4, 3, 224, 224)),
    "videomae": (
        "VideoMAEModel",
        {
            "num_hidden_layers": 2, "num_frames": 8, "hidden_size": 384, "num_attention_heads": 6,
            "intermediate_size": 1536,
        },
        (1, 8, 3, 224, 224),
    ),
    "vitpose": ("VitPoseForPoseEstimation", {"backbone_config": POSE}, (1, 3, 256, 192)),
    # sounds and series
    "ast": ("ASTModel", {"num_hidden_layers": 2}, (1, 1024, 128)),
    "dac": ("DacModel", {}, (1, 1, 16000)),
    "hifigan": ("SpeechT5HifiGan", {}, (50, 80)),
    "patchtsmixer": ("PatchTSMixerModel", {**SERIES, "d_model": 64}, (1, 96, 7)),
    "patchtst": ("PatchTSTModel", SERIES, (1, 96, 7)),
    "wav2vec2-conformer": (
        "Wav2Vec2ConformerModel",
        {"num_hidden_layers": 2, "position_embeddings_type": "relative"},
        SECOND,
    ),
    "wavlm": ("WavLMModel", {"num_hidden_layers": 2}, SECOND),
}  # fmt: skip
