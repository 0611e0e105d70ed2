// OpDef, the record of rules that each op fills in, and the contexts that the rules receive.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rlx/error.h"
#include "rlx/ir/attr.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/input_spec.h"
#include "rlx/ir/op_facts.h"

namespace rlx {

using Shapes = std::vector<Shape>;

/// The given shapes, moved into a vector (a braced list would copy them).
template <class... S>
Shapes make_shapes(S&&... shapes) {
  Shapes out;
  out.reserve(sizeof...(shapes));
  (out.push_back(std::forward<S>(shapes)), ...);
  return out;
}

/// References to the shapes of a node's operands. Reading them copies nothing; the shapes must outlive it.
class ShapeRefs {
 public:
  ShapeRefs() = default;
  explicit ShapeRefs(std::span<const Shape> shapes) {
    for (const Shape& s : shapes) add(s);
  }
  void add(const Shape& s) {
    if (size_ < kNear)
      near_[size_] = &s;
    else
      remote_.push_back(&s);
    ++size_;
  }
  std::size_t size() const { return size_; }
  const Shape& at(std::int64_t operand) const {
    const std::size_t i = detail::checked_index("operand", operand, size_);
    return *(i < kNear ? near_[i] : remote_[i - kNear]);
  }

 private:
  static constexpr std::size_t kNear = 6;  // most nodes have no more operands
  std::array<const Shape*, kNear> near_;
  std::vector<const Shape*> remote_;
  std::size_t size_ = 0;
};

// -- contexts: InvalidArgument for an operand or result that the op does not have --

/// The input of a shape rule: the op and its operand shapes. The rule returns one shape per result, or an error.
class InferContext {
 public:
  InferContext(const OpBox& op, const ShapeRefs& inputs, std::vector<Dim>* assumed = nullptr)
      : op_(op), inputs_(inputs), assumed_(assumed) {}
  template <class Op>
  const Op& op() const {
    return op_.as<Op>();
  }
  const OpBox& box() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Shape& input(int i) const { return inputs_.at(i); }
  /// Optional operands by name (input_spec.h).
  bool has(std::string_view name) const { return find_operand(op_, num_inputs(), name).has_value(); }
  int index(std::string_view name) const { return operand_index(op_, num_inputs(), name); }
  const Shape& input(std::string_view name) const { return input(index(name)); }
  Shapes inputs() const;
  /// Collects shape assumptions about symbolic extents; null when they are not collected. For rules that infer bodies.
  std::vector<Dim>* assumed() const { return assumed_; }
  [[deprecated("now assumed")]] std::vector<Dim>* believed() const { return assumed_; }
  /// True when `d` is known to be negative. A symbolic extent is assumed not to be; `infer_shapes` can collect these
  /// assumptions.
  bool negative(const Dim& d) const {
    if (d.is_static()) return d.value() < 0;
    if (assumed_) assumed_->push_back(d);
    return false;
  }
  /// A ShapeMismatch / DTypeMismatch / InvalidArgument diagnostic that starts with the op's name.
  template <class... Args>
  Diagnostic error(const Args&... args) const {
    return make(ErrorCode::ShapeMismatch, concat_text(args...));
  }
  template <class... Args>
  Diagnostic dtype_error(const Args&... args) const {
    return make(ErrorCode::DTypeMismatch, concat_text(args...));
  }
  template <class... Args>
  Diagnostic attr_error(const Args&... args) const {
    return make(ErrorCode::InvalidArgument, concat_text(args...));
  }
  /// Error unless 0 <= axis < rank of `x`.
  std::optional<Diagnostic> check_axis(std::int64_t axis, const Shape& x) const;
  /// Error unless operands [first, last) have the dtype of operand `first`.
  std::optional<Diagnostic> check_same_dtype(int first, int last) const;

 private:
  Diagnostic make(ErrorCode code, std::string message) const;
  const OpBox& op_;
  const ShapeRefs& inputs_;
  std::vector<Dim>* assumed_;
};

/// The input of a reference rule: operands as dense tensors, and zero-filled results of the inferred shapes.
struct RefArgs {
  const OpBox& box;
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
  template <class Op>
  const Op& op() const {
    return box.as<Op>();
  }
  const Tensor& in(int i) const { return inputs[detail::checked_index("operand", i, inputs.size())]; }
  /// Optional operands by name (input_spec.h).
  bool has(std::string_view name) const { return find_operand(box, num_inputs(), name).has_value(); }
  const Tensor& in(std::string_view name) const { return in(operand_index(box, num_inputs(), name)); }
  Tensor& out(int i = 0) const { return outputs[detail::checked_index("result", i, outputs.size())]; }
  int num_inputs() const { return static_cast<int>(inputs.size()); }
};

/// The common part of all graph-building contexts: the graph being written, the op, and its operands and results as
/// values.
class BuildContext {
 public:
  BuildContext(Graph& graph, const OpBox& op, std::span<const Expr> inputs, std::span<const Shape> result_shapes)
      : graph_(graph), op_(op), inputs_(inputs), result_shapes_(result_shapes) {}
  Graph& graph() const { return graph_; }
  template <class Op>
  const Op& op() const {
    return op_.as<Op>();
  }
  const OpBox& box() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  /// Operand i as a value of graph().
  Expr input(int i) const { return inputs_[detail::checked_index("operand", i, inputs_.size())]; }
  /// Optional operands by name (input_spec.h). `index` gives the operand number that accumulate, tangent, lifted, ...
  /// take.
  bool has(std::string_view name) const { return find_operand(op_, num_inputs(), name).has_value(); }
  int index(std::string_view name) const { return operand_index(op_, num_inputs(), name); }
  Expr input(std::string_view name) const { return input(index(name)); }
  /// The operand `name`, or none when it is absent.
  std::optional<Expr> optional_input(std::string_view name) const {
    return has(name) ? std::optional(input(name)) : std::nullopt;
  }
  std::span<const Expr> inputs() const { return inputs_; }
  int num_results() const { return static_cast<int>(result_shapes_.size()); }
  const Shape& result_shape(int r = 0) const {
    return result_shapes_[detail::checked_index("result", r, result_shapes_.size())];
  }
  /// Zeros of the given shape (a scalar constant, expanded).
  Expr zeros(const Shape& shape) const;
  Expr full(const Shape& shape, double value) const;

 protected:
  /// Returns `e`. InvalidArgument for a value of another graph, which a rule must not keep.
  Expr own(const Expr& e) const;

 private:
  Graph& graph_;
  const OpBox& op_;
  std::span<const Expr> inputs_;
  std::span<const Shape> result_shapes_;
};

/// Rewrites the op as simpler ops. Every result must be set.
class DecomposeContext : public BuildContext {
 public:
  DecomposeContext(Graph& graph, const OpBox& op, std::span<const Expr> inputs, std::span<const Shape> result_shapes,
                   FusionPolicy policy, bool may_branch = false)
      : BuildContext(graph, op, inputs, result_shapes),
        results_(result_shapes.size()),
        policy_(policy),
        may_branch_(may_branch) {}
  FusionPolicy policy() const { return policy_; }
  /// True when rarely needed work may be put into a branch (Claims::branches_freely).
  bool may_branch() const { return may_branch_; }
  /// InvalidArgument for a value of another graph than `graph()`.
  void set_result(int r, Expr e) { results_[detail::checked_index("result", r, results_.size())] = own(e); }
  void set_result(Expr e) { set_result(0, e); }
  const std::vector<Expr>& results() const { return results_; }

 private:
  std::vector<Expr> results_;
  FusionPolicy policy_;
  bool may_branch_;
};

/// The replacement of an op in reverse mode: an op of the same operands that also returns residuals for the derivative.
struct Augmented {
  OpBox op;
  std::shared_ptr<const void> notes{};   // data for the vjp rule, which reads it as notes<T>()
  std::vector<std::uint32_t> results{};  // positions of the original op's results; empty: they come first
};

/// The input of an augment rule: the op, the shapes of its operands, and which operands and results are differentiated.
class AugmentContext {
 public:
  AugmentContext(const OpBox& op, std::span<const Shape> inputs, std::span<const Shape> result_shapes,
                 const std::vector<bool>& active, const std::vector<bool>& reached)
      : op_(op), inputs_(inputs), result_shapes_(result_shapes), active_(active), reached_(reached) {}
  template <class Op>
  const Op& op() const {
    return op_.as<Op>();
  }
  const OpBox& box() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_results() const { return static_cast<int>(result_shapes_.size()); }
  const Shape& input(int i) const { return inputs_[detail::checked_index("operand", i, inputs_.size())]; }
  const Shape& result_shape(int r) const {
    return result_shapes_[detail::checked_index("result", r, result_shapes_.size())];
  }
  /// True for a floating or complex operand that depends on a differentiation variable: its cotangent is wanted.
  bool is_active(int i) const { return active_[detail::checked_index("operand", i, active_.size())]; }
  /// True for a result that may have a cotangent.
  bool is_reached(int r) const { return reached_[detail::checked_index("result", r, reached_.size())]; }

 private:
  const OpBox& op_;
  std::span<const Shape> inputs_, result_shapes_;
  const std::vector<bool>&active_, &reached_;
};

/// Reverse mode of one node: reads the cotangents of its results and adds to the cotangents of its operands.
class VjpContext : public BuildContext {
 public:
  VjpContext(Graph& graph, const OpBox& op, std::span<const Expr> inputs, std::span<const Expr> outputs,
             std::span<const Shape> result_shapes, std::span<const Expr> cotangents,
             std::span<const Expr> residuals = {}, const void* notes = nullptr)
      : BuildContext(graph, op, inputs, result_shapes),
        outputs_(outputs),
        cotangents_(cotangents),
        residuals_(residuals),
        notes_(notes),
        gradients_(inputs.size()) {}
  /// Residual i of the op that the augment rule returned.
  Expr residual(int i) const { return residuals_[detail::checked_index("residual", i, residuals_.size())]; }
  int num_residuals() const { return static_cast<int>(residuals_.size()); }
  /// The notes of the augment rule; InvalidArgument when there are none.
  template <class T>
  const T& notes() const {
    if (!notes_) throw_no_notes();
    return *static_cast<const T*>(notes_);
  }
  /// The forward value of result r.
  Expr output(int r = 0) const { return outputs_[detail::checked_index("result", r, outputs_.size())]; }
  /// False when no later value depends on result r.
  bool has_cotangent(int r = 0) const {
    return cotangents_[detail::checked_index("result", r, cotangents_.size())].valid();
  }
  /// Cotangent of result r (zeros when there is none).
  Expr cotangent(int r = 0) const {
    Expr g = cotangents_[detail::checked_index("result", r, cotangents_.size())];
    return g.valid() ? g : zeros(result_shape(r));
  }
  /// False for integer and Bool operands. Their cotangents are dropped, so rules may skip the work.
  bool wants(int i) const { return is_inexact(input(i).dtype()); }
  /// Adds g to the cotangent of operand i. A g of the broadcast shape is reduced to the operand's shape.
  void accumulate(int i, Expr g);
  const std::vector<Expr>& gradients() const { return gradients_; }

 private:
  [[noreturn]] void throw_no_notes() const;
  std::span<const Expr> outputs_, cotangents_, residuals_;
  const void* notes_;
  std::vector<Expr> gradients_;  // one per operand; invalid = zero
};

/// Forward mode of one node: reads the tangents of its operands and sets those of its results. An invalid Expr is a
/// zero.
class JvpContext : public BuildContext {
 public:
  JvpContext(Graph& graph, const OpBox& op, std::span<const Expr> inputs, std::span<const Expr> outputs,
             std::span<const Shape> result_shapes, std::span<const Expr> tangents)
      : BuildContext(graph, op, inputs, result_shapes),
        outputs_(outputs),
        tangents_(tangents),
        result_tangents_(result_shapes.size()),
        replaced_(result_shapes.size()) {}
  Expr output(int r = 0) const { return outputs_[detail::checked_index("result", r, outputs_.size())]; }
  bool has_tangent(int i) const { return tangents_[detail::checked_index("operand", i, tangents_.size())].valid(); }
  /// Tangent of operand i (zeros when there is none).
  Expr tangent(int i) const {
    Expr t = tangents_[detail::checked_index("operand", i, tangents_.size())];
    return t.valid() ? t : zeros(input(i).shape());
  }
  /// Sets the tangent of result r, broadcast to its shape.
  void set_tangent(int r, Expr t);
  void set_tangent(Expr t) { set_tangent(0, t); }
  /// Adds a term (broadcast to the result's shape).
  void add_tangent(int r, Expr t);
  const std::vector<Expr>& result_tangents() const { return result_tangents_; }
  /// Declares that `e`, of the same shape, equals result r. The computation of the tangents computes it as well, so the
  /// node itself need not run. `e` must not depend on anything that depends on the node.
  void replace_output(int r, Expr e) { replaced_[detail::checked_index("result", r, replaced_.size())] = own(e); }
  const std::vector<Expr>& replaced_outputs() const { return replaced_; }

 private:
  std::span<const Expr> outputs_, tangents_;
  std::vector<Expr> result_tangents_, replaced_;
};

/// Batching of one node. Some operands have a leading batch axis; the rule emits the op over the batch.
class BatchContext : public BuildContext {
 public:
  BatchContext(Graph& graph, const OpBox& op, std::span<const Expr> inputs, std::span<const Shape> result_shapes,
               const std::vector<bool>& batched, Dim batch)
      : BuildContext(graph, op, inputs, result_shapes),
        batched_(batched),
        batch_(std::move(batch)),
        results_(result_shapes.size()) {}
  bool is_batched(int i) const { return batched_[detail::checked_index("operand", i, batched_.size())]; }
  const Dim& batch_size() const { return batch_; }
  /// Rank of operand i without the batch axis.
  int rank(int i) const { return input(i).rank() - (is_batched(i) ? 1 : 0); }
  /// Operand i with a leading batch axis, broadcast when it has none.
  Expr lifted(int i) const;
  /// Operand i as [B or 1, 1.., dims..] with `rank` axes after the batch axis, ready to broadcast.
  Expr aligned(int i, int rank) const;
  /// Sets result r (unbatched shape `result_shape(r)`) with its leading batch axis. InvalidArgument for a value of
  /// another graph than `graph()`.
  void set_result(int r, Expr e) { results_[detail::checked_index("result", r, results_.size())] = own(e); }
  void set_result(Expr e) { set_result(0, e); }
  /// Adds `op` over the lifted operands and sets all results.
  void emit_lifted(OpBox op);
  const std::vector<Expr>& results() const { return results_; }

 private:
  const std::vector<bool>& batched_;
  Dim batch_;
  std::vector<Expr> results_;
};

/// Work of one node, for cost models and reports.
struct Cost {
  double flops = 0;        // floating-point operations (a multiply-add is two)
  double read_bytes = 0;   // operand bytes touched
  double write_bytes = 0;  // result bytes
};
struct CostContext {
  const OpBox& box;
  std::span<const Shape> inputs, outputs;
  template <class Op>
  const Op& op() const {
    return box.as<Op>();
  }
  /// The operand and result bytes, with `flops`.
  Cost with_flops(double flops) const;
  double elements(int output = 0) const {
    return static_cast<double>(outputs[detail::checked_index("result", output, outputs.size())].num_elements());
  }
};

// -- the record --

struct NoRule {
  const char* reason;
};
struct DerivedRule {};
/// Says why an op has no such rule. The error to the user contains this sentence.
constexpr NoRule none(const char* reason) { return {reason}; }
/// The rule follows from the op's decomposition.
inline constexpr DerivedRule by_decomposition{};

namespace detail {
[[noreturn]] void throw_no_rule(const char* reason);
}

/// A rule without a default: a record must set it.
template <class Fn>
class Rule {
 public:
  Rule() = delete;
  constexpr Rule(Fn* fn) : fn_(fn) {}                    // NOLINT(implicit)
  constexpr Rule(NoRule none) : reason_(none.reason) {}  // NOLINT(implicit)
  constexpr Rule(DerivedRule) : derived_(true) {}        // NOLINT(implicit)
  /// The rule of a function, a captureless lambda, none(..) or by_decomposition.
  template <class F>
  static constexpr Rule of(F rule) {
    static_assert(std::is_convertible_v<F, Fn*> || std::is_convertible_v<F, Rule>,
                  "a rule is a function or a captureless lambda of the type of its field in OpDef");
    if constexpr (std::is_convertible_v<F, Fn*>)
      return Rule(static_cast<Fn*>(rule));
    else
      return Rule(rule);
  }
  constexpr bool has() const { return fn_ != nullptr; }
  constexpr bool derived() const { return derived_; }
  /// The reason given to none(), or null.
  constexpr const char* reason() const { return reason_; }
  /// Calls the rule; Unsupported with the reason when there is none.
  template <class... Args>
  decltype(auto) operator()(Args&&... args) const {
    if (!fn_) detail::throw_no_rule(reason_);
    return fn_(static_cast<Args&&>(args)...);
  }

 private:
  Fn* fn_ = nullptr;
  const char* reason_ = nullptr;
  bool derived_ = false;
};

/// A field of a record without a default: a record must set it.
template <class T>
class Required {
 public:
  Required() = delete;
  constexpr Required(T value) : value_(value) {}  // NOLINT(implicit)
  constexpr operator T() const { return value_; }

 private:
  T value_;
};

/// Everything rlx knows about an op except device kernels. The fields come in this order. A record without a rule, a
/// level or a fact (op_facts.h) does not compile.
struct OpDef {
  OpKind kind;
  std::string_view name;  // printed name: "softmax"
  std::string_view what;  // one sentence for readers of the table
  InputSpec inputs;
  std::span<const AttrField> attrs;
  Required<Level> level;
  Required<LeafKind> leaf;
  Required<ElementwiseKind> elementwise;
  Required<ViewKind> view;
  Required<PrecisionCategory> precision;
  Rule<Result<Shapes>(const InferContext&)> infer;
  Rule<void(DecomposeContext&)> decompose;
  Rule<void(VjpContext&)> vjp;
  Rule<void(JvpContext&)> jvp;
  Rule<void(BatchContext&)> batch;
  Rule<void(const RefArgs&)> reference;
  Rule<Cost(const CostContext&)> cost;
  /// Optional. Reverse mode calls it before the backward walk and replaces the node by its result.
  Rule<Augmented(const AugmentContext&)> augment = none("its derivative reads operands and results alone");
  /// These facts alone have defaults, since few ops hold programs, are ordered or update an operand.
  BodyKind bodies = BodyKind::None;
  OpTrait trait = OpTrait::Pure;
  UpdateKind updates = UpdateKind::No;

  bool is_leaf() const { return leaf != LeafKind::None; }
  bool is_view() const { return view != ViewKind::None; }
  /// True when the op has a decomposition. An op without one is a primitive.
  bool is_composite() const { return decompose.has(); }
};

/// The record of `kind` (defined in ops/table.cpp).
const OpDef& op_def(OpKind kind);
/// The record of this op: the registered record of a Custom op, else that of its kind.
const OpDef& op_def(const OpBox& op);
/// True for Input, Param and State. They are part of a graph's interface and are found by name.
inline bool is_named_leaf(OpKind kind) { return op_def(kind).leaf == LeafKind::Named; }
/// All records in the order of OpKind.
std::span<const OpDef* const> all_op_defs();
/// The op called `text_name` with its mnemonic attribute set, as printed by op_text_name; none when unknown.
struct NamedOp {
  const OpDef* def;
  std::shared_ptr<void> op;
};
std::optional<NamedOp> find_op(std::string_view text_name);

namespace detail {
void broken_rule(const OpBox& op, const std::string& what);
}
/// Throws when a rule breaks its contract: Internal for our own rules, InvalidArgument naming the record for a Custom
/// op. The parts of the text are joined only then.
template <class... Parts>
void check_rule(bool condition, const OpBox& op, const Parts&... what) {
  if (!condition) detail::broken_rule(op, concat_text(what...));
}

/// Checks the operand count and applies the infer rule.
Result<Shapes> infer_shapes(const OpBox& op, const ShapeRefs& inputs, std::vector<Dim>* assumed = nullptr);
inline Result<Shapes> infer_shapes(const OpBox& op, std::span<const Shape> inputs) {
  return infer_shapes(op, ShapeRefs(inputs));
}
/// Appends the decomposition of `op` over `inputs` to `graph`; one value per result. Unsupported when the op has none.
std::vector<Expr> decompose_into(Graph& graph, const OpBox& op, std::span<const Expr> inputs,
                                 FusionPolicy policy = FusionPolicy::Fusable, bool may_branch = false);
/// Appends a copy of sub-graph `body` to `graph` with its inputs replaced by `inputs`; returns its outputs.
std::vector<Expr> inline_body(Graph& graph, const Graph& body, std::span<const Expr> inputs);

/// Cost rule: `N` operations per element of result 0.
template <int N>
Cost flops_per_element(const CostContext& c) {
  return c.with_flops(N * c.elements());
}
/// Cost rule: bytes moved, no arithmetic.
inline Cost moves_bytes(const CostContext& c) { return c.with_flops(0); }
/// Cost rule of leaves and views.
inline Cost no_cost(const CostContext&) { return {}; }

}  // namespace rlx
