"""Sequences of tokens and an image each, whose input embeddings the caller composes.

The image's features are random: a vision tower's output is what is drawn here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from examples.serving import DecodeBatch, Pages, pack_decode, pack_prefill
from examples.serving import Sequence as PagedSequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """``rows`` x ``columns`` tokens from token ``at`` on, and the features in their place.

    ``embeds`` [rows * columns, hidden] replace the token embeddings; ``deep`` [layers, rows *
    columns, hidden] are added after the first layers.
    """

    at: int
    rows: int
    columns: int
    embeds: Tensor
    deep: Tensor

    @property
    def end(self) -> int:
        return self.at + self.rows * self.columns

    def places(self) -> list[list[int]]:
        """[3, tokens]: time, height and width of each token, as places of a text token."""
        grid = [(row, column) for row in range(self.rows) for column in range(self.columns)]
        return [
            [self.at] * len(grid),
            [self.at + row for row, _ in grid],
            [self.at + column for _, column in grid],
        ]


def random_image(at: int, rows: int, columns: int, *, hidden: int, layers: int) -> Image:
    generator = torch.Generator().manual_seed(at)
    count = rows * columns
    return Image(
        at=at,
        rows=rows,
        columns=columns,
        embeds=torch.randn(count, hidden, generator=generator) * 0.15,
        deep=torch.randn(layers, count, hidden, generator=generator),
    )


@dataclass(slots=True, kw_only=True)
class ImageSequence(PagedSequence):
    """A sequence with an image in its prompt, or none."""

    image: Image | None = None

    def places(self) -> Tensor:
        """int64 [3, tokens]: text goes on behind the largest place of what stands before it."""
        if self.image is None:
            return torch.arange(len(self.ids)).expand(3, -1)
        image = self.image
        after = image.at + max(image.rows, image.columns)
        parts = [
            torch.arange(image.at).expand(3, -1),
            torch.tensor(image.places()),
            torch.arange(after, after + len(self.ids) - image.end).expand(3, -1),
        ]
        return torch.cat(parts, dim=1)

    def embeds(self, tokens: Any) -> Tensor:
        """[tokens, hidden]: token embeddings, by the table ``tokens``, with the image in place."""
        table: Tensor = tokens.weight
        embeds = table[torch.tensor(self.ids, device=table.device)].clone()
        if self.image is not None:
            embeds[self.image.at : self.image.end] = self.image.embeds.to(embeds)
        return embeds


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionPrefillBatch:
    """``deepstack`` is None where no sequence has an image; ``embeds`` the spec does not read."""

    num_requests: int
    num_tokens: int
    positions: Tensor
    slot_mapping: Tensor
    cu_seqlens: Tensor
    last_token: Tensor
    deepstack: Tensor | None
    embeds: Tensor


class VisionEngine:
    """Sequences over pages of one pool; those in ``images`` have one, by order of their start."""

    def __init__(
        self, model: Any, images: Sequence[Image | None], *, rows: int, context: int
    ) -> None:
        self._text = model.model.language_model
        self._images = list(images)
        self._pages, self._context = Pages(rows), context

    def start(self, ids: list[int]) -> ImageSequence:
        return ImageSequence(ids=ids, image=self._images.pop(0))

    @torch.no_grad()
    def prefill(self, sequences: Sequence[ImageSequence]) -> VisionPrefillBatch:
        batch = pack_prefill(self._fitted(sequences))
        embeds = torch.cat([s.embeds(self._text.embed_tokens) for s in sequences])
        return VisionPrefillBatch(
            num_requests=batch.num_requests,
            num_tokens=batch.num_tokens,
            positions=torch.cat([s.places() for s in sequences], dim=1),
            slot_mapping=batch.slot_mapping,
            cu_seqlens=batch.cu_seqlens,
            last_token=batch.last_token,
            deepstack=_deepstack(sequences, embeds),
            embeds=embeds,
        )

    def decode(self, sequences: Sequence[ImageSequence]) -> DecodeBatch:
        batch = pack_decode(self._fitted(sequences), context=self._context)
        newest = torch.stack([s.places()[:, -1] for s in sequences], dim=1)
        return DecodeBatch(
            num_requests=batch.num_requests,
            num_tokens=batch.num_tokens,
            input_ids=batch.input_ids,
            positions=newest,
            slot_mapping=batch.slot_mapping,
            slot_table=batch.slot_table,
            seq_lens=batch.seq_lens,
        )

    def _fitted(self, sequences: Sequence[ImageSequence]) -> Sequence[ImageSequence]:
        for sequence in sequences:
            self._pages.fit(sequence)
        return sequences


def _deepstack(sequences: Sequence[ImageSequence], embeds: Tensor) -> Tensor | None:
    """[layers, tokens, hidden]: features in the rows of images, zero elsewhere."""
    images = [s.image for s in sequences if s.image is not None]
    if not images:
        return None
    rows = embeds.new_zeros(images[0].deep.shape[0], *embeds.shape)
    start = 0
    for s in sequences:
        if s.image is not None:
            rows[:, start + s.image.at : start + s.image.end] = s.image.deep.to(embeds)
        start += len(s.ids)
    return rows


@torch.no_grad()
def seen(model: Any, sequence: ImageSequence) -> Tensor:
    """Logits [vocab] of the last token, by the unsplit model and its own way to add features."""
    text = model.model.language_model
    embeds = sequence.embeds(text.embed_tokens)
    given: dict[str, Any] = {}
    if sequence.image is not None:
        mask = torch.zeros(1, len(embeds), dtype=torch.bool, device=embeds.device)
        mask[:, sequence.image.at : sequence.image.end] = True
        deep = [layer.to(embeds) for layer in sequence.image.deep]
        given = {"visual_pos_masks": mask, "deepstack_visual_embeds": deep}
    places = sequence.places()[:, None].to(embeds.device)
    hidden = text(inputs_embeds=embeds[None], position_ids=places, use_cache=False, **given)
    logits: Tensor = model.lm_head(hidden.last_hidden_state[0, -1])
    return logits
