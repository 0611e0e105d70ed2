// The overhead of runs on wgpu devices beyond their kernels: launches and submissions of MiniLM; the time to encode a
// launch (from the begin of a pass to before its submission, without the driver's work); and first runs, for which the
// driver compiles the kernels unless its cache has them.
// usage: wgpu MODEL_FOLDER [DEVICE] [BATCH] [SEQUENCE] [ROUNDS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/before.h"
#include "rlx/backends/wgpu/device.h"
#include "rlx/device/device.h"
#include "rlx/device/registry.h"
#include "rlx/models/encoder/bert.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/rlx.h"

namespace {

using namespace rlx;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point t) { return std::chrono::duration<double, std::milli>(Clock::now() - t).count(); }

/// The wgpu library with a clock, which runs from the begin of a pass to its submission.
struct EncodeClock {
  wgpu::abi::Api real, timed;
  Clock::time_point begin, finish;
  std::size_t launches = 0;               // since `begin`
  std::size_t most_launches = 0;          // the most launches of one submission
  bool empty = false;                     // dispatches no workgroups: kernels on the CPU would evict its caches
  std::vector<double> whole_us, ours_us;  // per launch; ours_us: until the command buffer is requested from the library
};
EncodeClock& encode_clock() {
  static EncodeClock c;
  return c;
}

double us_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::micro>(b - a).count();
}

const wgpu::abi::Api& timed_library(const wgpu::abi::Api& library) {
  EncodeClock& c = encode_clock();
  c.real = c.timed = library;
  c.timed.CommandEncoderBeginComputePass = [](wgpu::abi::CommandEncoder e, const wgpu::abi::ComputePassDescriptor* d) {
    EncodeClock& clock = encode_clock();
    clock.launches = 0;
    clock.begin = Clock::now();
    return clock.real.CommandEncoderBeginComputePass(e, d);
  };
  c.timed.ComputePassEncoderDispatchWorkgroups = [](wgpu::abi::ComputePassEncoder p, std::uint32_t x, std::uint32_t y,
                                                    std::uint32_t z) {
    EncodeClock& clock = encode_clock();
    ++clock.launches;
    clock.real.ComputePassEncoderDispatchWorkgroups(p, clock.empty ? 0 : x, y, z);
  };
  c.timed.CommandEncoderFinish = [](wgpu::abi::CommandEncoder e, const wgpu::abi::LabelDescriptor* d) {
    encode_clock().finish = Clock::now();
    return encode_clock().real.CommandEncoderFinish(e, d);
  };
  c.timed.QueueSubmitForIndex = [](wgpu::abi::Queue q, std::size_t n, const wgpu::abi::CommandBuffer* list) {
    EncodeClock& clock = encode_clock();
    if (const auto launches = static_cast<double>(clock.launches); launches != 0) {
      clock.whole_us.push_back(us_between(clock.begin, Clock::now()) / launches);
      clock.ours_us.push_back(us_between(clock.begin, clock.finish) / launches);
      clock.most_launches = std::max(clock.most_launches, clock.launches);
    }
    clock.launches = 0;
    return clock.real.QueueSubmitForIndex(q, n, list);
  };
  return c.timed;
}

/// The wgpu backend with that clock.
class ClockedBackend final : public Backend {
 public:
  explicit ClockedBackend(std::shared_ptr<const Backend> wgpu) : wgpu_(std::move(wgpu)) {}
  std::string_view name() const override { return wgpu_->name(); }
  Presence probe(Device kind) const noexcept override { return wgpu_->probe(kind); }
  std::shared_ptr<const Target> target(const BackendOptions& o) const override { return wgpu_->target(o); }
  std::unique_ptr<const Executable> compile_lir(LirModule lir, const BackendOptions& o) const override {
    return wgpu_->compile_lir(std::move(lir), o);
  }
  std::shared_ptr<OpenDevice> open(DeviceId id, const DeviceOptions&) const override {
    const wgpu::Adapters& found = wgpu::adapters_of(id.kind);
    auto gpu = std::make_shared<wgpu::Gpu>(timed_library(*found.api), found.list.at(0), id.kind == Device::WebGpu,
                                           device_text(id));
    return std::make_shared<wgpu::WgpuDevice>(id, std::move(gpu), 0);
  }

 private:
  std::shared_ptr<const Backend> wgpu_;
};

double median(std::vector<double> v) {
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

/// Runs the same program once more with the clock; the values of the weights do not matter.
void encoding(Device device, const SentenceModelConfig& config, const BertGraphOptions& options, int runs) {
  register_backend(device, std::make_shared<ClockedBackend>(require_backend(device)));
  CompiledGraph f = Session(device).compile(build_sentence_encoder(config.bert, options));
  for (const IoInfo& p : f.params()) f.set_param(p.name, Tensor::full(p.shape, 0.001));
  NamedTensors inputs;
  for (const IoInfo& in : f.inputs())
    inputs.emplace(in.name, Tensor::full(in.shape, in.name == "input_ids" ? 2003 : 1));
  EncodeClock& clock = encode_clock();
  for (const bool empty : {false, true}) {
    clock.empty = empty;
    for (int i = 0; i < 3; ++i) (void)f.run_typed(inputs);
    clock.whole_us.clear(), clock.ours_us.clear();
    for (int i = 0; i < runs; ++i) (void)f.run_typed(inputs);
    std::printf(
        "encoding, median of %zu submissions of %zu launches%s: %.2f us a launch (goal 1), %.2f us of it ours\n",
        clock.whole_us.size(), clock.most_launches, empty ? ", none of which runs" : "", median(clock.whole_us),
        median(clock.ours_us));
  }
  register_backend(device, nullptr);
}

}  // namespace

int main(int argc, char** argv) try {
  compare_before_if_asked(argc, argv);
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
  encoding(device, config, options, std::max(51, rounds));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
