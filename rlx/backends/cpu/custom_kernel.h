// Kernels of the CPU backend for ops that other projects register (ir/custom_op.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rlx/ir/attr.h"
#include "rlx/ir/graph.h"
#include "rlx/tensor/tensor.h"

namespace rlx {

namespace detail {
Diagnostic other_element_type(std::string_view role, int index, DType actual, DType expected);
}  // namespace detail

/// An operand of a custom kernel: dense, row-major.
class KernelInput {
 public:
  KernelInput(int index, TensorView view) : index_(index), view_(view) {}
  DType dtype() const { return view_.dtype; }
  std::span<const std::int64_t> dims() const { return view_.dims; }
  const void* data() const { return view_.data; }
  /// The elements as T; an error naming operand, expected and actual dtype when they are of another type.
  template <class T>
  Result<std::span<const T>> as() const {
    if (view_.dtype != DTypeOf<T>::value)
      return detail::other_element_type("operand", index_, view_.dtype, DTypeOf<T>::value);
    return std::span<const T>(static_cast<const T*>(view_.data), view_.size_bytes / sizeof(T));
  }

 private:
  int index_;
  TensorView view_;
};

/// A result of a custom kernel: dense, row-major, uninitialised.
class KernelOutput {
 public:
  KernelOutput(int index, MutableTensorView view) : index_(index), view_(view) {}
  DType dtype() const { return view_.dtype; }
  std::span<const std::int64_t> dims() const { return view_.dims; }
  void* data() const { return view_.data; }
  /// The elements as T; an error naming result, expected and actual dtype when they are of another type.
  template <class T>
  Result<std::span<T>> as() const {
    if (view_.dtype != DTypeOf<T>::value)
      return detail::other_element_type("result", index_, view_.dtype, DTypeOf<T>::value);
    return std::span<T>(static_cast<T*>(view_.data), view_.size_bytes / sizeof(T));
  }

 private:
  int index_;
  MutableTensorView view_;
};

/// One call of a custom kernel.
struct KernelCall {
  const OpBox& op;  // `auto [scale] = custom_attrs<double>(call.op)`
  std::span<const KernelInput> inputs;
  std::span<const KernelOutput> outputs;  // dims and dtypes are those of the infer rule; none overlaps an operand
};

/// How the CPU runs a custom op.
struct CpuKernel {
  /// Writes every element of every output. What it returns is thrown by `run` with the op's name. Called from one
  /// thread at a time per run, but from several at once for clones: no state of its own.
  std::optional<Diagnostic> (*run)(const KernelCall& call) = nullptr;
  /// Whether it takes this node, by dtype or rank (dimensions may be symbolic); null: always. A node it refuses is
  /// decomposed, or runs by its reference rule.
  bool (*accepts)(const Graph& g, NodeId id) = nullptr;
};

/// Makes the cpu backend run custom op `name` with `kernel` in graphs compiled from now on. Throws InvalidArgument when
/// the name has a kernel already or `kernel.run` is null, and for an op of rlx itself; NotFound before `register_op`
/// was called with the name.
void register_cpu_kernel(std::string_view name, const CpuKernel& kernel);

}  // namespace rlx
