// What runs on the devices of wgpu cost beyond their kernels: launches and submissions of MiniLM, the time to encode a
// launch, and first runs, whose kernels the driver compiles unless its cache has them.
// usage: wgpu MODEL_FOLDER [DEVICE] [BATCH] [SEQUENCE] [ROUNDS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "rlx/backends/wgpu/device.h"
#include "rlx/driver/registry.h"
#include "rlx/models/bert.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/rlx.h"

namespace {

using namespace rlx;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point t) { return std::chrono::duration<double, std::milli>(Clock::now() - t).count(); }

/// Small steps alone: what encoding them costs.
void encoding(Device device) {
  for (int steps : {100, 1000}) {
    Graph g("chain");
    Expr x = g.input("x", {{8, 8}, DType::F32});
    for (int i = 0; i < steps; ++i) x = g.cumsum(x, i % 2);
    g.set_outputs({x});
    CompiledGraph f = Session(device).compile(std::move(g));
    std::vector<float> in(64, 1), out(64);
    const TensorView view{in.data(), DType::F32, {}, 256};
    const MutableTensorView to{out.data(), DType::F32, {}, 256};
    f.run_into({&view, 1}, {&to, 1});
    std::vector<double> ms;
    for (int i = 0; i < 21; ++i) {
      const auto start = Clock::now();
      f.commit_no_wait({{"x", in}});
      ms.push_back(ms_since(start));
      (void)f.sync_pending();
    }
    std::nth_element(ms.begin(), ms.begin() + 10, ms.end());
    std::printf("%5zu steps: %.3f ms to submit (a software driver runs it then), %.2f us a step\n",
                f.compile_result().lir.plan.schedule.size(), ms[10], ms[10] * 1000 / steps);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) return std::puts("usage: wgpu MODEL_FOLDER [DEVICE] [BATCH] [SEQUENCE] [ROUNDS]"), 2;
  const std::string folder = argv[1], name = argc > 2 ? argv[2] : "vulkan";
  const std::int64_t batch = argc > 3 ? std::atoll(argv[3]) : 8, seq = argc > 4 ? std::atoll(argv[4]) : 32;
  const int rounds = argc > 5 ? std::atoi(argv[5]) : 5;
  const Device device = parse_device(name).value_or(Device::Vulkan);
  std::printf("%s: %s\n", name.c_str(), require_backend(device)->describe(device).c_str());
  const SentenceModelConfig config = read_sentence_config(folder);
  BertGraphOptions options;
  options.batch = batch, options.sequence = seq;
  options.pooling = config.pooling, options.normalize = config.normalize;
  auto start = Clock::now();
  const Session session(device);
  std::printf("open %.0f ms\n", ms_since(start));
  start = Clock::now();
  CompiledGraph f = session.compile(build_sentence_encoder(config.bert, options));
  std::printf("compile %.0f ms\n", ms_since(start));
  start = Clock::now();
  load_checkpoint(f, open_checkpoint(folder + "/model.safetensors"), folder);
  f.finalize();
  std::printf("weights %.0f ms\n", ms_since(start));
  std::vector<std::int32_t> ids(static_cast<std::size_t>(batch * seq), 2054);
  std::vector<float> mask(ids.size(), 1);
  std::vector<float> out(static_cast<std::size_t>(batch * config.bert.hidden_size));
  const TensorView in[] = {{ids.data(), DType::I32, {}, ids.size() * 4},
                           {mask.data(), DType::F32, {}, mask.size() * 4}};
  const MutableTensorView to{out.data(), DType::F32, {}, out.size() * 4};
  auto& opened = dynamic_cast<wgpu::WgpuDevice&>(*session.open_device());
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t before = opened.gpu()->submissions();
    start = Clock::now();
    f.run_into(in, {&to, 1});
    std::printf("run %d: %.1f ms, %llu submissions\n", i, ms_since(start),
                static_cast<unsigned long long>(opened.gpu()->submissions() - before));
  }
  const std::string code = require_backend(device)->compile_lir(f.compile_result().lir, {})->code();
  std::size_t launches = 0;
  for (std::size_t at = 0; (at = code.find("@compute", at)) != std::string::npos; ++at) ++launches;
  std::printf("%zu launches of ", launches);
  std::printf("%zu steps, %zu kernels compiled\n", f.compile_result().lir.plan.schedule.size(),
              opened.pipelines().size());
  for (const KindDispatch& k : f.compile_result().dispatch.summaries)
    if (k.path == DispatchPath::HostFallback) std::printf("on the host: %s: %s\n", k.name.c_str(), k.why.c_str());
  std::vector<NodeTime> times = f.profile(in);
  std::sort(times.begin(), times.end(), [](const NodeTime& a, const NodeTime& b) { return a.ns > b.ns; });
  for (std::size_t i = 0; i < std::min<std::size_t>(8, times.size()); ++i)
    std::printf("  %8.3f ms %s %s\n", times[i].ns / 1e6, times[i].kernel.c_str(), times[i].label.c_str());
  encoding(device);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
