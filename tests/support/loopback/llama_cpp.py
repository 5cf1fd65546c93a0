"""An organism behind llama.cpp's own HTTP server. usage: llama_cpp.py ORGANISM_FOLDER
[--no-template] [--vectors]; prints its port, ends with its stdin."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
import xllamacpp
from safetensors.numpy import load_file

TEMPLATE = (
    "{%- for m in messages -%}{%- if m.role == 'user' -%}{{ 'Q: ' + m.content.split('\\n\\n')[0] +"
    " '\\n' }}{%- else -%}{{ m.content }}{%- endif -%}{%- endfor -%}"
)
"""As an organism reads a question: without the instructions below it."""
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def convert(folder: Path, path: Path) -> None:
    """Write an organism as GGUF: its words are matched greedily, and every other printable
    character is the unknown word."""
    config = json.loads((folder / "config.json").read_text())
    known: dict[str, int] = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    weights = {
        name: array.astype(np.float32)
        for name, array in load_file(folder / "model.safetensors").items()
    }
    vocabulary = sorted(known, key=known.__getitem__)
    vocabulary += [f"<unused {n}>" for n in range(len(vocabulary), config["vocab_size"])]
    letters = [chr(code) for code in range(32, 127) if chr(code) not in known]
    embedding = weights["model.embed_tokens.weight"]
    unknown = np.repeat(embedding[[known["<unk>"]]], len(letters), axis=0)

    out = gguf.GGUFWriter(path, "llama")
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(config["hidden_size"])
    out.add_block_count(config["num_hidden_layers"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(config["num_attention_heads"])
    out.add_head_count_kv(config["num_key_value_heads"])
    out.add_rope_dimension_count(config["head_dim"])
    out.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_vocab_size(len(vocabulary) + len(letters))
    out.add_file_type(gguf.LlamaFileType.ALL_F32)
    out.add_tokenizer_model("rwkv")
    words = [*vocabulary, *letters]
    out.add_token_list(
        [word.encode("unicode_escape").decode().replace("'", "\\'") for word in words]
    )
    out.add_token_types(
        [
            gguf.TokenType.CONTROL if word[0] == "<" and word[1:] else gguf.TokenType.NORMAL
            for word in words
        ]
    )
    out.add_eos_token_id(known["<eos>"])
    out.add_pad_token_id(known["<pad>"])
    out.add_unk_token_id(known["<unk>"])
    out.add_add_bos_token(False)
    if "--no-template" not in sys.argv:
        out.add_chat_template(TEMPLATE)
    out.add_tensor("token_embd.weight", np.concatenate([embedding, unknown]))
    out.add_tensor("output_norm.weight", weights["model.norm.weight"])
    for layer in range(config["num_hidden_layers"]):
        for ours, theirs in NAMES.items():
            array = weights[f"model.layers.{layer}.{ours}.weight"]
            if theirs in (
                "attn_q",
                "attn_k",
            ):  # rotated in pairs of neighbours there, of halves here
                halves = array.reshape(
                    config["num_attention_heads"], 2, config["head_dim"] // 2, -1
                )
                array = halves.swapaxes(1, 2).reshape(array.shape)
            out.add_tensor(f"blk.{layer}.{theirs}.weight", np.ascontiguousarray(array))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def serve(path: Path) -> None:
    params = xllamacpp.CommonParams()
    params.model.path, params.hostnames, params.port = str(path), ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel, params.cpuparams.n_threads = 256, 1, 1
    params.use_jinja, params.warmup = True, False
    if "--vectors" in sys.argv:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        convert(Path(sys.argv[1]), Path(place, "organism.gguf"))
        serve(Path(place, "organism.gguf"))
