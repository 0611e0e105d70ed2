// Ops registered like those of another project.
#include "tests/support/custom_ops.h"

#include <cmath>

#include "rlx/backends/cpu/custom_kernel.h"
#include "rlx/tensor/visit.h"
#include "rlx/testing/op_samples.h"

namespace rlx::test {
namespace {

struct ScaledTanhRules {
  static OpBox op(double scale) { return custom_op("test.scaled_tanh", scale); }
  static double scale(const OpBox& box) { return std::get<0>(custom_attrs<double>(box)); }
  static Result<Shapes> infer(const InferContext& c) {
    if (!is_float(c.input(0).dtype()) || is_storage_only(c.input(0).dtype()))
      return c.dtype_error("x must be float, got ", c.input(0));
    if (!std::isfinite(scale(c.box()))) return c.attr_error("scale is not finite");
    return Shapes{c.input(0)};
  }
  static void reference(const RefArgs& a) {
    for (std::int64_t i = 0; i < a.in(0).num_elements(); ++i)
      store_element(a.out().mutable_data(), a.out().dtype(), i,
                    scale(a.box) * std::tanh(load_element<double>(a.in(0).data(), a.in(0).dtype(), i)));
  }
  // scale (1 - tanh(x)^2)
  static Expr slope(const BuildContext& c) {
    const Expr t = c.graph().tanh(c.input(0));
    return (1.0 - t * t) * scale(c.box());
  }
  static void vjp(VjpContext& c) { c.accumulate(0, c.cotangent() * slope(c)); }
  static void jvp(JvpContext& c) { c.set_tangent(c.tangent(0) * slope(c)); }
  static void batch(BatchContext& c) { c.emit_lifted(c.box()); }
  static void samples(testing::SampleSet& s) {
    s.add("two", {Shape({2, 3}, DType::F32)}, op(2));
    s.add("wide", {Shape({5}, DType::F64)}, op(-0.5));
    s.add_discrete("empty", {Shape({0, 3}, DType::F32)}, op(1));
  }
  static std::optional<Diagnostic> kernel(const KernelCall& call) {
    const auto x = call.inputs[0].as<float>();
    const auto y = call.outputs[0].as<float>();
    if (!x) return x.error();
    if (!y) return y.error();
    const auto factor = static_cast<float>(scale(call.op));
    for (std::size_t i = 0; i < x->size(); ++i) (*y)[i] = factor * std::tanh((*x)[i]);
    return std::nullopt;
  }
  static std::optional<Diagnostic> kernel_f64(const KernelCall& call) {
    const auto x = call.inputs[0].as<double>();
    const auto y = call.outputs[0].as<double>();
    if (!x) return x.error();
    if (!y) return y.error();
    for (std::size_t i = 0; i < x->size(); ++i) (*y)[i] = scale(call.op) * std::tanh((*x)[i]);
    return std::nullopt;
  }
  static std::optional<Diagnostic> run(const KernelCall& call) {
    return call.inputs[0].dtype() == DType::F64 ? kernel_f64(call) : kernel(call);
  }
};

struct SumAndDifferenceRules {
  static Result<Shapes> infer(const InferContext& c) {
    if (auto e = c.check_same_dtype(0, 2)) return *e;
    if (!(c.input(0) == c.input(1))) return c.error("a is ", c.input(0), ", b is ", c.input(1));
    if (!is_float(c.input(0).dtype()) || is_storage_only(c.input(0).dtype()))
      return c.dtype_error("a must be float, got ", c.input(0));
    return Shapes{c.input(0), c.input(1)};
  }
  static void decompose(DecomposeContext& c) {
    c.set_result(0, c.input(0) + c.input(1));
    c.set_result(1, c.input(0) - c.input(1));
  }
  static void samples(testing::SampleSet& s) {
    s.add("pair", {Shape({2, 3}, DType::F32), Shape({2, 3}, DType::F32)}, custom_op("test.sum_and_difference"));
    s.add("one", {Shape({1}, DType::F64), Shape({1}, DType::F64)}, custom_op("test.sum_and_difference"));
  }
};

OpDef scaled_tanh() {
  OpDef def = plain_record("test.scaled_tanh");
  def.what = "scale tanh(x).";
  def.elementwise = ElementwiseKind::Yes;
  def.infer = ScaledTanhRules::infer;
  def.vjp = ScaledTanhRules::vjp;
  def.jvp = ScaledTanhRules::jvp;
  def.batch = ScaledTanhRules::batch;
  def.reference = ScaledTanhRules::reference;
  def.cost = flops_per_element<8>;
  return def;
}

OpDef sum_and_difference() {
  OpDef def = plain_record("test.sum_and_difference");
  def.what = "a + b and a - b.";
  def.inputs = inputs("a", "b");
  def.elementwise = ElementwiseKind::Yes;
  def.infer = SumAndDifferenceRules::infer;
  def.decompose = SumAndDifferenceRules::decompose;
  def.vjp = by_decomposition;
  def.jvp = by_decomposition;
  def.batch = by_decomposition;
  def.reference = by_decomposition;
  def.cost = flops_per_element<2>;
  return def;
}

OpDef bare() {
  OpDef def = plain_record("test.bare");
  def.decompose = none("it is kept opaque");
  def.vjp = none("nobody wrote its gradient");
  def.jvp = none("nobody wrote its tangent");
  def.batch = none("it knows no batches");
  return def;
}

Result<Shapes> shape_of_x(const InferContext& c) { return Shapes{c.input(0)}; }
void copy_x(const RefArgs& a) { a.out() = a.in(0); }

}  // namespace

OpDef plain_record(std::string_view name) {
  return {.kind = OpKind::Custom,
          .name = name,
          .what = "x.",
          .inputs = inputs("x"),
          .attrs = {},
          .level = Level::Mir,
          .leaf = LeafKind::None,
          .elementwise = ElementwiseKind::No,
          .view = ViewKind::None,
          .precision = PrecisionCategory::Stated,
          .infer = shape_of_x,
          .decompose = none("a primitive"),
          .vjp = none("no vjp"),
          .jvp = none("no jvp"),
          .batch = none("no batch"),
          .reference = copy_x,
          .cost = none("free")};
}

std::vector<const OpDef*> custom_ops() {
  static const std::vector<const OpDef*> registered = [] {
    for (const OpDef& def : {scaled_tanh(), sum_and_difference(), bare()}) register_op(def);
    testing::add_op_samples("test.scaled_tanh", ScaledTanhRules::samples);
    testing::add_op_samples("test.sum_and_difference", SumAndDifferenceRules::samples);
    register_cpu_kernel("test.scaled_tanh", {ScaledTanhRules::run, [](const Graph& g, NodeId id) {
                                               const DType t = g.shape(Value(id)).dtype();
                                               return t == DType::F32 || t == DType::F64;
                                             }});
    return std::vector<const OpDef*>{registered_op("test.scaled_tanh"), registered_op("test.sum_and_difference"),
                                     registered_op("test.bare")};
  }();
  return registered;
}

std::vector<const OpDef*> ops_under_test() {
  std::vector<const OpDef*> out(all_op_defs().begin(), all_op_defs().end());
  for (const OpDef* def : custom_ops()) out.push_back(def);
  return out;
}

}  // namespace rlx::test
