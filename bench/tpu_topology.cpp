// MiniLM compiled ahead of time for a TPU topology, without a TPU: code size, memory and estimated time by Google's
// compiler. It runs on any x86-64 Linux machine with libtpu (`pip install libtpu`, 205 MB, Google Cloud terms). Nothing
// is executed. Large shapes take minutes.
// usage: tpu_topology LIBTPU_SO [TOPOLOGY [BATCHxSEQUENCE ...]]     RLX_MODEL_DIR: the MiniLM folder
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/before.h"
#include "rlx/backends/tpu/program.h"
#include "rlx/models/encoder/bert.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/rlx.h"

namespace {

using namespace rlx;
namespace abi = rlx::tpu::abi;
constexpr std::string_view kWho = "tpu_topology";

std::string text_of(const SentenceModelConfig& config, std::int64_t batch, std::int64_t sequence) {
  BertGraphOptions options;
  options.batch = batch;
  options.sequence = sequence;
  options.pooling = config.pooling;
  options.normalize = config.normalize;
  return Session::for_target(Device::Tpu).compile(build_sentence_encoder(config.bert, options)).code();
}

abi::Topology* topology_of(const tpu::Library& library, const std::string& name) {
  auto a = abi::arguments<abi::TopologyCreate>();
  a.topology_name = name.data();
  a.topology_name_size = name.size();
  library.call(kWho, a);
  return a.topology;
}

abi::Executable* compiled(const tpu::Library& library, const abi::Topology* topology, std::string& text) {
  static constexpr std::string_view kFormat = "mlir";
  abi::Program program{};
  program.struct_size = sizeof program;
  program.code = text.data();
  program.code_size = text.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  auto a = abi::arguments<abi::Compile>();
  a.topology = topology;
  a.program = &program;
  const std::string options =
      std::string(abi::kCompileOptions, sizeof abi::kCompileOptions) + tpu::strict_options(false);
  a.compile_options = options.data();
  a.compile_options_size = options.size();
  library.call(kWho, a);
  return a.executable;
}

double property(const tpu::Library& library, abi::Executable* code, std::string_view name) {
  auto a = abi::arguments<abi::ExecutableGetCostAnalysis>();
  a.executable = code;
  library.call(kWho, a);
  for (std::size_t i = 0; i < a.num_properties; ++i)
    if (const abi::NamedValue& p = a.properties[i];
        std::string_view(p.name, p.name_size) == name && p.type == abi::ValueKind::Float)
      return static_cast<double>(p.float_value);
  return -1;
}

void report(const tpu::Library& library, const abi::Topology* topology, const std::string& shape, std::string text) {
  const auto start = std::chrono::steady_clock::now();
  abi::Executable* const code = compiled(library, topology, text);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  auto memory = abi::arguments<abi::ExecutableGetCompiledMemoryStats>();
  memory.executable = code;
  library.call(kWho, memory);
  // An op without a time estimate counts as -1 s.
  const double estimate = property(library, code, "optimal_seconds"), unknown = std::floor(estimate);
  const auto mega = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  std::printf(
      "%8s  compiled in %.2f s: code %.1f kB, weights and inputs %.1f MB, results %.3f MB, temporaries %.2f "
      "MB\n",
      shape.c_str(), seconds, static_cast<double>(memory.generated_code_size_in_bytes) / 1e3,
      mega(memory.argument_size_in_bytes), mega(memory.output_size_in_bytes), mega(memory.temp_size_in_bytes));
  std::printf("%8s  %.2f GFLOP, %.1f MB moved, estimated time %.0f us beside %.0f ops that it does not tell of\n", "",
              property(library, code, "flops") / 1e9, property(library, code, "bytes accessed") / 1e6,
              (estimate - unknown) * 1e6, 0 - unknown);
  auto destroy = abi::arguments<abi::ExecutableDestroy>();
  destroy.executable = code;
  library.call(kWho, destroy);
}

void run(const std::vector<std::string>& words) {
  // Outside Google's cloud libtpu would ask a metadata server, and write logs under /tmp.
  for (const auto& [name, value] : {std::pair("TPU_SKIP_MDS_QUERY", "1"), std::pair("TPU_LOG_DIR", "disabled"),
                                    std::pair("TPU_WORKER_HOSTNAMES", "localhost")})
    ::setenv(name, value, 0);
  const char* const given = std::getenv("RLX_MODEL_DIR");
  const SentenceModelConfig config = read_sentence_config(given ? given : ".models/all-minilm-l6-v2");
  const auto library = tpu::Library::open(words.at(0));
  const std::string topology = words.size() > 1 ? words[1] : "v5e:2x2";
  std::printf("%s, PJRT %s, topology %s, one core\n", library->path().c_str(), library->api_version().c_str(),
              topology.c_str());
  std::vector<std::string> shapes(words.begin() + std::min<std::ptrdiff_t>(2, std::ssize(words)), words.end());
  if (shapes.empty()) shapes = {"1x16", "8x32"};
  abi::Topology* const made = topology_of(*library, topology);
  for (const std::string& shape : shapes)
    report(*library, made, shape,
           text_of(config, std::atoi(shape.c_str()), std::atoi(shape.substr(shape.find('x') + 1).c_str())));
  auto destroy = abi::arguments<abi::TopologyDestroy>();
  destroy.topology = made;
  library->call(kWho, destroy);
}

}  // namespace

int main(int argc, char** argv) try {
  compare_before_if_asked(argc, argv);
  if (argc < 2) throw Error(ErrorCode::InvalidArgument, "usage: tpu_topology LIBTPU_SO [TOPOLOGY [SHAPE ...]]");
  run(std::vector<std::string>(argv + 1, argv + argc));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
