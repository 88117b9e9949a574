"""The architectures of other libraries that `bench/architectures.py` makes: what paints, finds, segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Drawn = tuple["Module", tuple["Tensor", ...]]
# An input: a tuple is the shape of drawn numbers, a list are the values themselves.
Inputs = Mapping[str, "tuple[int, ...] | list[float] | list[int]"]

_HEADS = {"num_layers": 2, "num_attention_heads": 8, "attention_head_dim": 64}
_SMALL_HEADS = {**_HEADS, "num_attention_heads": 4}
_AUTO = {
    "block_out_channels": (64, 128, 128), "down_block_types": ("DownEncoderBlock2D",) * 3,
    "up_block_types": ("UpDecoderBlock2D",) * 3, "latent_channels": 4, "layers_per_block": 1,
}  # fmt: skip
_TEXT = (1, 77, 256)
_STEP: Inputs = {"timestep": [10]}
_FLUX = {
    **_HEADS, "num_layers": 1, "num_single_layers": 2,
    "joint_attention_dim": 256, "pooled_projection_dim": 128, "axes_dims_rope": (16, 24, 24), "in_channels": 64,
}  # fmt: skip
_LATENT: Inputs = {"sample": (1, 4, 32, 32), **_STEP, "encoder_hidden_states": _TEXT}
_UNET = {"sample_size": 32, "cross_attention_dim": 256, "layers_per_block": 1}
_SDXL = {
    "block_out_channels": (64, 128, 256),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    "attention_head_dim": (1, 2, 4), "transformer_layers_per_block": (1, 1, 2), "use_linear_projection": True,
}  # fmt: skip
_SANA = {
    "in_channels": 16, "out_channels": 16, "num_layers": 2, "num_attention_heads": 8, "attention_head_dim": 32,
    "num_cross_attention_heads": 8, "cross_attention_head_dim": 32, "cross_attention_dim": 256,
    "caption_channels": 256, "sample_size": 32, "patch_size": 1,
}  # fmt: skip

# Class, method, fields and inputs.
DIFFUSERS: dict[str, tuple[str, str, dict[str, Any], Inputs]] = {
    "autoencoder-decode": ("AutoencoderKL", "decode", _AUTO, {"z": (1, 4, 32, 32)}),
    "autoencoder-tiny": ("AutoencoderTiny", "decode", {}, {"x": (1, 4, 32, 32)}),
    "cogvideox": (
        "CogVideoXTransformer3DModel", "forward",
        {**_SMALL_HEADS, "text_embed_dim": 256, "sample_width": 32, "sample_height": 32, "sample_frames": 9,
         "max_text_seq_length": 64, "time_embed_dim": 128},
        {"hidden_states": (1, 3, 16, 32, 32), "encoder_hidden_states": (1, 64, 256), **_STEP},
    ),
    "dit": (
        "DiTTransformer2DModel", "forward",
        {**_HEADS, "sample_size": 32, "out_channels": 8, "num_embeds_ada_norm": 1000},
        {"hidden_states": (1, 4, 32, 32), **_STEP, "class_labels": [3]},
    ),
    "flux": (
        "FluxTransformer2DModel", "forward", _FLUX,
        {"hidden_states": (1, 256, 64), "encoder_hidden_states": (1, 64, 256), "pooled_projections": (1, 128),
         "timestep": [0.5], "img_ids": (256, 3), "txt_ids": (64, 3)},
    ),
    "oobleck-decode": (
        "AutoencoderOobleck", "decode",
        {"encoder_hidden_size": 32, "decoder_channels": 32, "downsampling_ratios": [2, 4, 4],
         "channel_multiples": [1, 2, 4], "decoder_input_channels": 32},
        {"z": (1, 32, 64)},
    ),
    "sana": (
        "SanaTransformer2DModel", "forward", _SANA,
        {"hidden_states": (1, 16, 32, 32), "encoder_hidden_states": _TEXT, **_STEP},
    ),
    "sd3": (
        "SD3Transformer2DModel", "forward",
        {**_HEADS, "sample_size": 32, "joint_attention_dim": 256, "caption_projection_dim": 512,
         "pooled_projection_dim": 128, "pos_embed_max_size": 64},
        {"hidden_states": (1, 16, 32, 32), "encoder_hidden_states": _TEXT, "pooled_projections": (1, 128), **_STEP},
    ),
    "unet-sd": ("UNet2DConditionModel", "forward", {**_UNET, "block_out_channels": (64, 128, 256, 256)}, _LATENT),
    "unet-sdxl": ("UNet2DConditionModel", "forward", {**_UNET, **_SDXL}, _LATENT),
    "wan": (
        "WanTransformer3DModel", "forward",
        {**_SMALL_HEADS, "ffn_dim": 512, "text_dim": 256, "freq_dim": 64, "rope_max_seq_len": 128},
        {"hidden_states": (1, 16, 5, 32, 32), **_STEP, "encoder_hidden_states": (1, 64, 256)},
    ),
}  # fmt: skip

_VOLUME = {"spatial_dims": 3, "in_channels": 1, "out_channels": 2}
_PLANE = {**_VOLUME, "spatial_dims": 2}
_UNETR = {
    "in_channels": 1, "out_channels": 2, "img_size": (48, 48, 48), "hidden_size": 192, "mlp_dim": 384, "num_heads": 6,
}  # fmt: skip
_STRIDED = {"channels": (16, 32, 64, 128), "strides": (2, 2, 2)}
# Class, fields and the shape of the image.
MONAI: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "attention-unet": ("AttentionUnet", {**_PLANE, **_STRIDED}, (1, 1, 128, 128)),
    "densenet121-3d": ("DenseNet121", _VOLUME, (1, 1, 48, 48, 48)),
    "segresnet-3d": ("SegResNet", {**_VOLUME, "init_filters": 8}, (1, 1, 48, 48, 48)),
    "unet-3d": ("UNet", {**_VOLUME, **_STRIDED, "num_res_units": 2}, (1, 1, 48, 48, 48)),
    "unetr": ("UNETR", _UNETR, (1, 1, 48, 48, 48)),
    "vnet": ("VNet", _VOLUME, (1, 1, 32, 32, 32)),
}

# Class and encoder.
SEGMENTERS = {
    "deeplabv3plus": ("DeepLabV3Plus", "mobilenet_v2"),
    "segformer": ("Segformer", "mit_b0"),
    "unet-efficientnet": ("Unet", "timm-efficientnet-b0"),
    "unet-xception": ("Unet", "xception"),
}
SEGMENTERS |= {
    kind.lower(): (kind, "resnet18")
    for kind in ("FPN", "Linknet", "MAnet", "PAN", "PSPNet", "Unet", "UnetPlusPlus", "UPerNet")
}

ULTRALYTICS = (
    "yolov3-tiny", "yolov5n", "yolov6n", "yolov8n", "yolov8s", "yolov8-ghost", "yolov9t", "yolov10n", "yolo11n",
    "yolo11n-cls", "yolo11n-obb", "yolo11n-pose", "yolo11n-seg", "yolo12n", "yolo26n",
)  # fmt: skip

# What the layers of a decoder have beside the ordinary.
X_TRANSFORMERS: dict[str, dict[str, Any]] = {
    "plain": {}, "alibi": {"alibi_pos_bias": True}, "relative": {"rel_pos_bias": True},
    "rotary-glu": {"rotary_pos_emb": True, "use_rmsnorm": True, "ff_swish": True, "ff_glu": True},
    "few-keys": {"attn_sparse_topk": 8}, "normed-keys": {"attn_qk_norm": True, "sandwich_norm": True},
    "one-head-of-keys": {"attn_num_mem_kv": 8, "attn_one_kv_head": True},
}  # fmt: skip


def _diffusers(name: str) -> Drawn:
    import diffusers
    import torch

    kind, method, fields, inputs = DIFFUSERS[name]
    model = getattr(diffusers, kind)(**fields)

    class Called(torch.nn.Module):
        """The method with its arguments by name."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *values: Tensor) -> Any:
            return getattr(self.model, method)(**dict(zip(inputs, values, strict=True)))

    return Called(), tuple(torch.randn(v) if isinstance(v, tuple) else torch.tensor(v) for v in inputs.values())


def _monai(name: str) -> Drawn:
    import torch
    from monai.networks import nets

    kind, fields, shape = MONAI[name]
    return getattr(nets, kind)(**fields), (torch.randn(shape),)


def _segmenter(name: str) -> Drawn:
    import segmentation_models_pytorch
    import torch

    kind, encoder = SEGMENTERS[name]
    model = getattr(segmentation_models_pytorch, kind)(encoder, encoder_weights=None, classes=5)
    return model, (torch.randn(1, 3, 224, 224),)


def _ultralytics(name: str) -> Drawn:
    """As the library's own export leaves it: normalizations folded, boxes decoded."""
    import torch
    from ultralytics import YOLO

    if name not in ULTRALYTICS:
        raise KeyError(name)
    model = YOLO(f"{name}.yaml").model.float().eval().fuse()
    for module in model.modules():
        if hasattr(module, "export"):
            module.export, module.format, module.dynamic = True, "onnx", False
    image = torch.rand(1, 3, 224, 224) if name.endswith("-cls") else torch.rand(1, 3, 320, 320)
    model(image)  # places of boxes are made in the first run
    return model, (image,)


def _x_transformers(name: str) -> Drawn:
    import torch
    import x_transformers

    layers = x_transformers.Decoder(dim=256, depth=2, heads=4, **X_TRANSFORMERS[name])
    model = x_transformers.TransformerWrapper(num_tokens=1000, max_seq_len=128, attn_layers=layers)
    return model, (torch.randint(0, 1000, (1, 64)),)


# By the name of a package: what lists its architectures, and what makes one.
LIBRARIES: dict[str, tuple[Callable[[], Sequence[str]], Callable[[str], Drawn]]] = {
    "diffusers": (lambda: list(DIFFUSERS), _diffusers),
    "monai": (lambda: list(MONAI), _monai),
    "segmentation_models_pytorch": (lambda: sorted(SEGMENTERS), _segmenter),
    "ultralytics": (lambda: ULTRALYTICS, _ultralytics),
    "x_transformers": (lambda: list(X_TRANSFORMERS), _x_transformers),
}
