// Leaves: input, param, constant, state.
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/op_def.h"

namespace rlx {
namespace {

Result<Shapes> declared(const InferContext& c, const std::string& name, const Dims& dims, DType dtype) {
  if (name.empty()) return c.attr_error("needs a name");
  for (const Dim& d : dims)
    if (c.negative(d)) return c.error("'", name, "' has a negative dimension in ", dims_text(dims));
  return make_shapes(Shape(dims, dtype));
}

struct InputRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Input>();
    if (op.form->bytes < 0) return c.attr_error("'", op.name, "' has a malformed form '", op.form->id, "'");
    return declared(c, op.name, op.dims, op.dtype);
  }
  static void samples(SampleSet& s) { s.add_discrete("plain", {}, ops::Input{"x", {2, 3}, DType::F32}); }
  static constexpr AttrField attrs[] = {
      field<&ops::Input::name>("name"), field<&ops::Input::dims>("dims", AttrPlace::TypeDims),
      field<&ops::Input::dtype>("dtype", AttrPlace::TypeDType), field<&ops::Input::form>("form")};
};

struct ParamRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Param>();
    if (op.form->bytes < 0) return c.attr_error("'", op.name, "' has a malformed form '", op.form->id, "'");
    return declared(c, op.name, op.dims, op.dtype);
  }
  static void samples(SampleSet& s) {
    s.add_discrete("plain", {}, ops::Param{"w", {3, 2}, DType::BF16});
    s.add_discrete("mutable", {}, ops::Param{"w", {2}, DType::F32, ParamMode::Mutable});
  }
  static constexpr AttrField attrs[] = {field<&ops::Param::name>("name"),
                                        field<&ops::Param::dims>("dims", AttrPlace::TypeDims),
                                        field<&ops::Param::dtype>("dtype", AttrPlace::TypeDType),
                                        field<&ops::Param::mode>("mode"), field<&ops::Param::form>("form")};
};

struct ConstantRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Tensor& value = c.op<ops::Constant>().value;
    if (value.empty()) return c.attr_error("needs a value");
    return make_shapes(value.shape());
  }
  static void reference(const RefArgs& a) { a.out() = a.op<ops::Constant>().value; }
  static void samples(SampleSet& s) {
    s.add_discrete("vector", {}, ops::Constant{Tensor::of<float>({3}, std::vector<float>{1, -2.5f, 3e-8f})});
    s.add_discrete("i64 matrix", {},
                   ops::Constant{Tensor::of<std::int64_t>({2, 1}, std::vector<std::int64_t>{-1, 1LL << 40})});
    s.add_discrete("not finite", {}, ops::Constant{Tensor::full(Shape({2}, DType::F64), -1.0 / 0.0)});
  }
  static constexpr AttrField attrs[] = {field<&ops::Constant::value>("value")};
};

struct StateRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::State>();
    if (!op.init.empty() && !(op.init.shape() == Shape(op.dims, op.dtype)))
      return c.error("'", op.name, "' is ", Shape(op.dims, op.dtype), ", its initial value ", op.init.shape());
    return declared(c, op.name, op.dims, op.dtype);
  }
  static void samples(SampleSet& s) {
    s.add_discrete("zeros", {}, ops::State{"s", {2}, DType::F32, Tensor::zeros(Shape({2}, DType::F32))});
  }
  static constexpr AttrField attrs[] = {
      field<&ops::State::name>("name"), field<&ops::State::dims>("dims", AttrPlace::TypeDims),
      field<&ops::State::dtype>("dtype", AttrPlace::TypeDType), field<&ops::State::init>("init")};
};

constexpr NoRule kBound = none("the value is bound from outside");
constexpr NoRule kIsLeaf = none("a leaf");
constexpr NoRule kLeaf = none("it has no operands");

}  // namespace

constinit const OpDef ops::Input::def{.kind = kind,
                                      .name = "input",
                                      .what = "A run-time tensor, bound by name at each run.",
                                      .inputs = inputs(),
                                      .attrs = InputRules::attrs,
                                      .level = Level::Mir,
                                      .leaf = LeafKind::Named,
                                      .elementwise = ElementwiseKind::No,
                                      .view = ViewKind::None,
                                      .precision = PrecisionCategory::DataMovement,
                                      .infer = InputRules::infer,
                                      .decompose = kIsLeaf,
                                      .vjp = kLeaf,
                                      .jvp = kLeaf,
                                      .batch = kLeaf,
                                      .reference = kBound,
                                      .cost = no_cost,
                                      .samples = InputRules::samples};

constinit const OpDef ops::Param::def{.kind = kind,
                                      .name = "param",
                                      .what = "A weight, bound by name after compiling.",
                                      .inputs = inputs(),
                                      .attrs = ParamRules::attrs,
                                      .level = Level::Mir,
                                      .leaf = LeafKind::Named,
                                      .elementwise = ElementwiseKind::No,
                                      .view = ViewKind::None,
                                      .precision = PrecisionCategory::DataMovement,
                                      .infer = ParamRules::infer,
                                      .decompose = kIsLeaf,
                                      .vjp = kLeaf,
                                      .jvp = kLeaf,
                                      .batch = kLeaf,
                                      .reference = kBound,
                                      .cost = no_cost,
                                      .samples = ParamRules::samples};

constinit const OpDef ops::Constant::def{.kind = kind,
                                         .name = "constant",
                                         .what = "An embedded tensor.",
                                         .inputs = inputs(),
                                         .attrs = ConstantRules::attrs,
                                         .level = Level::Mir,
                                         .leaf = LeafKind::Embedded,
                                         .elementwise = ElementwiseKind::No,
                                         .view = ViewKind::None,
                                         .precision = PrecisionCategory::DataMovement,
                                         .infer = ConstantRules::infer,
                                         .decompose = kIsLeaf,
                                         .vjp = kLeaf,
                                         .jvp = kLeaf,
                                         .batch = kLeaf,
                                         .reference = ConstantRules::reference,
                                         .cost = no_cost,
                                         .samples = ConstantRules::samples};

constinit const OpDef ops::State::def{
    .kind = kind,
    .name = "state",
    .what = "A persistent value: reads what the last run left; the graph declares its next value.",
    .inputs = inputs(),
    .attrs = StateRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::Named,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::DataMovement,
    .infer = StateRules::infer,
    .decompose = kIsLeaf,
    .vjp = kLeaf,
    .jvp = kLeaf,
    .batch = kLeaf,
    .reference = kBound,
    .cost = no_cost,
    .samples = StateRules::samples};

}  // namespace rlx
