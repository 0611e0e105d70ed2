// Matrix products: with packed weights and epilogues, and of two run-time operands by strides.
#include <algorithm>
#include <cmath>

#include "rlx/backends/cpu/rows.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/lir.h"

namespace rlx::cpu {
namespace {

// -- epilogues --

/// One operand of an epilogue: an operand of the node, or a constant of the body.
struct EpilogueOperand {
  int operand = -1;  // index among the epilogue's operands (0 = the first after the accumulator)
  const float* constant = nullptr;
  bool used() const { return operand >= 0 || constant != nullptr; }
};

/// An epilogue in the form GemmEpilogue has.
struct EpilogueForm {
  float alpha = 1.0F;
  Act act = Act::None;
  bool residual_after_act = false;
  EpilogueOperand bias, residual, mul;
};

std::optional<Act> epilogue_act(ActivationKind fn) {
  switch (fn) {
    case ActivationKind::Relu: return Act::Relu;
    case ActivationKind::Gelu: return Act::Gelu;
    case ActivationKind::GeluApprox: return Act::GeluTanh;
    case ActivationKind::Silu: return Act::Silu;
    case ActivationKind::Tanh: return Act::Tanh;
    case ActivationKind::Sigmoid: return Act::Sigmoid;
    default: return std::nullopt;
  }
}

/// The chain of the body from the accumulator to its output, read as scale, bias, residual, activation, multiply (or
/// residual last); none when it is anything else.
class EpilogueMatcher {
 public:
  explicit EpilogueMatcher(const Graph& body) : body_(body), inputs_(body.leaves(OpKind::Input)) {}

  std::optional<EpilogueForm> match() {
    if (body_.outputs().size() != 1 || inputs_.empty()) return std::nullopt;
    if (body_.shape(inputs_[0]).dtype() != DType::F32 || body_.shape(inputs_[0]).rank() < 1) return std::nullopt;
    accumulator_ = body_.shape(inputs_[0]);
    UseIndex uses(body_);
    Value cur(inputs_[0]);
    while (!(cur == body_.outputs()[0])) {
      if (!uses.single_use(cur)) return std::nullopt;
      const NodeId user = uses.uses(cur)[0].user;
      const Node& n = body_.node(user);
      if (!(n.shape() == accumulator_)) return std::nullopt;
      const int at = static_cast<int>(uses.uses(cur)[0].operand);
      if (const auto* act = n.op.get_if<ops::Activation>()) {
        const auto fn = has_own_params(*act) ? epilogue_act(act->fn) : std::nullopt;
        if (!fn || form_.act != Act::None || form_.mul.used()) return std::nullopt;
        form_.act = *fn;
        after_act_ = true;
      } else if (const auto* binary = n.op.get_if<ops::Binary>()) {
        if (!take(binary->fn, at, n.inputs[static_cast<std::size_t>(1 - at)])) return std::nullopt;
      } else {
        return std::nullopt;
      }
      cur = Value(user);
    }
    return form_;
  }

 private:
  bool take(BinaryKind fn, int position, Value other) {
    if (fn == BinaryKind::Mul || (fn == BinaryKind::Div && position == 0)) {
      if (auto factor = scalar(other)) return scale(fn, *factor);
      if (fn != BinaryKind::Mul || !(body_.shape(other) == accumulator_) || form_.mul.used() || late_residual_)
        return false;
      form_.mul = operand(other);
      after_act_ = true;
      return form_.mul.used();
    }
    if (fn != BinaryKind::Add) return false;
    // A vector first, if it can be one: at one row a residual looks like a bias, and is as good as one. The kernel adds
    // the bias before the residual, so one behind it is not taken.
    if (is_bias(body_.shape(other)) && !form_.bias.used() && !form_.residual.used() && !after_act_) {
      form_.bias = operand(other);
      return form_.bias.used();
    }
    if (!(body_.shape(other) == accumulator_) || form_.residual.used()) return false;
    form_.residual = operand(other);
    form_.residual_after_act = late_residual_ = after_act_;
    return form_.residual.used();
  }

  // One factor, so that the kernel's one product rounds as the step does: of two folded into one the product may leave
  // the normal numbers where the steps do not, and the reverse (y * 2^100 / 2^100 is infinite from y = 2^28 on), and
  // two roundings become one. Division by a power of two is the exact product with its reciprocal; by anything else the
  // reciprocal would be rounded, or overflow.
  bool scale(BinaryKind fn, float factor) {
    if (form_.alpha != 1.0F || any_after_scale()) return false;
    if (fn == BinaryKind::Div) {
      int exponent = 0;
      const bool power_of_two = std::fabs(std::frexp(factor, &exponent)) == 0.5F;
      factor = 1.0F / factor;
      if (!power_of_two || !std::isnormal(factor)) return false;
    }
    form_.alpha = factor;
    return true;
  }

  bool any_after_scale() const { return form_.bias.used() || form_.residual.used() || after_act_; }

  bool is_bias(const Shape& s) const {
    if (s.dtype() != DType::F32 || s.rank() < 1 || s.rank() > accumulator_.rank()) return false;
    if (!(s.dim(-1) == accumulator_.dim(-1))) return false;
    for (int i = 0; i + 1 < s.rank(); ++i)
      if (!s.dim(i).is_static(1)) return false;
    return true;
  }

  EpilogueOperand operand(Value v) const {
    EpilogueOperand out;
    for (std::size_t i = 1; i < inputs_.size(); ++i)
      if (Value(inputs_[i]) == v) out.operand = static_cast<int>(i) - 1;
    if (const auto* c = body_.node(v.node).op.get_if<ops::Constant>())
      out.constant = reinterpret_cast<const float*>(c->value.data());
    return out;
  }

  std::optional<float> scalar(Value v) const {
    const auto* c = body_.node(v.node).op.get_if<ops::Constant>();
    if (!c || c->value.num_elements() != 1 || c->value.dtype() != DType::F32) return std::nullopt;
    return c->value.values<float>()[0];
  }

  const Graph& body_;
  std::vector<NodeId> inputs_;
  Shape accumulator_;
  EpilogueForm form_;
  bool after_act_ = false, late_residual_ = false;
};

std::optional<EpilogueForm> match_epilogue(const Subgraph& body) {
  if (!body) return EpilogueForm{};
  return EpilogueMatcher(*body).match();
}

/// Whether operand `i` of the epilogue is the residual or the multiplier, of which each element is read right before
/// the element of the result is written.
bool read_before_written(const Subgraph& body, int i) {
  const auto form = match_epilogue(body);
  return form && (form->residual.operand == i || form->mul.operand == i) && form->bias.operand != i;
}

/// Fills in `e`; operand i of the form is operand `first` + i of the node.
void point_epilogue(LowerContext& c, const EpilogueForm& form, int first, std::int64_t n, GemmEpilogue& e) {
  e.alpha = form.alpha;
  e.act = form.act;
  e.residual_after_act = form.residual_after_act;
  const auto point = [&](const float*& field, const EpilogueOperand& operand) {
    if (operand.constant)
      field = operand.constant;
    else if (operand.operand >= 0) {
      const View v = c.in(first + operand.operand);
      check(v.dense(), "operands of an epilogue lie row-major");
      c.point(field, v);
    }
  };
  point(e.bias, form.bias);
  point(e.residual, form.residual);
  point(e.mul, form.mul);
  e.ld_residual = e.ld_mul = n;
}

// -- packed weight --

constexpr const char* kNotF32 = "its operands and result are not f32";
constexpr const char* kNoEpilogue = "the kernel has no epilogue of this form";

const char* packed_refuses(const Graph& g, NodeId id) {
  const auto& op = g.node(id).op.as<ops::PackedDot>();
  if (op.panel_width <= 0) return "its weight is packed for no instruction set";
  if (in_dtype(g, id, 0) != DType::F32 || g.shape(id).dtype() != DType::F32) return kNotF32;
  return refuse_unless(match_epilogue(op.epilogue).has_value(), kNoEpilogue);
}

struct PackedGemm {
  GemmF32 gemm;
  GemmPlan plan;
  void (*run)(const GemmF32&, const GemmPlan&, std::int64_t) = nullptr;
};
void run_packed(const PackedGemm& p, std::int64_t chunk) { p.run(p.gemm, p.plan, chunk); }

double gemm_cost_ns(const LowerContext& c, std::int64_t m, std::int64_t n, std::int64_t k) {
  const double mnk = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const double weight_bytes = 4.0 * static_cast<double>(n) * static_cast<double>(k);
  return std::max(2 * mnk / gemm_flops_per_ns(c.kernels().isa), weight_bytes / 50.0);
}

void lower_packed(LowerContext& c) {
  const auto& op = c.op<ops::PackedDot>();
  const View x = c.in(0), y = c.out();
  if (y.elements() == 0) return;
  check(op.panel_width == c.kernels().packed_nr_f32(op.n), "a weight packed for another instruction set");
  auto& p = c.keep<PackedGemm>();
  const auto rows = as_rows(x);
  check(rows.has_value(), "x of a packed product folds to rows");
  p.run = c.kernels().gemm_f32;
  p.gemm.m = rows->rows;
  p.gemm.n = op.n;
  p.gemm.k = op.k;
  p.gemm.lda = rows->ld;
  p.gemm.ldc = op.n;
  c.point(p.gemm.a, x);
  c.point(p.gemm.b_packed, c.in(1));
  c.point(p.gemm.c, y);
  const EpilogueForm form = *match_epilogue(op.epilogue);
  point_epilogue(c, form, 2, op.n, p.gemm.epilogue);
  p.plan = c.kernels().gemm_plan_f32(p.gemm.m, p.gemm.n, p.gemm.k, c.threads());
  // The last panels of a product fetch the first of the next one; the last product of a run those of the next run.
  Program& program = c.program();
  if (program.next_weight)
    c.point(*program.next_weight, c.in(1));
  else
    program.first_weight = c.in(1).where;
  program.next_weight = &p.gemm.prefetch_next;
  c.step<run_packed>(p, p.plan.chunks, gemm_cost_ns(c, p.gemm.m, p.gemm.n, p.gemm.k));
  const auto operand = [](const EpilogueOperand& o) { return o.operand < 0 ? -1 : o.operand + 2; };
  c.walks_rows(p.gemm.m, p.plan.rows_per_chunk, p.plan.panel_chunks, {0, operand(form.residual), operand(form.mul)});
}

// x may be a strided matrix; with more axes its rows might not fold.
bool packed_reads_strided(const Graph& g, NodeId id, int operand) {
  return operand == 0 && in_shape(g, id, 0).rank() <= 2;
}

// The kernel may write over the residual or the multiplier, of which each element is read before it is written; not
// over x, whose rows are read by every panel.
bool packed_in_place(const Graph& g, NodeId id, int operand, int) {
  const auto& inputs = g.node(id).inputs;
  return operand >= 2 && !(inputs[static_cast<std::size_t>(operand)] == inputs[0]) &&
         read_before_written(g.node(id).op.as<ops::PackedDot>().epilogue, operand - 2);
}

// -- two run-time operands --

/// Axes of a product by role.
struct DotRoles {
  std::vector<int> lhs_batch, rhs_batch, lhs_free, rhs_free, lhs_contract, rhs_contract;
};

template <class Op>
DotRoles dot_roles(const Op& op, int lhs_rank, int rhs_rank) {
  DotRoles r;
  const auto copy = [](const std::vector<std::int64_t>& from) { return std::vector<int>(from.begin(), from.end()); };
  r.lhs_batch = copy(op.lhs_batch);
  r.rhs_batch = copy(op.rhs_batch);
  r.lhs_contract = copy(op.lhs_contract);
  r.rhs_contract = copy(op.rhs_contract);
  const auto free = [](int rank, const std::vector<int>& a, const std::vector<int>& b) {
    std::vector<int> out;
    for (int i = 0; i < rank; ++i)
      if (std::find(a.begin(), a.end(), i) == a.end() && std::find(b.begin(), b.end(), i) == b.end()) out.push_back(i);
    return out;
  };
  r.lhs_free = free(lhs_rank, r.lhs_batch, r.lhs_contract);
  r.rhs_free = free(rhs_rank, r.rhs_batch, r.rhs_contract);
  return r;
}

DotRoles roles_of(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const int a = in_shape(g, id, 0).rank(), b = in_shape(g, id, 1).rank();
  if (const auto* fused = n.op.get_if<ops::FusedDot>()) return dot_roles(*fused, a, b);
  return dot_roles(n.op.as<ops::DotGeneral>(), a, b);
}

// Whatever the strides, the axes fit the kernel: m and n take one each of the result's, the others are outer ones.
const char* strided_dot_refuses(const Graph& g, NodeId id) {
  if (const char* why = refuse_unless_f32(g, id)) return why;
  return refuse_unless(g.shape(id).rank() <= kGemmMaxAxes && in_shape(g, id, 0).rank() <= kGemmMaxAxes,
                       "it has more axes than the kernel");
}

// A bias runs along the columns, so the last axis of the result must be one of rhs.
const char* strided_fused_refuses(const Graph& g, NodeId id) {
  if (const char* why = strided_dot_refuses(g, id)) return why;
  const auto form = match_epilogue(g.node(id).op.as<ops::FusedDot>().epilogue);
  if (!form) return kNoEpilogue;
  return refuse_unless(!form->bias.used() || !roles_of(g, id).rhs_free.empty(),
                       "a bias needs a last axis that comes from the second operand");
}

std::optional<Target::Packing> dot_packing(const KernelTable& kernels, const Graph& g, NodeId id, int operand,
                                           std::int64_t k, std::int64_t n) {
  const DotRoles r = roles_of(g, id);
  const Shape &x = in_shape(g, id, 0), &w = in_shape(g, id, 1);
  if (operand != 1 || x.dtype() != DType::F32 || w.dtype() != DType::F32 || w.rank() != 2 || x.rank() < 1)
    return std::nullopt;
  if (!r.lhs_batch.empty() || r.lhs_contract.size() != 1 || r.lhs_contract[0] != x.rank() - 1) return std::nullopt;
  if (k < 1 || n < 1) return std::nullopt;
  return Target::Packing{kernels.packed_nr_f32(n), kernels.packed_size_f32(k, n) * 4};
}

struct StridedGemm {
  GemmStridedF32 gemm;
  GemmStridedPlan plan;
  float* packed_a = nullptr;
  const Scratch* scratch = nullptr;
  const KernelTable* kernels = nullptr;
};
void run_pack_a(const StridedGemm& p, std::int64_t chunk) {
  p.kernels->gemm_pack_a_f32(p.gemm, p.plan, chunk, p.packed_a);
}
void run_strided(const StridedGemm& p, std::int64_t chunk) {
  p.kernels->gemm_strided_f32(p.gemm, p.plan, chunk, p.packed_a, p.scratch->mine());
}

/// Drops axes of one element and makes one of neighbouring axes that walk everything in one stride.
std::vector<GemmAxis> folded(const std::vector<GemmAxis>& axes) {
  std::vector<GemmAxis> out;
  for (const GemmAxis& axis : axes) {
    if (axis.extent == 1) continue;
    GemmAxis* last = out.empty() ? nullptr : &out.back();
    if (last && last->a == axis.a * axis.extent && last->b == axis.b * axis.extent && last->c == axis.c * axis.extent)
      *last = {last->extent * axis.extent, axis.a, axis.b, axis.c};
    else
      out.push_back(axis);
  }
  return out;
}

void lower_strided(LowerContext& c) {
  const View x = c.in(0), w = c.in(1), y = c.out();
  if (y.elements() == 0) return;
  const DotRoles roles = roles_of(c.graph(), c.id());
  // The result is batch ++ lhs free ++ rhs free, row-major.
  std::vector<GemmAxis> batch, rows, cols, contracted;
  std::size_t at = 0;
  for (std::size_t i = 0; i < roles.lhs_batch.size(); ++i, ++at)
    batch.push_back({y.dims[at], x.stride(roles.lhs_batch[i]), w.stride(roles.rhs_batch[i]), y.strides[at]});
  for (int a : roles.lhs_free) rows.push_back({y.dims[at], x.stride(a), 0, y.strides[at]}), ++at;
  for (int b : roles.rhs_free) cols.push_back({y.dims[at], 0, w.stride(b), y.strides[at]}), ++at;
  for (std::size_t i = 0; i < roles.lhs_contract.size(); ++i)
    contracted.push_back(
        {x.dim(roles.lhs_contract[i]), x.stride(roles.lhs_contract[i]), w.stride(roles.rhs_contract[i]), 0});
  auto& p = c.keep<StridedGemm>();
  GemmStridedF32& gemm = p.gemm;
  std::vector<GemmAxis> outer = folded(batch);
  rows = folded(rows);
  GemmAxis row, col;
  if (!rows.empty()) {
    row = rows.back();
    rows.pop_back();
  }
  const auto* fused = c.node().op.get_if<ops::FusedDot>();
  std::optional<EpilogueForm> form;
  if (fused) form = match_epilogue(fused->epilogue);
  if (form && form->bias.used()) {  // as long as the last axis
    col = cols.back();
    cols.pop_back();
    cols = folded(cols);
  } else if (cols = folded(cols); !cols.empty()) {
    col = cols.back();
    cols.pop_back();
  }
  check(col.extent == 1 || col.c == 1, "columns of a product are adjacent");
  gemm.m = row.extent;
  gemm.a_m_stride = row.a;
  gemm.ldc = row.extent > 1 ? row.c : col.extent;
  gemm.n = col.extent;
  gemm.b_n_stride = col.b;
  outer.insert(outer.end(), rows.begin(), rows.end());
  outer.insert(outer.end(), cols.begin(), cols.end());
  contracted = folded(contracted);
  check(outer.size() <= kGemmMaxAxes && contracted.size() <= kGemmMaxAxes, "a product of this many axes");
  std::copy(outer.begin(), outer.end(), gemm.outer);
  std::copy(contracted.begin(), contracted.end(), gemm.contracted);
  gemm.num_outer = static_cast<int>(outer.size());
  gemm.num_contracted = static_cast<int>(contracted.size());
  c.point(gemm.a, x);
  c.point(gemm.b, w);
  c.point(gemm.c, y);
  if (form) point_epilogue(c, *form, 2, gemm.n, gemm.epilogue);
  p.kernels = &c.kernels();
  p.plan = p.kernels->gemm_strided_plan_f32(gemm, c.threads());
  p.scratch = c.scratch(p.plan.scratch_bytes);
  if (p.plan.pack_a_floats > 0) {
    p.packed_a = reinterpret_cast<float*>(c.workspace(static_cast<std::size_t>(p.plan.pack_a_floats) * sizeof(float)));
    c.step<run_pack_a>(p, p.plan.pack_a_chunks, 0.3 * static_cast<double>(p.plan.pack_a_floats));
  }
  const double products = static_cast<double>(y.elements()) / static_cast<double>(gemm.m * gemm.n);
  c.step<run_strided>(p, p.plan.chunks, 1.3 * products * gemm_cost_ns(c, gemm.m, gemm.n, p.plan.k));
}

bool strided_reads_strided(const Graph&, NodeId, int operand) { return operand < 2; }

// As packed_in_place; neither x nor w may be what is written over.
bool strided_in_place(const Graph& g, NodeId id, int operand, int) {
  const auto& inputs = g.node(id).inputs;
  const Value& candidate = inputs[static_cast<std::size_t>(operand)];
  return operand >= 2 && !(candidate == inputs[0]) && !(candidate == inputs[1]) &&
         read_before_written(g.node(id).op.as<ops::FusedDot>().epilogue, operand - 2);
}

constexpr Row kRows[] = {
    {OpKind::PackedDot, "gemm_packed_f32", packed_refuses, lower_packed, packed_reads_strided, packed_in_place},
    {OpKind::DotGeneral, "gemm_strided_f32", strided_dot_refuses, lower_strided, strided_reads_strided, nullptr,
     dot_packing},
    {OpKind::FusedDot, "gemm_strided_f32", strided_fused_refuses, lower_strided, strided_reads_strided,
     strided_in_place, dot_packing},
};

}  // namespace

std::span<const Row> dot_rows() { return kRows; }

}  // namespace rlx::cpu
