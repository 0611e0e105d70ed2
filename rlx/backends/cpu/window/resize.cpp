// f32 resize, one axis after the other: axes that shrink first, axes that grow last.
#include <algorithm>
#include <cstring>

#include "rlx/backends/cpu/window/resize_kernels.h"
#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/math/resize.h"
#include "rlx/ir/ops/conv.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t kNarrow = 16;  // rows with fewer elements are processed as a line, element by element

const char* resize_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_unless_f32(g, id)) return why;
  const auto& op = g.node(id).op.as<ops::Interpolate>();
  const Shape& x = in_shape(g, id, 0);
  if (op.axes.empty()) return "it resamples no axis";
  for (std::size_t i = 0; i < op.axes.size(); ++i)
    if (std::max(op.sizes[i], x.dim(static_cast<int>(op.axes[i])).value()) > (std::int64_t{1} << 20))
      return "an axis is longer than 2^20 elements";
  return nullptr;
}

// Resampling of one axis: [outer, n, inner] to [outer, m, inner].
struct ResizeStage {
  std::vector<std::int32_t> index;
  std::vector<float> weight;
  ResizeF32 axis;
  std::int64_t outer = 1;
  std::int64_t from() const { return axis.n * axis.inner; }
  std::int64_t to() const { return axis.m * axis.inner; }
};

ResizeStage stage_of(const ResizeTaps& taps, std::int64_t outer, std::int64_t n, std::int64_t inner) {
  ResizeStage s;
  const std::int64_t m = taps.outputs(), each = inner < kNarrow ? inner : 1;
  s.outer = outer;
  s.axis.n = n * each, s.axis.m = m * each, s.axis.inner = inner / each;
  s.axis.taps = std::max<std::int64_t>(1, taps.widest());
  const auto size = static_cast<std::size_t>(s.axis.taps * s.axis.m);
  s.index.assign(size, static_cast<std::int32_t>(s.axis.n));
  s.weight.assign(size, 0);
  for (std::int64_t o = 0; o < m; ++o)
    for (std::int64_t t = taps.begin[static_cast<std::size_t>(o)]; t < taps.begin[static_cast<std::size_t>(o) + 1]; ++t)
      for (std::int64_t c = 0; c < each; ++c) {
        const auto at =
            static_cast<std::size_t>((t - taps.begin[static_cast<std::size_t>(o)]) * s.axis.m + o * each + c);
        s.index[at] = static_cast<std::int32_t>(taps.index[static_cast<std::size_t>(t)] * each + c);
        s.weight[at] = static_cast<float>(taps.weight[static_cast<std::size_t>(t)]);
      }
  return s;
}

// A stage over all of x, between buffers. `line`: with inner 1, each line is copied to memory with a 0 after it.
struct ResizeStep {
  ResizeStage stage;
  const float* x = nullptr;
  float* y = nullptr;
  const ResizeKernels* kernels = nullptr;
  const Scratch* scratch = nullptr;
  std::int64_t per_chunk = 1, cuts = 1;  // outer indices of a chunk, or parts of one outer index
};
void run_resize(const ResizeStep& s, std::int64_t chunk) {
  const ResizeF32& a = s.stage.axis;
  const std::int64_t begin = chunk / s.cuts * s.per_chunk, end = std::min(s.stage.outer, begin + s.per_chunk);
  const std::int64_t part = (a.m + s.cuts - 1) / s.cuts, first = chunk % s.cuts * part,
                     last = std::min(a.m, first + part);
  for (std::int64_t outer = begin; outer < end; ++outer) {
    const float* x = s.x + outer * s.stage.from();
    if (a.inner == 1) {
      auto* line = reinterpret_cast<float*>(s.scratch->mine());
      std::memcpy(line, x, static_cast<std::size_t>(a.n) * sizeof(float));
      line[a.n] = 0;
      x = line;
    }
    if (first < last) s.kernels->run(a, x, s.y + outer * s.stage.to(), first, last);
  }
}

// All stages of a block of x in sequence, in scratch.
struct ResizeBlockStep {
  std::vector<ResizeStage> stages;
  std::int64_t blocks = 1, in = 0, out = 0, half = 0, line = 0;  // floats
  const float* x = nullptr;
  float* y = nullptr;
  const ResizeKernels* kernels = nullptr;
  const Scratch* scratch = nullptr;
};
void run_resize_block(const ResizeBlockStep& s, std::int64_t block) {
  auto* line = reinterpret_cast<float*>(s.scratch->mine());
  float* halves[] = {line + s.line, line + s.line + s.half};
  const float* from = s.x + block * s.in;
  for (std::size_t i = 0; i < s.stages.size(); ++i) {
    const ResizeStage& stage = s.stages[i];
    const ResizeF32& a = stage.axis;
    float* to = i + 1 == s.stages.size() ? s.y + block * s.out : halves[i % 2];
    for (std::int64_t outer = 0; outer < stage.outer; ++outer) {
      const float* x = from + outer * stage.from();
      if (a.inner == 1) {
        std::memcpy(line, x, static_cast<std::size_t>(a.n) * sizeof(float));
        line[a.n] = 0;
        x = line;
      }
      s.kernels->run(a, x, to + outer * stage.to(), 0, a.m);
    }
    from = to;
  }
}

void lower_resize(LowerContext& c) {
  const auto& op = c.op<ops::Interpolate>();
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  check(x.dense(), "x of a resize is not row-major");
  // Shrinking axes from the first, then growing axes from the last.
  std::vector<std::size_t> order;
  const auto grows = [&](std::size_t i) { return op.sizes[i] > x.dim(static_cast<int>(op.axes[i])); };
  for (std::size_t i = 0; i < op.axes.size(); ++i)
    if (!grows(i)) order.push_back(i);
  for (std::size_t i = op.axes.size(); i-- > 0;)
    if (grows(i)) order.push_back(i);
  const auto first = static_cast<std::size_t>(op.axes.front());
  const std::int64_t blocks = product(std::span(x.dims).first(first));
  std::vector<std::int64_t> dims(x.dims.begin() + static_cast<std::ptrdiff_t>(first), x.dims.end());
  std::vector<ResizeStage> stages;
  std::int64_t half = 0, line = 0;
  for (std::size_t i : order) {
    const std::size_t axis = static_cast<std::size_t>(op.axes[i]) - first;
    const std::int64_t outer = product(std::span(dims).first(axis)), inner = product(std::span(dims).subspan(axis + 1));
    stages.push_back(stage_of(resize_taps(op, i, dims[axis]), outer, dims[axis], inner));
    dims[axis] = op.sizes[i];
    half = std::max(half, product(dims));
    line = std::max(line, stages.back().axis.n + 1);
  }
  line = (line + 15) / 16 * 16;
  half = stages.size() == 1 ? 0 : (half + 15) / 16 * 16;
  const ResizeKernels& kernels = resize_kernels(c.kernels().isa);
  const auto cost = [](const ResizeStage& s, std::int64_t outer) {
    return 0.15 * static_cast<double>(outer * s.to()) * static_cast<double>(s.axis.taps);
  };
  if (blocks >= 2 * c.threads() && !c.finest()) {
    auto& s = c.keep<ResizeBlockStep>();
    s.blocks = blocks, s.in = x.elements() / blocks, s.out = y.elements() / blocks;
    s.half = half, s.line = line;
    s.kernels = &kernels;
    s.scratch = c.scratch(static_cast<std::size_t>(line + 2 * half) * sizeof(float));
    c.point(s.x, x);
    c.point(s.y, y);
    s.stages = std::move(stages);
    double total = 0;
    for (ResizeStage& stage : s.stages) {
      stage.axis.index = stage.index.data(), stage.axis.weight = stage.weight.data();
      total += cost(stage, stage.outer * blocks);
    }
    c.step<run_resize_block>(s, blocks, total);
    return;
  }
  const float* before = nullptr;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    auto& s = c.keep<ResizeStep>();
    s.stage = std::move(stages[i]);
    ResizeF32& a = s.stage.axis;
    a.index = s.stage.index.data(), a.weight = s.stage.weight.data();
    s.stage.outer *= blocks;
    s.kernels = &kernels;
    s.scratch = c.scratch(static_cast<std::size_t>(line) * sizeof(float));
    if (i == 0)
      c.point(s.x, x);
    else
      s.x = before;
    if (i + 1 == stages.size())
      c.point(s.y, y);
    else
      before = s.y =
          reinterpret_cast<float*>(c.workspace(static_cast<std::size_t>(s.stage.outer * s.stage.to()) * sizeof(float)));
    const double one = cost(s.stage, 1) + 10;
    s.per_chunk = c.grain(std::max<std::int64_t>(1, static_cast<std::int64_t>(20000 / one)));
    // An outer index with much work is split along its rows.
    s.cuts = a.inner == 1 ? 1 : std::clamp<std::int64_t>(static_cast<std::int64_t>(one / 20000), 1, a.m);
    if (c.finest() && a.inner > 1) s.cuts = a.m;
    c.step<run_resize>(s, (s.stage.outer + s.per_chunk - 1) / s.per_chunk * s.cuts,
                       one * static_cast<double>(s.stage.outer));
  }
}

constexpr KernelEntry kResizeEntries[] = {{OpKind::Interpolate, "interpolate_f32", resize_refuses, lower_resize}};

}  // namespace

std::span<const KernelEntry> resize_entries() { return kResizeEntries; }

}  // namespace rlx::cpu
