// A language model as its users run it: a prompt, then single tokens after 128 others, or several sequences at once.
// bench/llm compares the figures with those of other engines.
// usage: language_model MODEL [threads: 1, or 1,avx2] [products: auto] [cache: f32] [context: 128] [sequences: 1]
// [MODE]
// MODEL is a GGUF file or a folder. The output is one JSON object in milliseconds. MODE is one of:
//   breakdown                  adds the time of each kernel on one thread, and what each thread did, on stderr
//   decode                     times single tokens alone
//   start [FORMS [TOKENIZER]]  times load to first token, with its parts. FORMS: a folder of saved packed weights, or
//   "".
//                              TOKENIZER: a file or folder whose tokenizer is loaded too
//   logits [FILE]              writes logits as F32, of 128 tokens or of the I32 ids in FILE
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/before.h"
#include "bench/peers/cpu_use.h"
#include "rlx/base/trace.h"
#include "rlx/formats/gguf.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/packed_weight_files.h"
#include "rlx/formats/thread_times.h"
#include "rlx/generation/language_model.h"
#include "rlx/models/decoder_model.h"
#include "rlx/rlx.h"
#include "rlx/text/tokenizer.h"

namespace {

using namespace rlx;

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}
std::vector<TokenId> prompt(std::size_t n, std::int64_t vocab, std::uint32_t seed) {
  std::vector<TokenId> out(n);
  for (TokenId& t : out) {
    seed = seed * 1664525U + 1013904223U;
    t = static_cast<TokenId>(3 + (seed >> 8) % static_cast<std::uint32_t>(vocab - 10));
  }
  return out;
}

// A number of /proc/self/status in MB; 0 if it is not there.
double status_mb(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name + ":")) return std::atof(line.c_str() + name.size() + 1) * 1.024e-3;
  return 0;
}

// The milliseconds of a plain copy of the file, which is in the page cache, into fresh memory.
double copy_ms(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  const double start = now_ms();
  const std::unique_ptr<std::byte[]> to(new std::byte[file.bytes().size()]);
  std::memcpy(to.get(), file.bytes().data(), file.bytes().size());
  const double ms = now_ms() - start;
  return to[file.bytes().size() / 2] == std::byte{1} ? ms + 1e-9 : ms;  // uses the copy, so it is not optimized away
}

// The milliseconds of the spans of a trace with these names.
double traced_ms(const Trace& trace, std::string_view category, std::initializer_list<std::string_view> names) {
  const JsonDocument document = JsonDocument::parse(trace.json(), "trace");
  double sum = 0;
  for (const JsonValue& e : document.root().at("traceEvents").elements("traceEvents"))
    if (e.get_string("ph", "") == "X" && e.get_string("cat", "") == category &&
        std::find(names.begin(), names.end(), e.get_string("name", "")) != names.end())
      sum += e.get_number("dur") / 1e3;
  return sum;
}

double tokenizer_ms(const std::string& path) {
  const double start = now_ms();
  std::unique_ptr<Tokenizer> tokenizer;
  if (path.ends_with(".gguf"))
    tokenizer = tokenizer_from_gguf(*GgufFile::open(path));
  else if (path.ends_with(".json"))
    tokenizer = tokenizer_from_json(JsonDocument::read(path));
  else
    tokenizer = load_tokenizer(path);
  return now_ms() - start;
}

// The time from load to the first token after a prompt of 128, and its parts.
void time_start(const std::string& path, const DecoderOptions& options, Session& session,
                const std::string& tokenizer) {
  const double tokenizer_took = tokenizer.empty() ? 0 : tokenizer_ms(tokenizer);
  const auto trace = std::make_shared<Trace>();
  session.with_trace(trace);
  double before = now_ms();
  DecoderModel m = DecoderModel::load(path, options, session);
  const double loaded = now_ms() - before, compiled = traced_ms(*trace, "compile", {"compile"}),
               weights = traced_ms(*trace, "weights", {"load", "finalize"});
  const std::vector<TokenId> ids = prompt(128, m.config().vocab_size, 1);
  std::vector<double> prompts;
  double peak = 0, anonymous = 0;
  for (int i = 0; i < 6; ++i) {
    m.reset();
    before = now_ms();
    (void)m.forward(ids, LogitRows::Last);
    prompts.push_back(now_ms() - before);
    if (i == 0) peak = status_mb("VmHWM"), anonymous = status_mb("RssAnon");
  }
  const double first = prompts.front();
  prompts.erase(prompts.begin());
  std::printf("\"tokenizer_ms\": %.1f, \"open_ms\": %.1f, \"compile_ms\": %.1f, \"weights_ms\": %.1f, ", tokenizer_took,
              loaded - compiled - weights, compiled, weights);
  std::printf("\"load_ms\": %.1f, \"first_ms\": %.1f, \"prefill128\": %.1f, \"copy_ms\": %.1f, ", loaded, first,
              median(prompts), copy_ms(path));
  if (m.packed_weights())
    std::printf("\"found_mb\": %.1f, \"saved_mb\": %.1f, ",
                static_cast<double>(m.packed_weights()->found_bytes()) / 1e6,
                static_cast<double>(m.packed_weights()->saved_bytes()) / 1e6);
  std::printf("\"peak_mb\": %.0f, \"anonymous_mb\": %.0f, \"file_mb\": %.0f}\n", peak, anonymous,
              static_cast<double>(std::filesystem::file_size(path)) / 1e6);
}

// The matmuls of a run of some tokens: 10^9 operations, and 10^6 bytes that they read.
struct MatmulWork {
  double gop = 0, read_mb = 0;
};
MatmulWork matmul_work(DecoderModel& m, std::size_t tokens) {
  MatmulWork work;
  m.reset();
  for (const NodeTime& t : m.profile(prompt(tokens, m.config().vocab_size, 1))) {
    if (!t.kernel.starts_with("gemm")) continue;
    work.gop += t.cost.flops / 1e9, work.read_mb += t.cost.read_bytes / 1e6;
  }
  return work;
}

// The time of each thread in some runs of the same tokens.
template <class F>
void thread_breakdown(int runs, F&& run) {
  Trace trace;
  for (int i = 0; i < runs; ++i) {
    const TraceScope recorded(&trace);
    const TraceSpan span("run", "run");
    run();
  }
  std::fprintf(stderr, "%s\n", thread_times_text(thread_times(trace), runs).c_str());
}

void breakdown(DecoderModel& m, std::size_t tokens) {
  std::map<std::string, std::pair<double, int>> rows;
  double all = 0;
  for (const NodeTime& t : m.profile(prompt(tokens, m.config().vocab_size, 5))) {
    auto& row = rows[t.op + "  " + t.kernel];
    row.first += t.ns / 1e6, ++row.second, all += t.ns / 1e6;
  }
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, row] : rows) sorted.emplace_back(row.first, concat_text(name, " x", row.second));
  std::sort(sorted.rbegin(), sorted.rend());
  std::fprintf(stderr, "%zu tokens behind %lld: %.2f ms\n", tokens, static_cast<long long>(m.length()), all);
  for (const auto& [ms, name] : sorted)
    if (ms > all / 200) std::fprintf(stderr, "%9.3f ms  %s\n", ms, name.c_str());
}

// All sequences at once: new tokens per second of the whole time, and the time of a step with all of them.
void batch(DecoderModel& m, std::int64_t sequences) {
  std::vector<double> rates, steps;
  CpuUse use;
  for (int round = 0; round < 3; ++round) {
    m.reset();
    const double start = now_ms();
    std::vector<std::vector<TokenId>> prompts;
    std::vector<SequenceTokens> parts;
    for (std::int64_t s = 0; s < sequences; ++s)
      prompts.push_back(prompt(64, m.config().vocab_size, static_cast<std::uint32_t>(s + round * 100)));
    for (std::int64_t s = 0; s < sequences; ++s) parts.push_back({s, prompts[static_cast<std::size_t>(s)]});
    (void)m.forward(parts, LogitRows::Last);
    for (int i = 1; i < 64; ++i) {
      for (std::int64_t s = 0; s < sequences; ++s)
        parts[static_cast<std::size_t>(s)].tokens = std::span(prompts[static_cast<std::size_t>(s)]).first(1);
      steps.push_back(use.timed([&] { (void)m.forward(parts, LogitRows::Last); }));
    }
    rates.push_back(64.0 * static_cast<double>(sequences) / (now_ms() - start) * 1e3);
  }
  std::printf("\"batch\": %lld, \"tok_s\": %.1f, \"step_p50\": %.2f, \"cpus\": %.3f}\n",
              static_cast<long long>(sequences), median(rates), median(steps), use.cpus());
}

}  // namespace

int main(int argc, char** argv) {
  compare_before_if_asked(argc, argv);
  const auto arg = [&](int i, const char* otherwise) { return std::string(argc > i ? argv[i] : otherwise); };
  if (argc < 2) {
    std::fprintf(
        stderr,
        "usage: language_model MODEL [threads] [products] [cache] [context] [sequences] [breakdown|decode|start]\n");
    return 2;
  }
  try {
    const int threads = std::atoi(arg(2, "1").c_str());
    Session session = Session().with_threads(threads);
    if (const std::size_t comma = arg(2, "").find(','); comma != std::string::npos)
      session.with_isa(arg(2, "").substr(comma + 1));
    const std::string products = arg(3, "auto"), cache = arg(4, "f32");
    const auto context = static_cast<std::size_t>(std::atoll(arg(5, "128").c_str()));
    const std::int64_t sequences = std::atoll(arg(6, "1").c_str());
    DecoderOptions o;
    o.context = static_cast<std::int64_t>(std::max<std::size_t>(context + 64, sequences > 1 ? 256 : 1024));
    o.page = 64;
    o.sequences = sequences;
    o.matmul_precision = matmul_precision_named(products, arg(1, ""));
    if (cache == "q8_0") o.cache_scheme = QuantScheme::Q8_0;
    if (cache == "bf16") o.cache_dtype = DType::BF16;
    if (cache == "f16") o.cache_dtype = DType::F16;
    const auto print_head = [&] {
      std::printf("{\"engine\": \"rlx\", \"model\": \"%s\", \"threads\": %d, \"products\": \"%s\", \"cache\": \"%s\", ",
                  argv[1], threads, products.c_str(), cache.c_str());
    };
    if (arg(7, "") == "start") {
      o.packed_weights = arg(8, "");
      print_head();
      time_start(arg(1, ""), o, session, arg(9, ""));
      return 0;
    }
    const double start = now_ms();
    DecoderModel m = DecoderModel::load(arg(1, ""), o, session);
    const double loaded = now_ms() - start;
    const std::int64_t vocab = m.config().vocab_size;
    if (arg(7, "") == "logits") {
      std::vector<TokenId> ids = prompt(128, vocab, 1);
      if (argc > 8) {
        const std::string bytes = read_file(argv[8]);
        ids.resize(bytes.size() / sizeof(TokenId));
        std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(TokenId));
      }
      const Tensor y = m.forward(ids);
      std::fwrite(y.data(), 1, y.size_bytes(), stdout);
      return 0;
    }
    print_head();
    if (sequences > 1) {
      batch(m, sequences);
      return 0;
    }
    CpuUse use;
    const auto prefill = [&](std::size_t n) {
      const std::vector<TokenId> ids = prompt(n, vocab, 1);
      m.reset();
      return use.timed([&] { (void)m.forward(ids, LogitRows::Last); });
    };
    const auto step = [&](const TokenId& id) { return use.timed([&] { (void)m.forward({&id, 1}); }); };
    std::vector<double> p128, p512, decode;
    const std::vector<TokenId> ids = prompt(32, vocab, 9);
    if (arg(7, "") == "decode") {
      prefill(context);
      use = CpuUse();
      for (const TokenId id : prompt(48, vocab, 9)) decode.push_back(step(id));
      std::printf("\"decode_p50\": %.2f, \"context\": %zu, \"load_s\": %.2f, \"cpus\": %.3f}\n", median(decode),
                  context, loaded / 1e3, use.cpus());
      return 0;
    }
    prefill(512), prefill(128);
    use = CpuUse();
    for (int round = 0; round < 4; ++round) {
      p512.push_back(prefill(512));
      for (int i = 0; i < 3; ++i) p128.push_back(prefill(128));
      if (context != 128) prefill(context);
      for (const TokenId id : ids) decode.push_back(step(id));
    }
    std::sort(decode.begin(), decode.end());
    std::printf(
        "\"decode_p50\": %.2f, \"decode_p10\": %.2f, \"n\": %zu, \"context\": %zu, \"prefill128\": %.2f, "
        "\"prefill512\": %.2f, \"load_s\": %.2f, \"cpus\": %.3f, ",
        decode[decode.size() / 2], decode[decode.size() / 10], decode.size(), context, median(p128), median(p512),
        loaded / 1e3, use.cpus());
    std::printf("\"gop128\": %.3f, \"gop512\": %.3f, \"read_mb\": %.3f}\n", matmul_work(m, 128).gop,
                matmul_work(m, 512).gop, matmul_work(m, 1).read_mb);
    if (arg(7, "") == "breakdown") {
      const std::size_t all = std::min<std::size_t>(context, 512);
      prefill(context);
      breakdown(m, 1);
      thread_breakdown(8, [&] { (void)m.forward({ids.data(), 1}); });
      m.reset();
      breakdown(m, all);
      thread_breakdown(3, [&] {
        m.reset();
        (void)m.forward(prompt(all, vocab, 1), LogitRows::Last);
      });
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
