// f32 channel norms.
#include <algorithm>

#include "rlx/backends/cpu/norm/channel_norms_kernels.h"
#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/input_spec.h"
#include "rlx/ir/ops/norm.h"

namespace rlx::cpu {
namespace {

struct ChannelNormStep {
  ChannelNormF32 norm;
  const ChannelNormKernels* kernels = nullptr;
  std::int64_t groups = 1, all = 0, per_chunk = 1;
};
void run_groups(const ChannelNormStep& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.per_chunk;
  s.kernels->groups(s.norm, s.groups, begin, std::min(s.all, begin + s.per_chunk));
}
void run_statistics(const ChannelNormStep& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.per_chunk;
  s.kernels->statistics(s.norm, begin, std::min(s.all, begin + s.per_chunk));
}
void run_apply(const ChannelNormStep& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.per_chunk;
  s.kernels->apply(s.norm, begin, std::min(s.all, begin + s.per_chunk));
}

const char* channels_refuse(const Graph& g, NodeId id) { return refuse_unless_f32(g, id); }

// Points the operands and results that every task reads.
void point_norm(LowerContext& c, ChannelNormStep& s) {
  c.point(s.norm.x, c.in(0));
  c.point(s.norm.y, c.out(0));
  const auto operand = [&](std::string_view name) { return find_operand(c.node().op, c.num_inputs(), name); };
  if (const auto i = operand("gamma")) c.point(s.norm.gamma, c.in(*i));
  if (const auto i = operand("beta")) c.point(s.norm.beta, c.in(*i));
  s.kernels = &channel_norm_kernels(c.kernels().isa);
}
template <auto Run>
void add_step(LowerContext& c, ChannelNormStep& s, std::int64_t all, double unit_ns, std::int64_t together = 1) {
  s.all = all;
  const auto units = static_cast<std::int64_t>(20000 / (unit_ns + 5));
  s.per_chunk = c.grain(std::max(units / together * together, together));
  c.step<Run>(s, (all + s.per_chunk - 1) / s.per_chunk, (unit_ns + 5) * static_cast<double>(all));
}

void lower_group_norm(LowerContext& c) {
  const auto& op = c.op<ops::GroupNorm>();
  const View x = c.in(0);
  if (x.elements() == 0) return;
  check(x.dense(), "x of a channel norm is not row-major");
  auto& s = c.keep<ChannelNormStep>();
  point_norm(c, s);
  s.norm.n = x.dim(0), s.norm.channels = x.dim(1), s.norm.places = product(std::span(x.dims).subspan(2));
  s.norm.eps = static_cast<float>(op.eps);
  s.groups = op.groups;
  const std::int64_t rows = s.norm.n * op.groups;
  add_step<run_groups>(c, s, rows, 0.2 * static_cast<double>(x.elements() / rows));
}

void lower_batch_norm(LowerContext& c) {
  const auto& op = c.op<ops::BatchNorm>();
  const View x = c.in(0);
  const auto axis = static_cast<std::size_t>(op.axis);
  check(x.dense(), "x of a channel norm is not row-major");
  ChannelNormF32 norm;
  norm.n = product(std::span(x.dims).first(axis)), norm.channels = x.dims[axis];
  norm.places = product(std::span(x.dims).subspan(axis + 1));
  norm.eps = static_cast<float>(op.eps);
  if (norm.channels == 0) return;
  if (x.elements() == 0) norm.n = 0;  // the statistics of no elements, whatever n is
  const auto given = find_operand(c.node().op, c.num_inputs(), "mean");
  auto& s = c.keep<ChannelNormStep>();
  s.norm = norm;
  point_norm(c, s);
  if (given) {
    c.point(s.norm.mean, c.in(*given));
    c.point(s.norm.var, c.in(*find_operand(c.node().op, c.num_inputs(), "var")));
  } else {
    auto& made = c.keep<ChannelNormStep>();
    made.norm = norm;
    point_norm(c, made);
    for (ChannelNormStep* step : {&made, &s}) {
      c.point(step->norm.mean, c.out(1));
      c.point(step->norm.var, c.out(2));
    }
    // With channels last, one vector of channels at a time.
    add_step<run_statistics>(c, made, norm.channels, 0.2 * static_cast<double>(norm.n * norm.places),
                             norm.places == 1 ? 32 : 1);
  }
  if (x.elements() == 0) return;
  const std::int64_t rows = norm.places == 1 ? norm.n : norm.n * norm.channels;
  add_step<run_apply>(c, s, rows, 0.1 * static_cast<double>(x.elements() / rows));
}

bool norm_in_place(const Graph&, NodeId, int operand, int result) { return operand == 0 && result == 0; }

constexpr KernelEntry kChannelNormEntries[] = {
    {.kind = OpKind::GroupNorm,
     .kernel = "group_norm_f32",
     .refuses = channels_refuse,
     .lower = lower_group_norm,
     .in_place = norm_in_place},
    {.kind = OpKind::BatchNorm,
     .kernel = "batch_norm_f32",
     .refuses = channels_refuse,
     .lower = lower_batch_norm,
     .in_place = norm_in_place},
};

}  // namespace

std::span<const KernelEntry> channel_norm_entries() { return kChannelNormEntries; }

}  // namespace rlx::cpu
