// Ops defined outside this repository: their registry, and the attributes they carry.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/custom.h"

namespace rlx {

struct CpuKernel;  // rlx/backends/cpu/custom_kernel.h
void register_cpu_kernel(std::string_view name, const CpuKernel& kernel);

/// The record of a custom op, field by field: `register_op(CustomOpDef("acme.gate").inputs("a", "b").infer(f)
/// .reference(r).vjp(v).kernel(k))`. Required are `inputs`, `infer`, and either `reference` or `decompose`; register_op
/// names what is missing. Rules are functions of the types in OpDef, or captureless lambdas; `none("the reason users
/// read")` says why there is none. With `decompose`, the absent ones of reference, vjp, jvp and batch follow from the
/// decomposition. Without it, the derivatives are missing, and vmap runs the op once for each element of the batch.
class CustomOpDef {
 public:
  /// "acme.gate": lower-case words joined by dots.
  explicit CustomOpDef(std::string name);
  /// One sentence for readers of lists of ops.
  CustomOpDef& what(std::string text);
  /// The names of the operands: `inputs("x", "w")`.
  template <class... Names>
    requires(std::convertible_to<Names, std::string_view> && ...)
  CustomOpDef& inputs(Names... names) {
    return inputs(rlx::inputs(std::string_view(names)...));
  }
  CustomOpDef& inputs(const InputSpec& spec);
  /// Level::Hir for a block that its decomposition lowers. By default Level::Mir.
  CustomOpDef& level(Level level);
  /// Promises that each result element depends on one element of each operand, all of which have one shape. Passes may
  /// then move the op, and vmap runs it on the whole batch.
  CustomOpDef& elementwise();
  /// How mixed precision treats the op. By default PrecisionCategory::Stated: it computes in the dtypes it is given.
  CustomOpDef& precision(PrecisionCategory category);
  /// The op runs once for each node, in the order of the graph: callbacks.
  CustomOpDef& ordered();
  /// The shapes of the results: Result<Shapes>(const InferContext&).
  template <class Fn>
  CustomOpDef& infer(Fn rule) {
    return with(infer_, rule);
  }
  /// What the op computes, element by element: void(const RefArgs&).
  template <class Fn>
  CustomOpDef& reference(Fn rule) {
    return with(reference_, rule);
  }
  /// The op as simpler ops: void(DecomposeContext&).
  template <class Fn>
  CustomOpDef& decompose(Fn rule) {
    return with(decompose_, rule);
  }
  /// Reverse mode: void(VjpContext&).
  template <class Fn>
  CustomOpDef& vjp(Fn rule) {
    return with(vjp_, rule);
  }
  /// Forward mode: void(JvpContext&).
  template <class Fn>
  CustomOpDef& jvp(Fn rule) {
    return with(jvp_, rule);
  }
  /// vmap: void(BatchContext&).
  template <class Fn>
  CustomOpDef& batch(Fn rule) {
    return with(batch_, rule);
  }
  /// The work of a node for cost models: Cost(const CostContext&), for example flops_per_element<4>. By default the
  /// bytes of operands and results.
  template <class Fn>
  CustomOpDef& cost(Fn rule) {
    return with(cost_, rule);
  }
  /// The kernel on the cpu, a function or a CpuKernel; include rlx/backends/cpu/custom_kernel.h. Without one the op
  /// runs by its decomposition or its reference rule.
  template <class Kernel>
  CustomOpDef& kernel(Kernel run) {
    // Dependent, so that CpuKernel must be complete only here.
    using Record = std::conditional_t<sizeof(Kernel) != 0, CpuKernel, Kernel>;
    kernel_ = [run](std::string_view name) { register_cpu_kernel(name, Record{run}); };
    return *this;
  }
  /// The record. InvalidArgument that names every required field that was not set. It refers to the name and the text
  /// of this object.
  OpDef record() const;

 private:
  friend void register_op(const CustomOpDef& def);
  template <class Rule, class Fn>
  CustomOpDef& with(std::optional<Rule>& field, Fn rule) {
    field.emplace(Rule::of(rule));
    return *this;
  }
  std::string name_, what_;
  std::optional<InputSpec> inputs_;
  Level level_ = Level::Mir;
  ElementwiseKind elementwise_ = ElementwiseKind::No;
  PrecisionCategory precision_ = PrecisionCategory::Stated;
  OpTrait trait_ = OpTrait::Pure;
  std::optional<decltype(OpDef::infer)> infer_;
  std::optional<decltype(OpDef::decompose)> decompose_;
  std::optional<decltype(OpDef::vjp)> vjp_;
  std::optional<decltype(OpDef::jvp)> jvp_;
  std::optional<decltype(OpDef::batch)> batch_;
  std::optional<decltype(OpDef::reference)> reference_;
  std::optional<decltype(OpDef::cost)> cost_;
  std::function<void(std::string_view)> kernel_;
};
/// Registers the op, and its kernel if it has one. Errors: those of CustomOpDef::record and of the other register_op.
void register_op(const CustomOpDef& def);

/// Makes `def` the record of `ops::Custom` nodes called `def.name` ("acme.scaled_tanh": at least two lower-case words
/// joined by dots). The record has `.kind = OpKind::Custom, .attrs = {}`. It needs `infer`, and either `reference` or a
/// `decompose` that `reference` is derived from. Every other missing rule is `none("the reason users read")`. Throws
/// InvalidArgument for a name that is taken and for an invalid record. Call it at start-up; the record stays for the
/// life of the process.
void register_op(const OpDef& def);
/// The record registered as `name`, or null.
const OpDef* registered_op(std::string_view name);
/// All registered records by name.
std::vector<const OpDef*> registered_ops();

namespace detail {
template <class T>
inline constexpr bool kAttrNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
[[noreturn]] void throw_attr_bytes(const OpBox& op, std::size_t read);
}  // namespace detail

/// The op called `name` with these numbers as its attributes, for `g.add(custom_op("acme.scaled_tanh", 0.5), {x})`.
template <class... T>
  requires(detail::kAttrNumber<T> && ...)
OpBox custom_op(std::string name, T... numbers) {
  std::vector<std::byte> bytes((sizeof(T) + ... + 0));
  [[maybe_unused]] std::byte* at = bytes.data();
  ((std::memcpy(at, &numbers, sizeof numbers), at += sizeof numbers), ...);
  return ops::Custom{std::move(name), std::move(bytes)};
}

/// The numbers that custom_op stored, for rules and kernels: `auto [scale] = custom_attrs<double>(c.box())`. Throws
/// InvalidArgument naming the op when its attributes have another size.
template <class... T>
  requires(detail::kAttrNumber<T> && ...)
std::tuple<T...> custom_attrs(const OpBox& op) {
  const std::vector<std::byte>& bytes = op.as<ops::Custom>().attrs;
  if (bytes.size() != (sizeof(T) + ... + 0)) detail::throw_attr_bytes(op, (sizeof(T) + ... + 0));
  std::tuple<T...> out;
  const std::byte* at = bytes.data();
  std::apply([&](T&... value) { ((std::memcpy(&value, at, sizeof value), at += sizeof value), ...); }, out);
  return out;
}

}  // namespace rlx
