"""Text encoders of published sizes with random weights: their files, and a peer engine that runs them.

usage: encoder_worker.py make FOLDER NAME LAYERS     a Hugging Face folder FOLDER/NAME; NAME: bert, modernbert, qwen3
       encoder_worker.py ENGINE THREADS FOLDER/NAME  ENGINE: openvino, torch; lines of minilm_worker.py in and out
Texts have no padding, so peers get no mask. Texts are pooled as the folder says, and normalized.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from minilm_worker import inputs, serve

# The sizes of BERT-base, ModernBERT-base and Qwen3-Embedding-0.6B. The last one has a part of its vocabulary, whose
# rows are only looked up.
MODELS = {
    "bert": ("mean_tokens", dict(vocab_size=30522, hidden_size=768, num_attention_heads=12, intermediate_size=3072)),
    "modernbert": ("mean_tokens", dict(vocab_size=50368, hidden_size=768, num_attention_heads=12,
                                       intermediate_size=1152, pad_token_id=0, bos_token_id=None, eos_token_id=None,
                                       cls_token_id=None, sep_token_id=None)),
    "qwen3": ("lasttoken", dict(vocab_size=32768, hidden_size=1024, num_attention_heads=16, num_key_value_heads=8,
                                head_dim=128, intermediate_size=3072, rope_theta=1e6, tie_word_embeddings=True)),
}  # fmt: skip


def make(folder, name, layers):
    pooling, fields = MODELS[name]
    torch.manual_seed(1)
    config = transformers.AutoConfig.for_model(name, num_hidden_layers=layers, **fields)
    model = transformers.AutoModel.from_config(config).eval().float()
    out = pathlib.Path(folder) / name
    model.save_pretrained(out)
    (out / "1_Pooling").mkdir(exist_ok=True)
    settings = {"word_embedding_dimension": fields["hidden_size"], "pooling_mode_" + pooling: True}
    (out / "1_Pooling/config.json").write_text(json.dumps(settings))


class Encoder(torch.nn.Module):
    def __init__(self, folder):
        super().__init__()
        self.model = transformers.AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval().float()
        self.last = "pooling_mode_lasttoken" in json.loads((folder / "1_Pooling/config.json").read_text())
        self.decoder = hasattr(self.model.config, "use_cache")

    def forward(self, ids):
        x = self.model(input_ids=ids, **({"use_cache": False} if self.decoder else {})).last_hidden_state
        x = x[:, -1] if self.last else x.mean(1)
        return torch.nn.functional.normalize(x, dim=-1, eps=1e-12)


def runs_of(engine, threads, folder):
    encoder = Encoder(folder)
    if engine == "torch":
        torch.set_num_threads(threads)

        def make_run(batch, seq):
            ids = torch.from_numpy(inputs(batch, seq)[0])

            def run():
                with torch.inference_mode():
                    return encoder(ids).numpy()

            return run

        return make_run, "torch " + torch.__version__.split("+")[0]
    import openvino as ov

    core = ov.Core()
    options = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "ENABLE_CPU_PINNING": False,
    }

    def make_run(batch, seq):
        ids = inputs(batch, seq)[0]
        with torch.no_grad():
            graph = ov.convert_model(torch.export.export(encoder, (torch.from_numpy(ids),)))
        graph.reshape([batch, seq])
        request = core.compile_model(graph, "CPU", options).create_infer_request()
        request.set_input_tensor(0, ov.Tensor(ids))

        def run():
            request.infer()
            return request.get_output_tensor(0).data

        run.keep = ids
        return run

    return make_run, "openvino " + ov.__version__.split("-")[0]


def main():
    if sys.argv[1] == "make":
        make(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    serve(*runs_of(sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])))


if __name__ == "__main__":
    main()
