// Recurrences: gated cells, whose input projection is a separate matmul, and state-space scans.
#include "rlx/backends/cpu/sequence/recurrent_kernels.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/input_spec.h"
#include "rlx/ir/ops/sequence.h"

namespace rlx::cpu {

namespace {

int recurrent_operand(const Graph& g, NodeId id, std::string_view name) {
  const Node& n = g.node(id);
  return find_operand(n.op, static_cast<int>(n.inputs.size()), name).value_or(-1);
}

const char* refuse_other_floats(const Graph& g, NodeId id) {
  bool f32 = true;
  for (Value v : g.node(id).inputs) f32 = f32 && (!is_float(g.shape(v).dtype()) || g.shape(v).dtype() == DType::F32);
  return refuse_unless(f32, "its operands and results are not all f32");
}

// -- cells --

std::optional<CellFn> cell_fn(ActivationKind fn) {
  switch (fn) {
    case ActivationKind::Sigmoid: return CellFn::Sigmoid;
    case ActivationKind::Tanh: return CellFn::Tanh;
    case ActivationKind::Relu: return CellFn::Relu;
    case ActivationKind::HardSigmoid: return CellFn::HardSigmoid;
    default: return std::nullopt;
  }
}

template <class Op>
const char* cell_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_other_floats(g, id)) return why;
  for (ActivationKind fn : g.node(id).op.template as<Op>().activations)
    if (!cell_fn(fn)) return "a gate activation has no vector kernel";
  return refuse_unless(recurrent_operand(g, id, "w") < 0, "its matmul with w is not a separate node");
}

/// A whole recurrence: packing, then either each thread runs its rows through all steps, or all threads share each
/// step.
struct CellRun {
  RecurrentF32 r;
  const RecurrentKernels* kernels = nullptr;
  std::int64_t rows_per_chunk = 1, row_chunks = 1;
  std::int64_t blocks = 1, blocks_per_chunk = 1, block_chunks = 1;
  int phases = 1;
};
void run_cell_pack(const CellRun& s, std::int64_t chunk) { s.kernels->pack(s.r, chunk / s.blocks, chunk % s.blocks); }
RecurrentPart rows_of_chunk(const CellRun& s, std::int64_t chunk) {
  const std::int64_t first = chunk % s.row_chunks * s.rows_per_chunk;
  return {chunk / s.row_chunks, first, std::min(s.r.batch, first + s.rows_per_chunk), 0, s.blocks};
}
void run_cell_rows(const CellRun& s, std::int64_t chunk) {
  const RecurrentPart part = rows_of_chunk(s, chunk);
  s.kernels->begin(s.r, part.direction, part.first_row, part.last_row);
  for (std::int64_t n = 0; n < s.r.steps; ++n)
    for (int phase = 0; phase < s.phases; ++phase) s.kernels->step(s.r, part, n, phase);
  s.kernels->end(s.r, part.direction, part.first_row, part.last_row);
}
void run_cell_begin(const CellRun& s, std::int64_t direction) { s.kernels->begin(s.r, direction, 0, s.r.batch); }
void run_cell_end(const CellRun& s, std::int64_t direction) { s.kernels->end(s.r, direction, 0, s.r.batch); }
struct CellStep {
  const CellRun* run = nullptr;
  std::int64_t n = 0;
  int phase = 0;
};
void run_cell_step(const CellStep& s, std::int64_t chunk) {
  const CellRun& r = *s.run;
  const std::int64_t first = chunk % r.block_chunks * r.blocks_per_chunk;
  const RecurrentPart part{chunk / r.block_chunks, 0, r.r.batch, first, std::min(r.blocks, first + r.blocks_per_chunk)};
  r.kernels->step(r.r, part, s.n, s.phase);
}

template <class Op>
void point_functions(const Op& op, std::initializer_list<CellFn> own, RecurrentF32& r) {
  const std::size_t each = own.size();
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::size_t i = 0; i < each; ++i) {
      CellFnOf& f = r.fn[d][i];
      f.fn = *(own.begin() + i);
      if (op.activations.empty()) continue;
      const std::size_t at = op.activations.size() == each || d * each >= op.activations.size() ? i : d * each + i;
      f.fn = *cell_fn(op.activations[at]);
      const FunctionRow& row = function_row(op.activations[at]);
      f.alpha = static_cast<float>(row.alpha && !op.alpha.empty() ? op.alpha[at] : row.alpha.value_or(0));
      f.beta = static_cast<float>(row.beta && !op.beta.empty() ? op.beta[at] : row.beta.value_or(0));
    }
  }
}

void point_cell(LowerContext& c, RecurrentF32& r, bool batch_first, RecurrentDirection direction) {
  const View x = c.in(0), y = c.out(0), h = c.out(1);
  r.directions = h.dim(0), r.batch = h.dim(1), r.hidden = h.dim(2);
  r.steps = x.dim(batch_first ? 1 : 0);
  r.reversed[0] = direction == RecurrentDirection::Reverse;
  const std::int64_t row = x.dim(2), out = r.hidden;
  r.gate_step = batch_first ? row : r.batch * row, r.gate_row = batch_first ? r.steps * row : row;
  r.y_step = r.directions * out * (batch_first ? 1 : r.batch);
  r.y_row = batch_first ? r.steps * r.directions * out : out;
  r.y_direction = batch_first ? out : r.batch * out;
  c.point(r.gates, x);
  const auto point = [&](std::string_view name, auto& field) {
    if (const int i = recurrent_operand(c.graph(), c.id(), name); i >= 0) c.point(field, c.in(i));
  };
  point("r", r.r);
  point("bias", r.bias);
  point("h0", r.h0);
  if (r.kind == CellKind::Lstm) {
    point("c0", r.c0);
    point("peepholes", r.peepholes);
  }
  if (const int i = recurrent_operand(c.graph(), c.id(), "lengths"); i >= 0) {
    r.wide_lengths = c.in(i).dtype == DType::I64;
    c.point(r.lengths, c.in(i));
  }
  if (c.is_read(0)) c.point(r.y, y);
  if (c.is_read(1)) c.point(r.h, h);
  if (r.kind == CellKind::Lstm && c.is_read(2)) c.point(r.c, c.out(2));
}

void add_cell_steps(LowerContext& c, CellRun& s) {
  RecurrentF32& r = s.r;
  const RecurrentKernels& k = *s.kernels;
  const std::int64_t gates = cell_gates(r.kind), tile = k.rows;
  s.blocks = (r.hidden + k.lanes - 1) / k.lanes;
  s.phases = r.kind == CellKind::Gru ? 2 : 1;
  const auto floats = [&](std::int64_t n) {
    return reinterpret_cast<float*>(c.workspace(static_cast<std::size_t>(n) * sizeof(float)));
  };
  r.packed = floats(r.directions * s.blocks * k.lanes * gates * r.hidden);
  r.states = floats(5 * r.directions * r.batch * r.hidden);
  const double flops =
      2.0 * static_cast<double>(r.directions * r.batch * gates * r.hidden) * static_cast<double>(r.hidden);
  const double bytes = 4.0 * static_cast<double>(r.directions * gates * r.hidden) * static_cast<double>(r.hidden);
  const double elements = static_cast<double>(r.directions * r.batch * gates * r.hidden);
  const double step_ns = std::max(2 * flops / gemm_flops_per_ns(c.kernels().isa), bytes / 40.0) + elements;
  c.step<run_cell_pack>(s, r.directions * s.blocks, bytes / 4);
  constexpr double kWorthMeeting = 6000;
  constexpr std::int64_t kMostSteps = 4096;
  const std::int64_t threads = c.finest() ? 2 : std::max(1, c.threads());
  // Weights that exceed a core's cache are also better read by one thread each.
  constexpr double kHeldBytes = 1.5e6;
  const bool skinny_rows = r.batch * r.directions < threads * tile || bytes > kHeldBytes;
  const bool shares = c.finest() ? s.blocks > 1 && r.steps <= 8
                                 : threads > 1 && skinny_rows && step_ns > kWorthMeeting && r.steps <= kMostSteps &&
                                       r.directions * s.blocks >= threads;
  if (shares) {
    s.blocks_per_chunk = c.grain((s.blocks * r.directions + threads - 1) / threads);
    s.block_chunks = (s.blocks + s.blocks_per_chunk - 1) / s.blocks_per_chunk;
    c.step<run_cell_begin>(s, r.directions, elements / 4);
    auto& steps = c.keep<std::vector<CellStep>>();
    for (std::int64_t n = 0; n < r.steps; ++n)
      for (int phase = 0; phase < s.phases; ++phase) steps.push_back({&s, n, phase});
    for (CellStep& step : steps) c.step<run_cell_step>(step, r.directions * s.block_chunks, step_ns / s.phases);
    c.step<run_cell_end>(s, r.directions, elements / 4);
    return;
  }
  const std::int64_t parts = std::max<std::int64_t>(1, (threads + r.directions - 1) / r.directions);
  const std::int64_t even = (r.batch + parts - 1) / parts;
  s.rows_per_chunk = c.grain(std::max<std::int64_t>(1, even));
  s.row_chunks = (r.batch + s.rows_per_chunk - 1) / s.rows_per_chunk;
  c.step<run_cell_rows>(s, r.directions * s.row_chunks, step_ns * static_cast<double>(r.steps) + elements);
}

template <class Op>
void lower_cell(LowerContext& c) {
  const Op& op = c.op<Op>();
  if (c.out(1).elements() == 0) return;
  auto& s = c.keep<CellRun>();
  s.kernels = &recurrent_kernels(c.kernels().isa);
  // In the kernel 0 means no clip, so a clip too small for F32 becomes the smallest F32.
  s.r.clip = op.clip ? std::max(static_cast<float>(*op.clip), std::numeric_limits<float>::denorm_min()) : 0;
  if constexpr (std::is_same_v<Op, ops::Lstm>) {
    s.r.kind = CellKind::Lstm, s.r.couples = op.input_forget;
    point_functions(op, {CellFn::Sigmoid, CellFn::Tanh, CellFn::Tanh}, s.r);
  } else if constexpr (std::is_same_v<Op, ops::Gru>) {
    s.r.kind = op.linear_before_reset ? CellKind::GruLinear : CellKind::Gru;
    point_functions(op, {CellFn::Sigmoid, CellFn::Tanh}, s.r);
  } else {
    s.r.kind = CellKind::Rnn;
    point_functions(op, {CellFn::Tanh}, s.r);
  }
  point_cell(c, s.r, op.batch_first, op.direction);
  add_cell_steps(c, s);
}

// -- scans --

template <class Scan>
struct ScanRun {
  Scan scan;
  const RecurrentKernels* kernels = nullptr;
  std::int64_t blocks = 1, lanes = 1;
  const Scratch* scratch = nullptr;
};
void run_selective(const ScanRun<SelectiveScanF32>& s, std::int64_t chunk) {
  s.kernels->selective_scan(s.scan, chunk / s.blocks, chunk % s.blocks * s.lanes,
                            reinterpret_cast<float*>(s.scratch->mine()));
}
template <class Scan>
void run_matrix_scan(const ScanRun<Scan>& s, std::int64_t chunk) {
  const std::int64_t head = chunk / s.blocks;
  const auto run = [&] {
    if constexpr (std::is_same_v<Scan, Mamba2F32>)
      return s.kernels->mamba2;
    else
      return s.kernels->gated_delta;
  }();
  run(s.scan, head / s.scan.heads, head % s.scan.heads, chunk % s.blocks * s.lanes,
      reinterpret_cast<float*>(s.scratch->mine()));
}

/// Operands by name, with the fields that point to them.
template <class F>
using ScanFields = std::initializer_list<std::pair<std::string_view, const float * F::*>>;

// Adds the task of a scan of `states` states, in blocks of `lanes` columns. `cost`: of an element of a state.
template <auto kRun, class F>
void add_scan(LowerContext& c, ScanRun<F>& s, std::int64_t states, std::int64_t lanes, double cost,
              ScanFields<F> fields) {
  F& f = s.scan;
  for (const auto& [name, field] : fields)
    if (const int i = recurrent_operand(c.graph(), c.id(), name); i >= 0) c.point(f.*field, c.in(i));
  if (c.is_read(0)) c.point(f.y, c.out(0));
  if (c.is_read(1)) c.point(f.last, c.out(1));
  s.lanes = lanes;
  s.blocks = (f.width + lanes - 1) / lanes;
  s.scratch = c.scratch(static_cast<std::size_t>(scan_scratch(f.n)) * sizeof(float));
  c.step<kRun>(s, states * s.blocks,
               static_cast<double>(states * (f.steps + 1) * f.width) * (cost * static_cast<double>(f.n) + 1));
}

void lower_selective_scan(LowerContext& c) {
  const View x = c.in(0);
  if (x.dim(0) == 0 || x.dim(2) == 0) return;
  using F = SelectiveScanF32;
  auto& s = c.keep<ScanRun<F>>();
  F& f = s.scan;
  s.kernels = &recurrent_kernels(c.kernels().isa);
  f.batch = x.dim(0), f.steps = x.dim(1), f.width = x.dim(2), f.n = c.out(1).dim(2);
  f.softplus = c.op<ops::SelectiveScan>().delta_softplus;
  add_scan<run_selective>(c, s, f.batch, s.kernels->selective_lanes, 0.2,
                          {{"x", &F::x},
                           {"delta", &F::delta},
                           {"a", &F::a},
                           {"b", &F::b},
                           {"c", &F::c},
                           {"d", &F::d},
                           {"z", &F::z},
                           {"delta_bias", &F::bias},
                           {"state", &F::start}});
}

void lower_mamba2(LowerContext& c) {
  const View x = c.in(0);
  if (x.dim(0) == 0 || x.dim(2) == 0 || x.dim(3) == 0) return;
  using F = Mamba2F32;
  auto& s = c.keep<ScanRun<F>>();
  F& f = s.scan;
  s.kernels = &recurrent_kernels(c.kernels().isa);
  f.batch = x.dim(0), f.steps = x.dim(1), f.heads = x.dim(2), f.width = x.dim(3), f.n = c.out(1).dim(3);
  f.groups = c.in(3).dim(2);
  f.softplus = c.op<ops::Mamba2>().dt_softplus;
  const int d = recurrent_operand(c.graph(), c.id(), "d");
  f.matrix_d = d >= 0 && c.in(d).rank() == 2;
  add_scan<run_matrix_scan<F>>(c, s, f.batch * f.heads, s.kernels->matrix_lanes, 0.06,
                               {{"x", &F::x},
                                {"dt", &F::dt},
                                {"a", &F::a},
                                {"b", &F::b},
                                {"c", &F::c},
                                {"d", &F::d},
                                {"z", &F::z},
                                {"dt_bias", &F::bias},
                                {"state", &F::start}});
}

void lower_gated_delta(LowerContext& c) {
  const View q = c.in(0), v = c.in(2);
  if (v.dim(0) == 0 || v.dim(2) == 0 || v.dim(3) == 0) return;
  using F = GatedDeltaF32;
  auto& s = c.keep<ScanRun<F>>();
  F& f = s.scan;
  s.kernels = &recurrent_kernels(c.kernels().isa);
  f.batch = v.dim(0), f.steps = v.dim(1), f.heads = v.dim(2), f.width = v.dim(3), f.groups = q.dim(2), f.n = q.dim(3);
  const auto& op = c.op<ops::GatedDeltaNet>();
  f.scale = static_cast<float>(op.scale ? *op.scale : f.n == 0 ? 1.0 : 1 / std::sqrt(static_cast<double>(f.n)));
  add_scan<run_matrix_scan<F>>(
      c, s, f.batch * f.heads, s.kernels->matrix_lanes, 0.12,
      {{"q", &F::q}, {"k", &F::k}, {"v", &F::v}, {"g", &F::g}, {"beta", &F::beta}, {"state", &F::start}});
}

constexpr KernelEntry kRecurrentEntries[] = {
    {.kind = OpKind::Lstm,
     .kernel = "lstm_f32",
     .refuses = cell_refuses<ops::Lstm>,
     .lower = lower_cell<ops::Lstm>,
     .skips_unread = 0b111},
    {.kind = OpKind::Gru,
     .kernel = "gru_f32",
     .refuses = cell_refuses<ops::Gru>,
     .lower = lower_cell<ops::Gru>,
     .skips_unread = 0b11},
    {.kind = OpKind::Rnn,
     .kernel = "rnn_f32",
     .refuses = cell_refuses<ops::Rnn>,
     .lower = lower_cell<ops::Rnn>,
     .skips_unread = 0b11},
    {.kind = OpKind::SelectiveScan,
     .kernel = "selective_scan_f32",
     .refuses = refuse_other_floats,
     .lower = lower_selective_scan,
     .skips_unread = 0b11},
    {.kind = OpKind::Mamba2,
     .kernel = "mamba2_f32",
     .refuses = refuse_other_floats,
     .lower = lower_mamba2,
     .skips_unread = 0b11},
    {.kind = OpKind::GatedDeltaNet,
     .kernel = "gated_delta_f32",
     .refuses = refuse_other_floats,
     .lower = lower_gated_delta,
     .skips_unread = 0b11},
};

}  // namespace

std::span<const KernelEntry> recurrent_entries() { return kRecurrentEntries; }

}  // namespace rlx::cpu
