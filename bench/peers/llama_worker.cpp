// llama.cpp as a peer of bench/llm. usage: llama_worker FILE.gguf THREADS single|long|logits; one line of JSON, or 128
// rows of logits as F32. `long`: tokens after 4,096 others, with flash attention over a q8_0 cache. Build: bench/llm
// prepare.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cpu_use.h"
#include "ggml-cpu.h"
#include "llama.h"

static double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
static double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[2]);
  const bool logits = std::string(argv[3]) == "logits", far = std::string(argv[3]) == "long";
  const int context_length = far ? 4096 : 512;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  const double start = now_ms();
  llama_model* model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (!model) return 1;
  const double load = now_ms() - start;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<unsigned>(context_length) + 512, params.n_batch = 512, params.n_ubatch = 512;
  if (far || (argc > 4 && std::string(argv[4]) == "q8_0")) {
    params.type_k = params.type_v = GGML_TYPE_Q8_0;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  }
  params.n_threads = threads, params.n_threads_batch = threads;
  llama_context* context = llama_init_from_model(model, params);
  // One persistent thread pool with thread i on CPU i; the default creates threads for every graph.
  ggml_threadpool_params pool = ggml_threadpool_params_default(threads);
  for (int i = 0; i < threads; ++i) pool.cpumask[i] = true;
  pool.strict_cpu = true;
  llama_attach_threadpool(context, ggml_threadpool_new(&pool), nullptr);
  std::vector<llama_token> tokens(static_cast<std::size_t>(context_length));
  unsigned state = 1;  // the prompt of bench/language_model
  for (llama_token& t : tokens) {
    state = state * 1664525U + 1013904223U;
    t = static_cast<llama_token>(3 + (state >> 8) % 31990U);
  }
  if (logits) {
    tokens.resize(128);
    if (argc > 5) {
      std::ifstream in(argv[5], std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(in), {});
      tokens.resize(bytes.size() / 4);
      std::memcpy(tokens.data(), bytes.data(), tokens.size() * 4);
    }
    const int count = static_cast<int>(tokens.size());
    llama_batch batch = llama_batch_init(count, 0, 1);
    batch.n_tokens = count;
    for (int i = 0; i < count; ++i) {
      batch.token[i] = tokens[static_cast<std::size_t>(i)], batch.pos[i] = i, batch.logits[i] = 1;
      batch.n_seq_id[i] = 1, batch.seq_id[i][0] = 0;
    }
    if (llama_decode(context, batch) != 0) return 1;
    const auto vocab = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)));
    for (int i = 0; i < count; ++i) std::fwrite(llama_get_logits_ith(context, i), 4, vocab, stdout);
    return 0;
  }
  std::vector<double> p128, p512, decode;
  CpuUse use;
  const auto run_batch = [&](llama_token* from, int n) {
    return use.timed([&] {
      llama_decode(context, llama_batch_get_one(from, n));
      llama_synchronize(context);
    });
  };
  if (far) {
    for (int at = 0; at < context_length; at += 512)
      llama_decode(context, llama_batch_get_one(&tokens[static_cast<std::size_t>(at)], 512));
    llama_synchronize(context);
    for (int i = 0; i < 48; ++i) {
      llama_token one = tokens[static_cast<std::size_t>(130 + i)];
      decode.push_back(run_batch(&one, 1));
    }
    std::printf("{\"decode_p50\": %.2f, \"load_s\": %.2f, \"cpus\": %.3f}\n", median(decode), load / 1e3, use.cpus());
    return 0;
  }
  for (int round = 0; round < 5; ++round) {
    const auto run = [&](int n, std::vector<double>& out) {
      llama_memory_clear(llama_get_memory(context), true);
      const double ms = run_batch(tokens.data(), n);
      if (round) out.push_back(ms);
    };
    run(512, p512);
    for (int i = 0; i < 3; ++i) run(128, p128);
    for (int i = 0; i < 32; ++i) {
      llama_token one = tokens[static_cast<std::size_t>(130 + i)];
      const double ms = run_batch(&one, 1);
      if (round) decode.push_back(ms);
    }
  }
  std::printf("{\"decode_p50\": %.2f, \"prefill128\": %.2f, \"prefill512\": %.2f, \"load_s\": %.2f, \"cpus\": %.3f}\n",
              median(decode), median(p128), median(p512), load / 1e3, use.cpus());
  return 0;
}
