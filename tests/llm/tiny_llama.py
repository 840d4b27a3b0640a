"""A llama.cpp server with a small model of random weights; run in an environment with xllamacpp.

Give it the folder for the model and the port. It uses nothing of prism.
"""

import sys
import time
from pathlib import Path
from typing import Any

WORDS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"
TOKENS, WIDTH, HEADS, INNER, LAYERS = 300, 32, 4, 64, 2
MOST_SECONDS = 600
"""How long it serves at most, should nobody end it."""


def write_model(path: Path) -> None:
    """Write a model that knows letters and bytes, and thinks at random."""
    import gguf
    import numpy as np

    weights = np.random.default_rng(0)
    model: Any = gguf.GGUFWriter(str(path), "llama")
    model.add_context_length(4096)
    model.add_embedding_length(WIDTH)
    model.add_block_count(LAYERS)
    model.add_feed_forward_length(INNER)
    model.add_head_count(HEADS)
    model.add_head_count_kv(HEADS)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_rope_dimension_count(WIDTH // HEADS)
    model.add_vocab_size(TOKENS)

    texts = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *WORDS]
    texts += [f"<pad{number}>" for number in range(len(texts), TOKENS)]
    model.add_tokenizer_model("llama")
    model.add_token_list([text.encode() for text in texts[:TOKENS]])
    model.add_token_scores([0.0] * TOKENS)
    model.add_token_types([2, 3, 3, *[6] * 256, *[1] * (TOKENS - 259)])
    model.add_bos_token_id(1)
    model.add_eos_token_id(2)
    model.add_unk_token_id(0)

    def add(name: str, *shape: int) -> None:
        model.add_tensor(name, (weights.standard_normal(shape) * 0.3).astype(np.float32))

    def add_norm(name: str) -> None:
        model.add_tensor(name, np.ones(WIDTH, np.float32))

    add("token_embd.weight", TOKENS, WIDTH)
    add("output.weight", TOKENS, WIDTH)
    add_norm("output_norm.weight")
    for number in range(LAYERS):
        layer = f"blk.{number}"
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"{layer}.{part}.weight", WIDTH, WIDTH)
        for part in ("ffn_gate", "ffn_up"):
            add(f"{layer}.{part}.weight", INNER, WIDTH)
        add(f"{layer}.ffn_down.weight", WIDTH, INNER)
        add_norm(f"{layer}.attn_norm.weight")
        add_norm(f"{layer}.ffn_norm.weight")

    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


def main() -> None:
    """Write the model, serve it, and wait."""
    import xllamacpp

    path = Path(sys.argv[1]) / "tiny.gguf"
    write_model(path)

    settings = xllamacpp.CommonParams()
    settings.model.path = str(path)
    settings.n_ctx = 4096
    settings.n_parallel = 4
    settings.port = int(sys.argv[2])
    settings.warmup = False
    settings.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    server = xllamacpp.Server(settings)
    time.sleep(MOST_SECONDS)
    del server


if __name__ == "__main__":
    main()
