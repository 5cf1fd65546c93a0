"""The organisms' tokenizer as an ordinary Hugging Face fast tokenizer: one piece of the language, one token."""

from __future__ import annotations

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cotlab.suites.wordproblems import PIECE, vocabulary


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Lossless on texts of the language; any other piece becomes ``<unk>``, which the local provider refuses."""
    pieces = vocabulary()
    tokenizer = Tokenizer(
        models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE.pattern), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(
        [AddedToken(p, special=True, normalized=False) for p in pieces if p.startswith("<")]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<eos>",
        pad_token="<pad>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )
