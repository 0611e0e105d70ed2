// Kernel entries of branches and loops. Their bodies become regions.
#include "rlx/ir/ops/control.h"
#include "rlx/backends/tpu/entries.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx::tpu {
namespace {

const char* refuses_bodies(const Graph& g, NodeId id) {
  for (const Subgraph& body : body_graphs(g.node(id).op))
    if (const char* why = body_refuses(*body)) return why;
  return nullptr;
}

std::vector<HloType> result_types(const EmitContext& c) {
  std::vector<HloType> out;
  for (std::uint32_t r = 0; r < c.node().num_results(); ++r) out.push_back(c.type(r));
  return out;
}

// The branches read the operands from the enclosing region. Ordered ops in them add one more result, a token.
void emit_if(EmitContext& c) {
  const auto& op = c.op<ops::If>();
  std::vector<HloType> types = result_types(c);
  std::optional<Hlo> before;
  if (is_ordered(c.node().op)) {
    before = c.w.order();
    types.push_back(token_type());
  }
  if (types.empty()) return;
  const std::span<const Hlo> operands = c.inputs().subspan(1);
  const auto branch = [&](const Subgraph& body) {
    return [&c, operands, &body, &before](const Hlos&) {
      if (before) c.w.set_order(*before);
      Hlos results = emit_body(c.w, *body, operands);
      if (before) results.push_back(c.w.order());
      return results;
    };
  };
  Hlos results =
      c.w.with_regions("if", c.inputs().first(1), types, {{{}, branch(op.then)}, {{}, branch(op.otherwise)}});
  if (before) {
    c.w.set_order(std::move(results.back()));
    results.pop_back();
  }
  for (std::uint32_t r = 0; r < results.size(); ++r) c.set(r, results[r]);
}

// An XLA loop. It carries one list of values: loop-invariant inputs, the carries, the ys filled so far, a token if the
// body has ordered ops, and a counter.
class Loop {
 public:
  Loop(EmitContext& c, const LoopParts& parts, std::int64_t rows, DType count)
      : c_(c), w_(c.w), parts_(parts), rows_(rows), count_(count), ordered_(is_ordered(c.node().op)) {
    start_.assign(c.inputs().begin(), c.inputs().end());
    for (std::size_t y = 0; y < parts.ys; ++y) {
      const HloType t = c.type(static_cast<std::uint32_t>(parts.carries + y));
      start_.push_back(w_.full(t.dtype, 0, t.dims));
    }
    if (ordered_) start_.push_back(w_.order());
    start_.push_back(w_.scalar(count, 0));
    for (const Hlo& v : start_) types_.push_back(type_of(v));
  }

  /// `more(inputs of the body, count)` is the loop condition, evaluated before each iteration.
  Hlos run(const Graph& body, bool reverse, const std::function<Hlo(std::span<const Hlo>, const Hlo&)>& more) {
    const auto cond = [&](const Hlos& v) {
      follow(v);
      return Hlos{more(std::span(v).first(parts_.inputs()), v.back())};
    };
    const auto step = [&](const Hlos& v) {
      follow(v);
      return iteration(body, reverse, v);
    };
    Hlos last = w_.with_regions("while", start_, types_, {{types_, cond}, {types_, step}});
    follow(last);
    return last;
  }
  /// Sets the results: carries and ys.
  void set_results(const Hlos& last) {
    for (std::size_t k = 0; k < parts_.carries; ++k)
      c_.set(static_cast<std::uint32_t>(k), last[parts_.first_carry() + k]);
    for (std::size_t y = 0; y < parts_.ys; ++y)
      c_.set(static_cast<std::uint32_t>(parts_.carries + y), last[parts_.inputs() + y]);
  }
  const Hlos& start() const { return start_; }
  /// A number in the counter's dtype.
  Hlo number(std::int64_t n) { return w_.scalar_bits(count_, static_cast<std::uint64_t>(n)); }

 private:
  // Orders later ops after the token of these values.
  void follow(const Hlos& v) {
    if (ordered_) w_.set_order(v[v.size() - 2]);
  }
  Hlos iteration(const Graph& body, bool reverse, const Hlos& v) {
    const Hlo& count = v.back();
    const Hlo at = reverse ? w_.sub(number(rows_ - 1), count) : count;
    Hlos inputs(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(parts_.first_x()));
    for (std::size_t x = parts_.first_x(); x < parts_.inputs(); ++x) inputs.push_back(row(v[x], at));
    Hlos results = emit_body(w_, body, inputs), next = v;
    for (std::size_t k = 0; k < parts_.carries; ++k) next[parts_.first_carry() + k] = std::move(results[k]);
    for (std::size_t y = 0; y < parts_.ys; ++y) {
      Hlo& stack = next[parts_.inputs() + y];
      Extents one = stack.dims;
      one[0] = 1;
      stack = w_.dynamic_update_slice(stack, w_.reshape(results[parts_.carries + y], one), starts(stack, at));
    }
    if (ordered_) next[next.size() - 2] = w_.order();
    next.back() = w_.add(count, 1);
    return next;
  }
  Hlos starts(const Hlo& stack, const Hlo& at) {
    Hlos out{at};
    for (int i = 1; i < stack.rank(); ++i) out.push_back(w_.scalar(count_, 0));
    return out;
  }
  Hlo row(const Hlo& stack, const Hlo& at) {
    Extents one = stack.dims;
    one[0] = 1;
    return w_.reshape(w_.dynamic_slice(stack, starts(stack, at), one), Extents(one.begin() + 1, one.end()));
  }

  EmitContext& c_;
  Writer& w_;
  const LoopParts& parts_;
  std::int64_t rows_;
  DType count_;
  bool ordered_;
  Hlos start_;
  std::vector<HloType> types_;
};

DType count_dtype(std::int64_t most) { return most < (std::int64_t{1} << 31) ? DType::I32 : DType::I64; }

void emit_while(EmitContext& c) {
  const auto& op = c.op<ops::While>();
  Writer& w = c.w;
  const LoopParts parts = *loop_parts(c.node().op);
  const auto iterations = static_cast<std::uint32_t>(parts.outputs());
  if (op.max_trips && *op.max_trips == 0) {  // ys are empty
    for (std::uint32_t k = 0; k < parts.carries; ++k) c.set(k, c.in(static_cast<int>(parts.first_carry() + k)));
    for (auto y = static_cast<std::uint32_t>(parts.carries); y < iterations; ++y)
      c.set(y, w.full(c.type(y).dtype, 0, c.dims(y)));
    return c.set(iterations, w.scalar(DType::I64, 0));
  }
  const DType count = op.max_trips ? count_dtype(*op.max_trips) : DType::I64;
  Loop loop(c, parts, op.max_trips.value_or(0), count);
  const Hlos last = loop.run(*op.body, false, [&](std::span<const Hlo> inputs, const Hlo& done) {
    const Hlo more = emit_body(w, *op.cond, inputs)[0];
    return op.max_trips ? w.both(w.compare("LT", done, loop.number(*op.max_trips)), more) : more;
  });
  loop.set_results(last);
  c.set(iterations, w.convert(last.back(), DType::I64));
}

void emit_scan(EmitContext& c) {
  const auto& op = c.op<ops::Scan>();
  const LoopParts parts = *loop_parts(c.node().op);
  const std::int64_t length = op.length[0].value();
  Loop loop(c, parts, length, count_dtype(length));
  if (length == 0) return loop.set_results(loop.start());
  loop.set_results(loop.run(*op.body, op.reverse, [&](std::span<const Hlo>, const Hlo& done) {
    return c.w.compare("LT", done, loop.number(length));
  }));
}

void emit_barrier(EmitContext& c) {
  const std::vector<HloType> types = result_types(c);
  if (types.empty()) return;
  const Hlos results = c.w.ops("optimization_barrier", c.inputs(), types);
  for (std::uint32_t r = 0; r < results.size(); ++r) c.set(r, results[r]);
}

}  // namespace

std::span<const KernelEntry> control_entries() {
  static constexpr KernelEntry kRows[] = {
      {OpKind::If, refuses_bodies, emit_if},
      {OpKind::While, refuses_bodies, emit_while},
      {OpKind::Scan, refuses_bodies, emit_scan},
      {OpKind::OptimizationBarrier, never_refuses, emit_barrier},
  };
  return kRows;
}

}  // namespace rlx::tpu
