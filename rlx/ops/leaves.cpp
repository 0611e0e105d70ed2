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
    if (op.form->bytes < 0) return c.attr_error("'", op.name, "' has a malformed packed layout '", op.form->id, "'");
    return declared(c, op.name, op.dims, op.dtype);
  }
  static constexpr AttrField attrs[] = {
      field<&ops::Input::name>("name"), field<&ops::Input::dims>("dims", AttrPlace::TypeDims),
      field<&ops::Input::dtype>("dtype", AttrPlace::TypeDType), field<&ops::Input::form>("form")};
};

struct ParamRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::Param>();
    if (op.form->bytes < 0) return c.attr_error("'", op.name, "' has a malformed packed layout '", op.form->id, "'");
    return declared(c, op.name, op.dims, op.dtype);
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
  static constexpr AttrField attrs[] = {field<&ops::Constant::value>("value")};
};

struct StateRules {
  static Result<Shapes> infer(const InferContext& c) {
    const auto& op = c.op<ops::State>();
    if (!op.init.empty() && !(op.init.shape() == Shape(op.dims, op.dtype)))
      return c.error("'", op.name, "' is ", Shape(op.dims, op.dtype), ", but its initial value is ", op.init.shape());
    return declared(c, op.name, op.dims, op.dtype);
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
                                      .cost = no_cost};

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
                                      .cost = no_cost};

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
                                         .cost = no_cost};

constinit const OpDef ops::State::def{
    .kind = kind,
    .name = "state",
    .what = "A persistent value: reads the value of the last run; the graph declares the next value.",
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
    .cost = no_cost};

}  // namespace rlx
