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
  /// The elements as T. A dtype mismatch is an error that names the operand, the actual and the expected dtype.
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
  /// The elements as T. A dtype mismatch is an error that names the result, the actual and the expected dtype.
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
  std::span<const KernelOutput> outputs;  // dims and dtypes follow the infer rule; no output overlaps an input
};

/// How the CPU runs a custom op.
struct CpuKernel {
  /// Writes every element of every output. A returned Diagnostic is thrown by `run` with the op's name. One run calls
  /// it from one thread at a time, but other runs call it concurrently, so it must keep no state.
  std::optional<Diagnostic> (*run)(const KernelCall& call) = nullptr;
  /// Whether the kernel takes this node, by dtype or rank; dimensions may be symbolic. Null accepts every node. A
  /// refused node is decomposed or runs by its reference rule.
  bool (*accepts)(const Graph& g, NodeId id) = nullptr;
};

/// Makes the cpu backend run custom op `name` with `kernel` in graphs compiled from now on. Throws InvalidArgument when
/// `name` already has a kernel, when `kernel.run` is null, and when `name` is an op of rlx itself. Throws NotFound when
/// `register_op` was not called with `name`.
void register_cpu_kernel(std::string_view name, const CpuKernel& kernel);

}  // namespace rlx
