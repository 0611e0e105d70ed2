// Writing the WGSL of one kernel: loads and stores of values in their dtypes, numbers that are constants where they are
// known, and the code around the body.
//
// Values are computed in one of three types: f32 (F32, F16, BF16), i32 (I32, I16, I8) and u32 (U32, U16, U8, and Bool
// as 0 and 1). A store rounds F16 and BF16 results to nearest even, once, and wraps narrow integers. All indices are
// u32, in elements. In a body `GROUP` is the index of the workgroup among Kernel::groups, `LOCAL` the index of the
// thread in its workgroup, and `THREAD` is GROUP * threads + LOCAL.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/codegen/kernel.h"
#include "rlx/ir/graph.h"

namespace rlx::codegen {

/// A number in a kernel text: known, or passed by the bound program.
class Size {
 public:
  Size(Dim d) { number_.dim = std::move(d); }  // NOLINT(implicit)
  Size(std::int64_t v) : Size(Dim(v)) {}       // NOLINT(implicit)
  explicit Size(Number n) : number_(std::move(n)) {}
  bool known() const { return number_.kind == Number::Kind::Extent && number_.dim.is_static(); }
  bool is(std::int64_t v) const { return number_.kind == Number::Kind::Extent && number_.dim.is_static(v); }
  /// The extent; Unsupported when it depends on symbols. Not for strides and offsets.
  std::int64_t value() const { return number_.dim.value(); }
  const Number& number() const { return number_; }

 private:
  Number number_;
};

/// A value of the graph, or scratch, as kernels see it. Symbolic extents stay expressions.
struct Ref {
  Value value{};
  int scratch = -1;  // when >= 0, the scratch number; `value` then means nothing
  DType dtype = DType::F32;
  Dims dims;
  std::vector<Size> strides;  // in elements
  bool dense = true;          // row-major without gaps

  int rank() const { return static_cast<int>(dims.size()); }
  const Dim& dim(int axis) const { return dims[static_cast<std::size_t>(axis < 0 ? axis + rank() : axis)]; }
  const Size& stride(int axis) const { return strides[static_cast<std::size_t>(axis < 0 ? axis + rank() : axis)]; }
  /// The product of extents [first, last).
  Dim extent(int first, int last) const;
  Dim elements() const { return extent(0, rank()); }
};

/// Row-major strides.
std::vector<Size> dense_strides(const Dims& dims);
/// `v` as a dense value. Used for a value without a place of its own, such as the result of a Dequantize that kernels
/// decode.
Ref dense_ref(const Graph& g, Value v);
/// The elements of `r`, which is dense, under other dims.
Ref reshaped(Ref r, Dims dims);
/// `r` broadcast to `dims` (right-aligned): strides of 0 where it repeats.
Ref broadcast_to(Ref r, const Dims& dims);

/// The WGSL type that a dtype is computed in: "f32", "i32" or "u32".
std::string_view compute_type(DType t);
/// True for the dtypes that kernels compute with: F32, F16, BF16, integers of up to 32 bits, Bool.
bool computes(DType t);

/// The node that kernels are written for, and the kernels written so far.
class NodeKernels {
 public:
  NodeKernels(const LirModule& lir, NodeId id, const Dialect& dialect);
  const LirModule& lir() const { return lir_; }
  const Graph& graph() const { return lir_.graph; }
  const Dialect& dialect() const { return dialect_; }
  NodeId id() const { return launches_.node; }
  const Node& node() const { return lir_.graph.node(launches_.node); }
  template <class Op>
  const Op& op() const {
    return node().op.as<Op>();
  }
  int num_inputs() const { return static_cast<int>(node().inputs.size()); }
  Ref value(Value v) const;
  Ref in(int i) const { return value(node().inputs[static_cast<std::size_t>(i)]); }
  Ref out(int r = 0) const { return value(Value(id(), static_cast<std::uint32_t>(r))); }
  /// False for a result that has no place in the plan, as nobody reads it (kernel entries with skips_unread).
  bool is_read(int r) const;
  /// True when `r` is aligned to `bytes` (up to kBindingAlignment) in its memory, for every value of the symbols.
  bool is_aligned(const Ref& r, std::size_t bytes) const;
  /// True when the plan puts result r in the memory of operand i.
  bool in_place(int i, int r = 0) const;
  /// The largest value of `d` that the symbols allow.
  std::int64_t upper(const Dim& d) const;
  /// Dense memory through which kernels of this node pass values.
  Ref scratch(DType dtype, Dims dims);

  void add(Kernel k) { launches_.kernels.push_back(std::move(k)); }
  NodeLaunches take() { return std::move(launches_); }

 private:
  const LirModule& lir_;
  const Dialect& dialect_;
  SymbolRanges ranges_;
  NodeLaunches launches_;
};

/// Joins its parts like concat_text. In braces they are evaluated from left to right, unlike function arguments. Parts
/// that ask a builder for bindings and numbers then give one text with every compiler.
struct InOrder : std::string {
  template <class... Parts>
  explicit InOrder(const Parts&... parts) : std::string(concat_text(parts...)) {}
};

/// One kernel being written. Each value is bound once; values that share bytes share a binding.
class KernelBuilder {
 public:
  /// `threads` per workgroup, at most Dialect::group_threads.
  KernelBuilder(NodeKernels& node, std::string name, int threads = 256);
  const NodeKernels& node() const { return node_; }

  /// A number as a u32 expression: "384u", "P[0].x".
  std::string size(const Size& s);
  /// The same, but never a constant in the text: for kernels that are launched many times with different numbers.
  std::string given(const Size& s) { return number(s.number()); }

  /// The element at `index` in its compute type. `index` is a u32 expression in elements, as the strides of `r` count.
  std::string load(const Ref& r, std::string_view index);
  /// Elements 4 * index to 4 * index + 3 of a 4-byte dtype, aligned to 16 bytes.
  std::string load4(const Ref& r, std::string_view index);
  /// Word `index` of the value's bytes as u32, for any dtype: for kernels that move bits or unpack words themselves.
  std::string load_word(const Ref& r, std::string_view index);
  /// A statement that stores a value of the compute type, for 4-byte dtypes only. For narrower dtypes a thread has to
  /// own whole words (to_bits, store_word), as map_elements does.
  std::string store(const Ref& r, std::string_view index, std::string_view value);
  std::string store4(const Ref& r, std::string_view index, std::string_view value);
  std::string store_word(const Ref& r, std::string_view index, std::string_view word);
  /// A value of the compute type as the low bits of a u32, rounded or wrapped; the bits above are 0.
  std::string to_bits(DType t, std::string_view value);
  /// The inverse of to_bits; higher bits of `word` are ignored.
  std::string from_bits(DType t, std::string_view word);

  /// The index of an element of `r` from coordinates, which are u32 expressions. Coordinates of axes with stride 0 are
  /// not used.
  std::string at(const Ref& r, const std::vector<std::string>& coordinates);
  /// Statements `let NAME = ..;` that split row-major `index` into coordinates of `dims`; coordinates of extent 1 are
  /// 0.
  std::string split(std::string_view index, const Dims& dims, const std::vector<std::string>& names);

  /// Adds text outside the main function: functions, constants, workgroup variables. Each text is added once.
  void global(std::string_view text);
  /// Adds a library function (helpers.h) and the functions that it calls.
  void use(std::string_view helper);
  /// Adds to the body.
  KernelBuilder& operator<<(std::string_view text) {
    body_ += text;
    return *this;
  }
  /// Returns the body so far and clears it: for bodies of functions.
  std::string take_body() { return std::exchange(body_, {}); }

  /// Adds the kernel to the node. `groups` workgroups run the body, or enough workgroups for `threads` threads; the
  /// body checks which threads have work.
  void finish(const Dim& groups);
  void finish_threads(const Dim& threads);

 private:
  struct Slot {
    Ref ref;
    bool wide = false;  // loaded or stored as vec4
    bool stored = false;
  };
  struct Group;  // slots that share bytes: one binding
  std::size_t slot_of(const Ref& r);
  std::string word_at(const Ref& r, std::string_view index);
  std::vector<Group> grouped() const;
  std::string resolved(const std::string& text, const std::vector<Group>& groups);
  std::string number(Number n);

  NodeKernels& node_;
  Kernel kernel_;
  int threads_;
  std::vector<Slot> slots_;
  std::vector<std::string> globals_;
  std::string body_;
};

/// The end of map_elements: the index code and stores around the statements of one element.
void finish_map(KernelBuilder& k, const std::vector<Ref>& results, const std::string& statements,
                const std::vector<std::string>& values);

/// Adds a kernel that computes every element of `results`, which are dense and have the same dims. For the element with
/// row-major number `i` (a name), body(k, i) adds statements to k and returns an expression of the compute type for
/// each result. A thread computes a whole word of narrow results.
template <class Body>
void map_elements(NodeKernels& node, std::string name, const std::vector<Ref>& results, Body body) {
  KernelBuilder k(node, std::move(name));
  const std::vector<std::string> values = body(k, std::string("i"));
  finish_map(k, results, k.take_body(), values);
}

}  // namespace rlx::codegen
