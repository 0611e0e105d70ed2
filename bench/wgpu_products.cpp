// Matmuls on wgpu devices: square, skinny, quantized and grouped ones. Figures are the best of several runs, in
// wall-clock time and, for software rasterizers on shared machines, in CPU time.
// usage: wgpu_products [DEVICE] [hardware|software]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "bench/before.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/rlx.h"

namespace {

using namespace rlx;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kGroups = 8;

void measure(const Session& session, const char* name, Graph g, double flops) {
  const auto begin = Clock::now();
  CompiledGraph f = session.compile(std::move(g));
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorView> inputs;
  for (const IoInfo& in : f.inputs()) {
    bytes.emplace_back(in.shape.size_bytes(), std::byte{0});
    if (in.shape.dtype() == DType::I32) {  // group ids of rows, unsorted
      auto* ids = reinterpret_cast<std::int32_t*>(bytes.back().data());
      for (std::size_t i = 0; i < bytes.back().size() / 4; ++i) ids[i] = static_cast<std::int32_t>(i * 5 % kGroups);
    }
    inputs.push_back({bytes.back().data(), in.shape.dtype(), {}, bytes.back().size()});
  }
  std::vector<std::byte> out(f.outputs().at(0).shape.size_bytes());
  const MutableTensorView to{out.data(), f.outputs().at(0).shape.dtype(), {}, out.size()};
  f.run_into(inputs, {&to, 1});
  const double first = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  double clock = 1e9, processors = 1e9;
  for (int i = 0; i < 7; ++i) {
    const auto start = Clock::now();
    const std::clock_t used = std::clock();
    f.run_into(inputs, {&to, 1});
    processors = std::min(processors, static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC);
    clock = std::min(clock, std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::printf("%-28s first %7.1f ms  best %9.3f ms  %6.2f GFLOP/s  %6.2f GFLOP per processor second\n", name, first,
              clock * 1e3, flops / clock / 1e9, flops / std::max(processors, 1e-9) / 1e9);
}

Graph square(std::int64_t n, bool turned) {
  Graph g("square");
  const Shape s({n, n}, DType::F32);
  g.set_outputs({g.dot_general(g.input("x", s), g.input("w", s), ops::DotGeneral{{1}, {turned ? 1 : 0}, {}, {}})});
  return g;
}

Graph coded(std::int64_t rows, std::int64_t n, QuantScheme scheme) {
  Graph g("coded");
  ops::Dequantize op;
  op.scheme = scheme, op.dims = {n, n};
  const BlockLayout& l = block_layout(scheme);
  const Expr w = g.add(op, {g.input("codes", Shape({n, n / l.elements * l.bytes}, DType::U8))});
  g.set_outputs({g.dot_general(g.input("x", Shape({rows, n}, DType::F32)), w, ops::DotGeneral{{1}, {1}, {}, {}})});
  return g;
}

Graph grouped(std::int64_t rows, std::int64_t n) {
  Graph g("grouped");
  g.set_outputs(
      {g.grouped_dot(g.input("x", Shape({rows, n}, DType::F32)), g.input("w", Shape({kGroups, n, n}, DType::F32)),
                     g.input("ids", Shape({rows}, DType::I32)))});
  return g;
}

}  // namespace

int main(int argc, char** argv) try {
  compare_before_if_asked(argc, argv);
  const Device device = parse_device(argc > 1 ? argv[1] : "vulkan").value_or(Device::Vulkan);
  DeviceOptions options;
  if (argc > 2) options["kernels"] = argv[2];
  const Session session(device, options);
  for (std::int64_t n : {256, 512, 1024}) {
    const double flops = 2.0 * static_cast<double>(n * n * n);
    measure(session, concat_text("[", n, ", ", n, "]").c_str(), square(n, false), flops);
    measure(session, concat_text("[", n, ", ", n, "], w turned").c_str(), square(n, true), flops);
  }
  for (std::int64_t rows : {1, 4, 64}) {
    const double flops = 2.0 * static_cast<double>(rows) * 1024 * 1024;
    Graph g("few");
    g.set_outputs({g.dot_general(g.input("x", Shape({rows, 1024}, DType::F32)),
                                 g.input("w", Shape({1024, 1024}, DType::F32)), ops::DotGeneral{{1}, {1}, {}, {}})});
    measure(session, concat_text(rows, " rows, f32").c_str(), std::move(g), flops);
    for (QuantScheme s : {QuantScheme::Q8_0, QuantScheme::Q4_0, QuantScheme::Q4_K})
      measure(session, concat_text(rows, " rows, ", quant_scheme_name(s)).c_str(), coded(rows, 1024, s), flops);
  }
  for (std::int64_t rows : {1, 4, 64, 256})
    measure(session, concat_text(rows, " rows of ", kGroups, " groups").c_str(), grouped(rows, 512),
            2.0 * static_cast<double>(rows) * 512 * 512);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
