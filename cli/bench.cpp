// `rlx bench`: latency of a sentence encoder per shape, and where the time goes.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "rlx/driver/registry.h"
#include "rlx/models/bert.h"
#include "rlx/models/config.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/rlx.h"

namespace rlx::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  std::string model;
  std::vector<std::string> shapes = {"1x16", "1x128", "8x32", "8x128", "32x128"};
  int threads = 0;
  std::string isa;
  int min_runs = 20;
  double budget_s = 3;
  bool json = false, breakdown = false;
};

double us_since(Clock::time_point t) { return std::chrono::duration<double, std::micro>(Clock::now() - t).count(); }

std::pair<std::int64_t, std::int64_t> parse_shape(const std::string& text) {
  long long b = 0, s = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%lldx%lld%c", &b, &s, &rest) != 2 || b < 1 || s < 1)
    throw Error(ErrorCode::InvalidArgument, concat_text("'", text, "' is no shape"), "write BATCHxSEQUENCE, for example 8x128");
  return {b, s};
}

struct Run {
  std::int64_t batch = 0, seq = 0;
  std::vector<std::int32_t> ids;
  std::vector<float> mask, out;
  std::int64_t id_dims[2] = {}, out_dims[2] = {};
  TensorView inputs[2];
  MutableTensorView output;

  // The token ids of the peers' bench: spread over the vocabulary, the same in every engine.
  Run(std::int64_t b, std::int64_t s, std::int64_t hidden, std::int64_t vocab) : batch(b), seq(s) {
    for (std::int64_t i = 0; i < b; ++i)
      for (std::int64_t j = 0; j < s; ++j) ids.push_back(static_cast<std::int32_t>((1000 + (i * 131 + j * 17) % 20000) % vocab));
    mask.assign(static_cast<std::size_t>(b * s), 1.0f);
    out.resize(static_cast<std::size_t>(b * hidden));
    id_dims[0] = b, id_dims[1] = s;
    out_dims[0] = b, out_dims[1] = hidden;
    inputs[0] = {ids.data(), DType::I32, id_dims, ids.size() * sizeof(std::int32_t)};
    inputs[1] = {mask.data(), DType::F32, id_dims, mask.size() * sizeof(float)};
    output = {out.data(), DType::F32, out_dims, out.size() * sizeof(float)};
  }
};

// Packed products of a profiled run on one thread: the share of the time that GEMM tuning can change.
struct GemmShare {
  double flops = 0, ns = 0;
};
GemmShare gemm_share(CompiledGraph& f, Run& r) {
  std::vector<GemmShare> runs;
  for (int i = 0; i < 5; ++i) {
    GemmShare share;
    for (const NodeTime& n : f.profile(r.inputs)) {
      if (n.op != "packed_dot") continue;
      share.flops += n.cost.flops;
      share.ns += n.ns;
    }
    runs.push_back(share);
  }
  std::nth_element(runs.begin(), runs.begin() + 2, runs.end(), [](const GemmShare& a, const GemmShare& b) { return a.ns < b.ns; });
  return runs[2];
}

// Milliseconds to copy every weight of the checkpoint into freshly mapped pages: what no preparation of them can beat.
double copy_weights_ms(const WeightLoader& weights, std::size_t& bytes) {
  bytes = 0;
  for (const std::string& name : weights.names()) bytes += weights.find(name)->size_bytes;
  auto start = Clock::now();
  void* to = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (to == MAP_FAILED) throw Error(ErrorCode::OutOfMemory, concat_text("there is no room for a copy of the weights (", bytes, " bytes)"));
  auto* at = static_cast<std::byte*>(to);
  for (const std::string& name : weights.names()) {
    auto view = weights.find(name);
    std::memcpy(at, view->data, view->size_bytes);
    at += view->size_bytes;
  }
  double ms = us_since(start) / 1e3;
  munmap(to, bytes);
  return ms;
}

// Where the time of a run on one thread goes, kernel by kernel, beside the least time that `limits` allow.
void print_breakdown(CompiledGraph& f, Run& r, const MachineLimits& limits) {
  struct Row {
    double ns = 0, floor_ns = 0, flops = 0, bytes = 0;
    int nodes = 0;
  };
  // The median of several profiled runs, node by node, then summed by kernel.
  std::vector<std::vector<NodeTime>> runs;
  for (int i = 0; i < 15; ++i) runs.push_back(f.profile(r.inputs));
  std::map<std::string, Row> rows;
  Row all;
  for (std::size_t n = 0; n < runs[0].size(); ++n) {
    std::vector<double> ns;
    for (const auto& run : runs) ns.push_back(run[n].ns);
    std::nth_element(ns.begin(), ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2), ns.end());
    const NodeTime& t = runs[0][n];
    for (Row* row : {&rows[concat_text(t.op, "  ", t.kernel)], &all}) {
      row->ns += ns[ns.size() / 2];
      row->floor_ns += limits.floor_ns(t.cost);
      row->flops += t.cost.flops;
      row->bytes += t.cost.read_bytes + t.cost.write_bytes;
      ++row->nodes;
    }
  }
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  sorted.emplace_back("all", all);
  std::printf("  %-52s %5s %10s %6s %10s %7s %8s %7s\n", "op  kernel, on one thread", "nodes", "us", "%", "floor us", "floor %",
              "GFLOP/s", "GB/s");
  for (const auto& [name, row] : sorted)
    std::printf("  %-52s %5d %10.1f %6.1f %10.1f %7.1f %8.1f %7.1f\n", name.c_str(), row.nodes, row.ns / 1e3, 100 * row.ns / all.ns,
                row.floor_ns / 1e3, 100 * row.floor_ns / row.ns, row.flops / row.ns, row.bytes / row.ns);
}

void bench(const BenchOptions& o) {
  if (std::isnan(o.budget_s)) throw Error(ErrorCode::InvalidArgument, "--seconds is not a number");
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const std::string& text : o.shapes) shapes.push_back(parse_shape(text));
  SentenceModelConfig config = read_sentence_config(o.model);
  BertGraphOptions graph_options;
  graph_options.pooling = config.pooling;
  graph_options.normalize = config.normalize;
  Session session;
  if (o.threads) session.with_threads(o.threads);
  if (!o.isa.empty()) session.with_isa(o.isa);
  const std::string weights_file = weights_path(o.model);
  std::shared_ptr<const WeightLoader> weights = open_checkpoint(weights_file);
  std::size_t weight_bytes = 0;
  double copy_ms = copy_weights_ms(*weights, weight_bytes);  // reads the file into the page cache
  copy_ms = std::min(copy_ms, copy_weights_ms(*weights, weight_bytes));
  Graph g = build_sentence_encoder(config.bert, graph_options);
  auto start = Clock::now();
  CompiledGraph f = session.compile(std::move(g));
  load_checkpoint(f, weights, weights_file);
  double load_ms = us_since(start) / 1e3;
  if (!o.json) std::printf("%s, %s\n", f.target_name().c_str(), o.model.c_str());
  MachineLimits limits;
  if (o.breakdown && !o.json) {
    limits = backend_for(Device::Cpu)->measure_limits({1, o.isa}).value_or(MachineLimits{});
    std::printf("floor, measured now on one thread: %.1f GFLOP/s; GB/s of a buffer of", limits.gflops);
    for (const MachineLimits::Bandwidth& b : limits.bandwidth) std::printf(" %zu KiB: %.0f", b.bytes >> 10, b.gb_per_s);
    std::printf("\n");
  }
  for (std::size_t n = 0; n < shapes.size(); ++n) {
    const std::string& text = o.shapes[n];
    const auto [b, s] = shapes[n];
    auto t = Clock::now();
    std::vector<std::int64_t> dims{b, s};
    f.prepare_shape(std::vector<std::vector<std::int64_t>>{dims, dims});
    double compile_ms = us_since(t) / 1e3;
    Run r(b, s, config.bert.hidden_size, config.bert.vocab_size);
    auto warm = Clock::now();
    for (int i = 0; i < 50 && (i < 3 || us_since(warm) < 0.1e6); ++i) f.run_into(r.inputs, {&r.output, 1});
    std::vector<double> us;
    auto begin = Clock::now();
    while ((static_cast<int>(us.size()) < o.min_runs || us_since(begin) < o.budget_s * 0.1e6) && us.size() < 20000) {
      auto one = Clock::now();
      f.run_into(r.inputs, {&r.output, 1});
      us.push_back(us_since(one));
      if (us_since(begin) > o.budget_s * 1e6 && us.size() >= 5) break;
    }
    std::sort(us.begin(), us.end());
    double p50 = us[(us.size() - 1) / 2], p10 = us[(us.size() - 1) / 10];
    double flops = 0;
    for (const NodeTime& node : f.profile(r.inputs)) flops += node.cost.flops;
    if (o.json) {
      const GemmShare gemm = gemm_share(f, r);
      std::printf("{\"bench\":\"minilm\",\"engine\":\"rlx\",\"target\":\"%s\",\"case\":\"%s\",\"p50_us\":%.2f,\"p10_us\":%.2f,\"n\":%zu,"
                  "\"load_ms\":%.2f,\"compile_ms\":%.2f,\"copy_ms\":%.2f,\"weight_bytes\":%zu,\"prepared_bytes\":%zu,\"arena_bytes\":%zu,"
                  "\"gflop\":%.6f,\"gemm_gflop\":%.6f,\"gemm_us\":%.2f,\"check\":\"%.5f %.5f %.5f\"}\n",
                  f.target_name().c_str(), text.c_str(), p50, p10, us.size(), load_ms, compile_ms, copy_ms, weight_bytes, f.prepared_bytes(), f.arena_bytes(),
                  flops / 1e9, gemm.flops / 1e9, gemm.ns / 1e3, static_cast<double>(r.out[0]), static_cast<double>(r.out[1]), static_cast<double>(r.out.back()));
    } else {
      std::printf("%-8s p50 %9.1f us   p10 %9.1f us   %7.1f GFLOP/s   ready in %.2f ms   arena %.2f MB\n", text.c_str(), p50, p10, flops / p50 / 1e3,
                  compile_ms, static_cast<double>(f.arena_bytes()) / 1e6);
      if (o.breakdown) print_breakdown(f, r, limits);
    }
    std::fflush(stdout);
  }
}

}  // namespace

void register_bench(CLI::App& app) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* sub = app.add_subcommand("bench", "Measure the latency of a sentence encoder per shape");
  sub->add_option("--model", o->model, "model folder")->required();
  sub->add_option("--shapes", o->shapes, "BATCHxSEQUENCE, several by commas")->delimiter(',');
  sub->add_option("--threads", o->threads, "threads (default: the machine's)")->check(CLI::Range(1, 1024));
  sub->add_option("--isa", o->isa, "force an instruction set: avx512, avx2, sse4, generic");
  sub->add_option("--runs", o->min_runs, "least number of timed runs a shape")->check(CLI::Range(1, 1000000));
  sub->add_option("--seconds", o->budget_s, "time budget a shape")->check(CLI::Range(0.001, 3600.0));
  sub->add_flag("--json", o->json, "one JSON object per shape");
  sub->add_flag("--breakdown", o->breakdown, "time by kernel, beside the floor that arithmetic and memory set");
  sub->callback([o] { bench(*o); });
}

}  // namespace rlx::cli
