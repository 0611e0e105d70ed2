// `rlx bench`: latency of a graph file, or of a sentence encoder per shape, and where the time goes.
#include <sys/mman.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/file_bindings.h"
#include "cli/graph_file.h"
#include "cli/made_up.h"
#include "cli/memory_report.h"
#include "cli/model_names.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "rlx/formats/json.h"
#include "rlx/formats/thread_times.h"
#include "rlx/models/config.h"
#include "rlx/models/encoder/bert.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/rlx.h"
#include "rlx/threads/thread_pool.h"

#ifndef RLX_VERSION  // our build defines these
#define RLX_VERSION "of an unknown version"
#endif

namespace rlx::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  std::string graph, model;
  std::vector<std::string> bindings;
  FileBindings files;
  std::vector<std::string> shapes = {"1x16", "1x128", "8x32", "8x128", "32x128"};
  int threads = 0;
  std::string device = "cpu";
  std::string isa;
  std::string matmul_precision = "exact";
  int min_runs = 20;
  double budget_s = 3;
  bool json = false, breakdown = false, memory = false;
};

double us_since(Clock::time_point t) { return std::chrono::duration<double, std::micro>(Clock::now() - t).count(); }

std::pair<std::int64_t, std::int64_t> parse_shape(const std::string& text) {
  std::int64_t b = 0, s = 0;
  const char* const end = text.data() + text.size();
  const auto [x, bad_batch] = std::from_chars(text.data(), end, b);
  const bool good = bad_batch == std::errc() && x != end && *x == 'x';
  const auto [rest, bad_length] = std::from_chars(good ? x + 1 : end, end, s);
  if (!good || bad_length != std::errc() || rest != end || b < 1 || s < 1)
    throw UsageError(ErrorCode::InvalidArgument, concat_text("'", text, "' is not a shape"),
                     "write BATCHxSEQUENCE, for example 8x128");
  return {b, s};
}

// The processor's name and the number of CPUs that this process may use.
std::string machine_name() {
  std::string name;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; name.empty() && std::getline(info, line);)
    if (line.starts_with("model name")) name = line.substr(std::min(line.find(": ") + 2, line.size()));
  utsname system{};
  if (name.empty()) name = uname(&system) == 0 ? system.machine : "unknown processor";
  return concat_text(name, ", ", available_cpus(), available_cpus() == 1 ? " CPU" : " CPUs");
}

// Latencies of repeated runs, in microseconds, and the CPU time of all threads over the wall time.
struct Timing {
  double p10 = 0, p50 = 0, p90 = 0, cpus = 0;
  std::size_t n = 0;
};
Timing measure(const BenchOptions& o, const std::function<void()>& run) {
  const auto warm = Clock::now();
  for (int i = 0; i < 50 && (i < 3 || us_since(warm) < 0.1e6); ++i) run();
  std::vector<double> us;
  const std::clock_t used = std::clock();
  const auto begin = Clock::now();
  while ((static_cast<int>(us.size()) < o.min_runs || us_since(begin) < o.budget_s * 0.1e6) && us.size() < 20000) {
    const auto one = Clock::now();
    run();
    us.push_back(us_since(one));
    if (us_since(begin) > o.budget_s * 1e6 && us.size() >= 5) break;
  }
  const double cpus = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC / (us_since(begin) / 1e6);
  std::sort(us.begin(), us.end());
  const std::size_t last = us.size() - 1;
  return {us[last / 10], us[last / 2], us[last - last / 10], cpus, us.size()};
}

double profiled_flops(CompiledGraph& f, std::span<const TensorView> inputs) {
  double flops = 0;
  for (const NodeTime& node : f.profile(inputs)) flops += node.cost.flops;
  return flops;
}

constexpr MatmulPrecision kMatmulPrecisions[] = {MatmulPrecision::Exact, MatmulPrecision::BF16, MatmulPrecision::Int8};

// The precision of the matmuls of `f`: that of --matmul-precision if any packed weight is lossy, else exact.
std::string_view lost_by(const CompiledGraph& f, const BenchOptions& o) {
  const Graph& prepare = f.compile_result().lir.prepare;
  for (const Node& n : prepare.nodes())
    if (n.kind() == OpKind::Relayout && !n.op.as<ops::Relayout>().form.lossless) return o.matmul_precision;
  return matmul_precision_name(MatmulPrecision::Exact);
}

// Begins the JSON object of a case. The caller adds further members and prints it.
JsonWriter json_row(const char* kind, const CompiledGraph& f, const Session& session, const BenchOptions& o,
                    const std::string& name, const Timing& t) {
  JsonWriter json;
  json.begin_object().member("bench", kind).member("engine", "rlx").member("machine", machine_name());
  json.member("target", f.target_name()).member("threads", session.target()->threads());
  json.member("matmul_precision", lost_by(f, o)).member("case", name);
  json.member("products", lost_by(f, o));  // the key of the last release
  json.member("p50_us", t.p50).member("p10_us", t.p10).member("p90_us", t.p90).member("n", std::uint64_t{t.n});
  json.member("cpus", t.cpus);
  return json;
}

void print_json(JsonWriter json) {
  Output out("-");
  out.write(json.end_object().take() + "\n");
  out.close();
}

void print_header(const CompiledGraph& f, const BenchOptions& o, const std::string& what) {
  std::printf(
      "rlx " RLX_VERSION " on %s\n%s, %s matmuls%s, %s\n", machine_name().c_str(), f.target_name().c_str(),
      o.matmul_precision.c_str(),
      o.matmul_precision == matmul_precision_name(MatmulPrecision::Exact) ? "" : " where kernels for them exist",
      what.c_str());
}

void print_row(const std::string& name, const Timing& t, double flops, double ready_ms, const CompiledGraph& f) {
  std::printf("%-8s p50 %9.1f us   p10 %9.1f   p90 %9.1f   %7.1f GFLOP/s   ready in %.2f ms   arena %.2f MB\n",
              name.c_str(), t.p50, t.p10, t.p90, flops / t.p50 / 1e3, ready_ms,
              static_cast<double>(f.arena_bytes()) / 1e6);
}

struct Run {
  std::vector<std::int32_t> ids;
  std::vector<float> mask, out;
  std::int64_t id_dims[2] = {}, out_dims[2] = {};
  TensorView inputs[2];
  MutableTensorView output;

  // Token ids spread over the vocabulary, the same as in the benches of other engines.
  Run(std::int64_t b, std::int64_t s, std::int64_t hidden, std::int64_t vocab) {
    for (std::int64_t i = 0; i < b; ++i)
      for (std::int64_t j = 0; j < s; ++j)
        ids.push_back(static_cast<std::int32_t>((1000 + (i * 131 + j * 17) % 20000) % vocab));
    mask.assign(static_cast<std::size_t>(b * s), 1.0f);
    out.resize(static_cast<std::size_t>(b * hidden));
    id_dims[0] = b, id_dims[1] = s;
    out_dims[0] = b, out_dims[1] = hidden;
    inputs[0] = {ids.data(), DType::I32, id_dims, ids.size() * sizeof(std::int32_t)};
    inputs[1] = {mask.data(), DType::F32, id_dims, mask.size() * sizeof(float)};
    output = {out.data(), DType::F32, out_dims, out.size() * sizeof(float)};
  }
};

// FLOPs and time of the packed GEMMs in a profiled run on one thread.
struct GemmShare {
  double flops = 0, ns = 0;
};
GemmShare gemm_share(CompiledGraph& f, Run& r) {
  std::vector<GemmShare> runs;
  for (int i = 0; i < 5; ++i) {
    GemmShare share;
    for (const NodeTime& n : f.profile(r.inputs)) {
      if (!n.kernel.starts_with("gemm_packed")) continue;
      share.flops += n.cost.flops;
      share.ns += n.ns;
    }
    runs.push_back(share);
  }
  std::nth_element(runs.begin(), runs.begin() + 2, runs.end(),
                   [](const GemmShare& a, const GemmShare& b) { return a.ns < b.ns; });
  return runs[2];
}

// Milliseconds to copy every weight of the checkpoint into freshly mapped pages: the lower bound of any weight packing.
double copy_weights_ms(const WeightLoader& weights, std::size_t& bytes) {
  bytes = 0;
  for (const std::string& name : weights.names()) bytes += weights.find(name)->size_bytes;
  auto start = Clock::now();
  void* to = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (to == MAP_FAILED)
    throw Error(ErrorCode::OutOfMemory, concat_text("not enough memory for a copy of the weights (", bytes, " bytes)"));
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

// The time of each kernel of a run, the slowest first. On the cpu the run has one thread, and `floor_ns` is the
// roofline bound from the machine limits.
struct KernelTime {
  std::string op, kernel;
  double ns = 0, floor_ns = 0, flops = 0, bytes = 0;
  int nodes = 0;
};
std::vector<KernelTime> breakdown_of(CompiledGraph& f, std::span<const TensorView> inputs,
                                     const MachineLimits& limits) {
  std::map<std::pair<std::string, std::string>, KernelTime> rows;
  for (const NodeTime& t : median_profile(f, inputs)) {
    KernelTime& row = rows.try_emplace({t.op, t.kernel}, KernelTime{t.op, t.kernel}).first->second;
    row.ns += t.ns;
    row.floor_ns += limits.floor_ns(t.cost);
    row.flops += t.cost.flops;
    row.bytes += t.cost.read_bytes + t.cost.write_bytes;
    ++row.nodes;
  }
  std::vector<KernelTime> sorted;
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  std::sort(sorted.begin(), sorted.end(), [](const KernelTime& a, const KernelTime& b) { return a.ns > b.ns; });
  return sorted;
}

void print_breakdown(std::vector<KernelTime> rows, const CompiledGraph& f) {
  const bool floors = f.device() == Device::Cpu;
  KernelTime all{"all", ""};
  for (const KernelTime& row : rows) {
    all.ns += row.ns, all.floor_ns += row.floor_ns, all.flops += row.flops, all.bytes += row.bytes;
    all.nodes += row.nodes;
  }
  rows.push_back(all);
  std::printf("  %-52s %5s %10s %6s", floors ? "op  kernel, on one thread" : "op  kernel", "nodes", "us", "%");
  if (floors) std::printf(" %11s %10s", "roofline us", "roofline %");
  std::printf(" %8s %7s\n", "GFLOP/s", "GB/s");
  for (const KernelTime& row : rows) {
    std::printf("  %-52s %5d %10.1f %6.1f",
                row.kernel.empty() ? row.op.c_str() : concat_text(row.op, "  ", row.kernel).c_str(), row.nodes,
                row.ns / 1e3, 100 * row.ns / all.ns);
    if (floors) std::printf(" %11.1f %10.1f", row.floor_ns / 1e3, 100 * row.floor_ns / row.ns);
    std::printf(" %8.1f %7.1f\n", row.flops / row.ns, row.bytes / row.ns);
  }
}

// Adds the rows to the JSON object of a case. On the cpu it first adds the machine limits from which `floor_ns`
// follows.
void add_breakdown(JsonWriter& json, const std::vector<KernelTime>& rows, const MachineLimits& limits) {
  const bool floors = limits.gflops > 0;
  if (floors) {
    json.key("limits").begin_object().member("gflop_per_s", limits.gflops).key("bandwidth").begin_array();
    for (const MachineLimits::Bandwidth& b : limits.bandwidth)
      json.begin_object().member("bytes", std::uint64_t{b.bytes}).member("gb_per_s", b.gb_per_s).end_object();
    json.end_array().end_object();
  }
  json.key("breakdown").begin_array();
  for (const KernelTime& row : rows) {
    json.begin_object().member("op", row.op).member("kernel", row.kernel).member("nodes", row.nodes);
    json.member("us", row.ns / 1e3).member("gflop", row.flops / 1e9);
    if (floors) json.member("floor_us", row.floor_ns / 1e3);
    json.member("bytes", row.bytes).end_object();
  }
  json.end_array();
}

// For --breakdown on the cpu with several threads: what each thread does, with its waits.
constexpr int kThreadRuns = 15;
template <class F>
std::vector<ThreadTimes> threads_of(const BenchOptions& o, const CompiledGraph& f, const Session& session, F&& run) {
  if (!o.breakdown || f.device() != Device::Cpu || session.target()->threads() == 1) return {};
  Trace trace;
  for (int i = 0; i < kThreadRuns; ++i) {
    const TraceScope recorded(&trace);
    const TraceSpan span("run", "run");
    run();
  }
  return thread_times(trace);
}

void add_threads(JsonWriter& json, const std::vector<ThreadTimes>& threads) {
  if (threads.empty()) return;
  const auto us = [](double ms) { return ms * 1e3 / kThreadRuns; };
  json.key("thread_breakdown").begin_array();
  for (const ThreadTimes& t : threads) {
    json.begin_object().member("thread", t.thread).member("busy_us", us(t.busy_ms));
    json.member("waiting_us", us(t.waiting_ms)).key("kernels").begin_array();
    for (const ThreadTimes::Kernel& k : t.kernels)
      json.begin_object().member("op", k.op).member("kernel", k.kernel).member("us", us(k.ms)).end_object();
    json.end_array().end_object();
  }
  json.end_array();
}

// For --breakdown on the cpu: measures the limits of the machine now, and prints them unless the output is JSON.
MachineLimits measured_limits(const BenchOptions& o, const CompiledGraph& f) {
  if (!o.breakdown || f.device() != Device::Cpu) return {};
  const MachineLimits limits = one_thread_limits(Device::Cpu, o.isa);
  if (o.json) return limits;
  std::printf("roofline, measured now on one thread: %.1f GFLOP/s; GB/s of a buffer of", limits.gflops);
  for (const MachineLimits::Bandwidth& b : limits.bandwidth) std::printf(" %zu KiB: %.0f", b.bytes >> 10, b.gb_per_s);
  std::printf("\n");
  return limits;
}

// The parser has checked the name.
MatmulPrecision matmul_precision_called(const std::string& name) {
  return *std::find_if(std::begin(kMatmulPrecisions), std::end(kMatmulPrecisions),
                       [&](MatmulPrecision p) { return matmul_precision_name(p) == name; });
}

Session session_of(const BenchOptions& o) {
  Session session = session_on(o.device).with_threads(o.threads);
  session.with_policy(PrecisionPolicy::with_matmul_precision(matmul_precision_called(o.matmul_precision)));
  if (!o.isa.empty()) check_arguments([&] { return session.with_isa(o.isa).target(); });  // throws for an unknown name
  return session;
}

void bench_model(const BenchOptions& o) {
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const std::string& text : o.shapes) shapes.push_back(parse_shape(text));
  SentenceModelConfig config = read_sentence_config(o.model);
  const Session session = session_of(o);
  const bool bert = config.encoder.family == "bert" && config.dense.empty();
  std::string weights_file;
  std::shared_ptr<const WeightLoader> weights;
  ModelWeights opened;  // families other than BERT, whose graph depends on the weights
  if (bert) {
    weights_file = weights_path(o.model);
    weights = open_checkpoint(weights_file);
  } else {
    opened = open_encoder_weights(o.model, config.encoder, encoder_graph_options(config));
    weights = opened.loader;
  }
  std::size_t weight_bytes = 0;
  double copy_ms = copy_weights_ms(*weights, weight_bytes);  // reads the file into the page cache
  copy_ms = std::min(copy_ms, copy_weights_ms(*weights, weight_bytes));
  BertGraphOptions graph_options;
  graph_options.pooling = config.pooling;
  graph_options.normalize = config.normalize;
  Graph g = bert ? build_sentence_encoder(config.bert, graph_options)
                 : build_encoder(config.encoder, opened, encoder_graph_options(config));
  auto start = Clock::now();
  CompiledGraph f = session.compile(std::move(g));
  if (bert)
    load_checkpoint(f, weights, weights_file);
  else
    f.load_params(weights, LoadMode::Subset);
  double load_ms = us_since(start) / 1e3;
  if (!o.json) print_header(f, o, o.model);
  const MachineLimits limits = measured_limits(o, f);
  for (std::size_t n = 0; n < shapes.size(); ++n) {
    const auto [b, s] = shapes[n];
    auto t = Clock::now();
    std::vector<std::int64_t> dims{b, s};
    f.prepare_shape(std::vector<std::vector<std::int64_t>>{dims, dims});
    double compile_ms = us_since(t) / 1e3;
    Run r(b, s, config.width(), config.encoder.vocab_size);
    const auto run = [&] { f.run_into(r.inputs, {&r.output, 1}); };
    const Timing timing = measure(o, run);
    const double flops = profiled_flops(f, r.inputs);
    if (o.json) {
      const GemmShare gemm = gemm_share(f, r);
      char check[64];
      std::snprintf(check, sizeof check, "%.5f %.5f %.5f", static_cast<double>(r.out[0]), static_cast<double>(r.out[1]),
                    static_cast<double>(r.out.back()));
      JsonWriter json = json_row("minilm", f, session, o, o.shapes[n], timing);
      json.member("load_ms", load_ms).member("compile_ms", compile_ms).member("copy_ms", copy_ms);
      json.member("weight_bytes", std::uint64_t{weight_bytes});
      json.member("prepared_bytes", std::uint64_t{f.prepared_bytes()});
      json.member("arena_bytes", std::uint64_t{f.arena_bytes()});
      json.member("gflop", flops / 1e9).member("gemm_gflop", gemm.flops / 1e9).member("gemm_us", gemm.ns / 1e3);
      json.member("check", check);
      if (o.breakdown) add_breakdown(json, breakdown_of(f, r.inputs, limits), limits);
      add_threads(json, threads_of(o, f, session, run));
      print_json(std::move(json));
    } else {
      print_row(o.shapes[n], timing, flops, compile_ms, f);
      if (o.breakdown) print_breakdown(breakdown_of(f, r.inputs, limits), f);
      std::printf("%s", thread_times_text(threads_of(o, f, session, run), kThreadRuns).c_str());
    }
    std::fflush(stdout);
  }
  if (o.memory) report_memory(*session.open_device(), f.prepared_bytes());
}

// Reads the files into `values` and binds the symbols of the graph from --bind and from their shapes. Symbols that the
// graph computes get their values in each run.
Graph static_graph(const BenchOptions& o, NamedTensors& values) {
  Graph g = read_graph(o.graph);
  SymbolBinding binding = parse_symbols(g, o.bindings);
  values = read_bindings(g, o.files);
  std::map<std::string, std::vector<std::int64_t>, std::less<>> dims;
  for (const auto& [name, value] : values) dims.emplace(name, value.dims());
  if (!binding.empty()) g = g.bind(binding);
  binding = solve_symbols(g, dims);
  SymbolBinding known = binding;
  for (const auto& [symbol, source] : g.symbol_sources()) known.emplace(symbol, 0);
  if (const std::string missing = without_value(g, known); !missing.empty())
    throw UsageError(ErrorCode::InvalidArgument, missing,
                     concat_text("choose values, for example: rlx bench ", o.graph, " ", bind_options(g, known),
                                 "\n  or give inputs that have these shapes: --input NAME=FILE.npy"));
  return binding.empty() ? std::move(g) : g.bind(binding);
}

void bench_graph(const BenchOptions& o) {
  NamedTensors values;
  Graph g = static_graph(o, values);
  std::size_t num_made_up = 0;
  std::vector<std::string> inputs, params;
  for (OpKind kind : {OpKind::Input, OpKind::Param})
    for (NodeId id : g.leaves(kind)) {
      const std::string& name = g.leaf_name(id);
      (kind == OpKind::Input ? inputs : params).push_back(name);
      if (values.contains(name)) continue;
      values.emplace(name, made_up_values(g.shape(id), kind == OpKind::Param, ++num_made_up));
    }
  const std::string name = g.name();
  const Session session = session_of(o);
  const auto start = Clock::now();
  CompiledGraph f = session.compile(std::move(g));
  for (const std::string& param : params) f.set_param(param, values.at(param));
  f.finalize();
  const double ready_ms = us_since(start) / 1e3;
  if (!o.json)
    print_header(f, o,
                 concat_text("graph ", name, " (", o.graph, "), ", num_made_up, " of ", values.size(),
                             " inputs and params with made-up values"));
  const MachineLimits limits = measured_limits(o, f);
  std::vector<std::vector<std::int64_t>> dims;
  for (const std::string& input : inputs) dims.push_back(values.at(input).dims());
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = values.at(inputs[i]);
    views.push_back({t.data(), t.dtype(), dims[i], t.size_bytes()});
  }
  const auto run = [&] { f.run_slots(views); };
  const Timing timing = measure(o, run);
  const double flops = profiled_flops(f, views);
  if (o.json) {
    JsonWriter json = json_row("graph", f, session, o, name, timing);
    json.member("ready_ms", ready_ms).member("prepared_bytes", std::uint64_t{f.prepared_bytes()});
    json.member("arena_bytes", std::uint64_t{f.arena_bytes()}).member("gflop", flops / 1e9);
    if (o.breakdown) add_breakdown(json, breakdown_of(f, views, limits), limits);
    add_threads(json, threads_of(o, f, session, run));
    print_json(std::move(json));
  } else {
    print_row(name, timing, flops, ready_ms, f);
    if (o.breakdown) print_breakdown(breakdown_of(f, views, limits), f);
    std::printf("%s", thread_times_text(threads_of(o, f, session, run), kThreadRuns).c_str());
  }
  if (o.memory) report_memory(*session.open_device(), f.prepared_bytes());
}

void bench(const BenchOptions& o) {
  if (std::isnan(o.budget_s)) throw UsageError(ErrorCode::InvalidArgument, "--seconds is not a number");
  if (o.graph.empty() == o.model.empty())
    throw UsageError(ErrorCode::InvalidArgument,
                     o.graph.empty() ? "there is nothing to measure: no graph and no model is given"
                                     : "both a graph and a model are given",
                     "give either a graph file or --model DIR");
  if (o.model.empty()) return bench_graph(o);
  BenchOptions found = o;
  found.model = model_path(o.model);
  bench_model(found);
}

}  // namespace

void register_bench(CommandLine& line) {
  auto o = std::make_shared<BenchOptions>();
  const Command sub = line.add_command("bench", "Measure the latency of a graph, or of a sentence encoder per shape");
  const Argument graph = sub.add_option("graph", o->graph, "Graph in text or binary form; - reads the standard input");
  graph.type_name("FILE");
  add_file_bindings(sub, o->files);
  sub.add_option("-b,--bind", o->bindings, "Value of a symbolic dimension that no input file gives")
      .type_name("SYMBOL=N")
      .one_value_each()
      .needs(graph);
  const Argument model = sub.add_option("--model", o->model, "Model folder of a sentence encoder").type_name("DIR");
  sub.add_option("--shapes", o->shapes, "Input shapes of the model: BATCHxSEQUENCE, separated by commas")
      .delimiter(',')
      .needs(model);
  add_device_option(sub, o->device);
  add_threads_option(sub, o->threads);
  sub.add_option("--isa", o->isa, "Force a lower instruction set that this machine has: avx512, avx2, sse4");
  std::vector<std::string> precisions;
  for (MatmulPrecision p : kMatmulPrecisions) precisions.emplace_back(matmul_precision_name(p));
  sub.add_option("--matmul-precision", o->matmul_precision,
                 "Allowed precision loss of matmuls: none, or operands rounded to bf16 or int8")
      .one_of(precisions)
      .show_default();
  sub.renamed("--products", "--matmul-precision");
  sub.add_option("--runs", o->min_runs, "Least number of timed runs").in_range(1, 1000000);
  sub.add_option("--seconds", o->budget_s, "Time budget of a graph or shape").in_range(0.001, 3600.0);
  sub.add_flag("--json", o->json, "One JSON object per graph or shape, with --breakdown also the kernels");
  add_memory_flag(sub, o->memory);
  sub.add_flag("--breakdown", o->breakdown, "Time by kernel beside the roofline, and what each thread does and waits");
  sub.footer(concat_text(
      "Inputs and params of a graph that no file gives get made-up values, the same in every run.\n\n", kExitStatus));
  sub.callback([o] { bench(*o); });
}

}  // namespace rlx::cli
