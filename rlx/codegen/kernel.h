// Generated kernels as data: their text, what they bind, the numbers they are given, and how many groups run. Rows make
// them of planned nodes (row.h); backends compile and launch them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rlx/ir/module.h"

namespace rlx::codegen {

/// What texts are written for.
struct Dialect {
  int group_threads = 256;           // threads of a group, at most
  std::size_t shared_bytes = 16384;  // memory that a group shares, at most
  int max_bindings = 7;              // values that a kernel is given
  bool software = false;             // a rasteriser: smaller tiles, which its compiler takes in a tenth of the time
};

/// A whole number that is not in a kernel's text, because it follows from symbols: it is computed when the program is
/// bound, and given to the kernel as a u32.
struct Number {
  enum class Kind : std::uint8_t {
    Extent,  // `dim`
    Stride,  // of axis `axis` of `value`, in elements, where the plan puts it
    Offset,  // of `value` from the start of the kernel's binding that holds it, in bytes
  };
  Kind kind = Kind::Extent;
  Dim dim{};
  Value value{};
  int axis = 0;
  friend bool operator==(const Number&, const Number&) = default;
};

/// What one binding of a kernel covers: the bytes of values that share memory, mostly one; or scratch of its node.
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
  Dim groups = 1;  // laid out by the launch over x and y: the text asks for its group by GROUP (kernel_builder.h)
};

/// Bytes that kernels of a node pass between them: of the largest value, and of all.
struct ScratchBytes {
  std::uint64_t largest = 0, all = 0;
  /// These values besides.
  ScratchBytes and_also(const ScratchBytes& more) const {
    return {largest < more.largest ? more.largest : largest, all + more.all};
  }
};

/// The launches of one node, in order, and the sizes in bytes of the scratch that they pass values through.
struct NodeLaunches {
  NodeId node;
  std::vector<Kernel> kernels;
  std::vector<Dim> scratch;
  Dim steps{0};  // KernelEntry::steps
};

/// The value of a number in `program`, which is bound: its plan has the places, `LirModule::symbols` the values.
/// `start` is the first byte of the binding, for offsets.
std::uint32_t evaluate(const Number& n, const LirModule& program, std::size_t start);

/// Where bindings may begin in a buffer: the largest multiple that any device asks for.
inline constexpr std::size_t kBindingAlignment = 256;

/// Bytes [begin, end) of a binding within the place that its values share.
struct ByteRange {
  std::size_t begin = 0, end = 0;
};
/// The least range over the binding's values that begins at a multiple of kBindingAlignment.
ByteRange range_of(const Binding& b, const LirBufferPlan& plan);

}  // namespace rlx::codegen
