"""PyTorch models: TorchScript files, traced or scripted, through tables of aten operators by family."""

from mlc.frontends.torch.torchscript import import_model

__all__ = ["import_model"]
