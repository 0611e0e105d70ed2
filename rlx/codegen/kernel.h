// Generated kernels as data: their text, bindings, uniform numbers and number of workgroups. Kernel entries make them
// of planned nodes (entry.h); backends compile and launch them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rlx/ir/module.h"

namespace rlx::codegen {

/// The device properties that kernel texts depend on.
struct Dialect {
  int group_threads = 256;           // most threads of a workgroup
  std::size_t shared_bytes = 16384;  // most workgroup memory
  int max_bindings = 7;              // most values that a kernel binds
  bool software = false;  // a software rasterizer: smaller tiles, which its compiler takes in a tenth of the time
};

/// An integer that follows from symbols. It is computed when the program is bound and passed to the kernel as a u32, so
/// it is not in the kernel's text.
struct Number {
  enum class Kind : std::uint8_t {
    Extent,  // `dim`
    Stride,  // of axis `axis` of `value`, in elements, as the plan lays it out
    Offset,  // of `value` from the start of the kernel's binding that holds it, in bytes
  };
  Kind kind = Kind::Extent;
  Dim dim{};
  Value value{};
  int axis = 0;
  friend bool operator==(const Number&, const Number&) = default;
};

/// The bytes that one binding of a kernel covers: of values that share memory, mostly a single one, or of scratch of
/// the node.
struct Binding {
  std::vector<Value> values;
  int scratch = -1;  // number of the node's scratch (NodeKernels::scratch), else -1
};

/// One launch. Binding 0 of the text is the uniform `P` with `numbers`, in vec4<u32>; 1, 2, .. are `bindings`.
struct Kernel {
  std::string name;  // for reports: "softmax_f32"
  std::string text;
  std::vector<Binding> bindings;
  std::vector<Number> numbers;
  Dim groups = 1;  // the launch spreads them over x and y; the text reads GROUP (kernel_builder.h)
};

/// Scratch bytes of a node's kernels: of the largest value, and of all values.
struct ScratchBytes {
  std::uint64_t largest = 0, all = 0;
  /// With the values of `more` added.
  ScratchBytes and_also(const ScratchBytes& more) const {
    return {largest < more.largest ? more.largest : largest, all + more.all};
  }
};

/// The launches of one node, in order, and the sizes in bytes of its scratch values.
struct NodeLaunches {
  NodeId node;
  std::vector<Kernel> kernels;
  std::vector<Dim> scratch;
  Dim steps{0};  // KernelEntry::steps
};

/// The value of a number in `program`, which is bound: its plan has the places and `LirModule::symbols` the symbols'
/// values. For offsets, `start` is the first byte of the binding.
std::uint32_t evaluate(const Number& n, const LirModule& program, std::size_t start);

/// The alignment of bindings in a buffer: the largest that any device requires.
inline constexpr std::size_t kBindingAlignment = 256;

/// Bytes [begin, end) of a binding, relative to the place that its values share.
struct ByteRange {
  std::size_t begin = 0, end = 0;
};
/// The smallest range of the binding's values that begins at a multiple of kBindingAlignment.
ByteRange range_of(const Binding& b, const LirBufferPlan& plan);

}  // namespace rlx::codegen
