"""Language models as PyTorch modules of plain operations, which its compiler sees as a whole: the peers of the part
`language`, and what its GPT-2 is exported from. Attention is `scaled_dot_product_attention`; a decoding step writes its
keys and values into caches of a fixed length in place."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class _Gpt2Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        split = self.qkv(self.norm1(x)).split(width, 2)
        query, key, value = (
            part.reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2) for part in split
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2 small: `ids [batch, tokens]` to logits of all tokens; the words' vectors are the last weights too."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, words: int = 50257) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.layers = nn.ModuleList(_Gpt2Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return functional.linear(self.norm(x), self.words.weight)


class _BertLayer(_Gpt2Layer):
    """The same parts, with norms behind the residuals and every token seen."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        query, key, value = (
            part.reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, 2)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value)
        x = self.norm1(x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width)))
        return self.norm2(x + self.down(functional.gelu(self.up(x))))


class Bert(nn.Module):
    """BERT base: `ids [batch, tokens]` to a vector for each token."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, words: int = 30522) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(_BertLayer(width, heads) for _ in range(layers))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device)))
        for layer in self.layers:
            x = layer(x)
        return x


class _LlamaLayer(nn.Module):
    def __init__(self, sizes: Any) -> None:
        super().__init__()
        self.sizes = sizes
        inner, kept = sizes.heads * sizes.depth, sizes.groups * sizes.depth
        self.norm1, self.norm2 = (nn.RMSNorm(sizes.width, sizes.epsilon) for _ in range(2))
        self.q, self.o = nn.Linear(sizes.width, inner, bias=False), nn.Linear(inner, sizes.width, bias=False)
        self.k, self.v = (nn.Linear(sizes.width, kept, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(sizes.width, sizes.inner, bias=False) for _ in range(2))
        self.down = nn.Linear(sizes.inner, sizes.width, bias=False)

    def forward(self, x: torch.Tensor, angles: Any, cache: Any) -> tuple[torch.Tensor, Any]:
        """`angles`: cosines and sines; `cache`: keys, values, position and mask, or None."""
        s, (batch, tokens, _) = self.sizes, x.shape
        y = self.norm1(x)
        query, key, value = (
            made(y).view(batch, tokens, count, s.depth).transpose(1, 2)
            for made, count in ((self.q, s.heads), (self.k, s.groups), (self.v, s.groups))
        )
        query, key = _rotated(query, *angles), _rotated(key, *angles)
        mask = None
        if cache is not None:
            keys, values, position, mask = cache
            keys.index_copy_(2, position, key)
            values.index_copy_(2, position, value)
            key, value = keys, values
        mixed = functional.scaled_dot_product_attention(
            query, key, value, mask, is_causal=mask is None, enable_gqa=True
        )
        x = x + self.o(mixed.transpose(1, 2).reshape(batch, tokens, s.heads * s.depth))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y)), (key, value)


def _rotated(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cosine + torch.cat([-x[..., half:], x[..., :half]], -1) * sine


class Llama(nn.Module):
    """The model of `test/models/llama.py`: logits of the last token, and the keys and values of a text that begins."""

    def __init__(self, sizes: Any, positions: int) -> None:
        super().__init__()
        self.words = nn.Embedding(sizes.words, sizes.width)
        self.layers = nn.ModuleList(_LlamaLayer(sizes) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.width, sizes.epsilon)
        for name, table in zip(("cosines", "sines"), sizes.angles(positions), strict=True):
            self.register_buffer(name, torch.from_numpy(table.astype("float32")).repeat(1, 2))

    def forward(self, ids: torch.Tensor, position: Any = None, keys: Any = None, values: Any = None) -> Any:
        x = self.words(ids)
        at = slice(0, ids.shape[1]) if position is None else position
        angles, made, mask = (self.cosines[at], self.sines[at]), [], None
        if position is not None:
            mask = (torch.arange(keys[0].shape[2], device=ids.device) <= position)[None, None, None]
        for number, layer in enumerate(self.layers):
            cache = None if position is None else (keys[number], values[number], position, mask)
            x, kept = layer(x, angles, cache)
            made += kept
        logits = functional.linear(self.norm(x[:, -1:]), self.words.weight)
        return logits if position is not None else (logits, *made)
