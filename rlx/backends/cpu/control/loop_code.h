// Straight-line code of small loops: the instructions of one iteration, with final pointers, and what runs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rlx/backends/cpu/elementwise/tape_few.h"
#include "rlx/backends/cpu/elementwise/typed_kernels.h"
#include "rlx/backends/cpu/generic/generic_functions.h"

namespace rlx::cpu {

/// Element types that have arithmetic of their own: X(suffix, type).
#define RLX_LOOP_NUMBERS(X) X(F32, float) X(F64, double) X(I32, std::int32_t) X(I64, std::int64_t)

/// Instructions on one element (in LoopOp::Many: on some), named after the element type; integers wrap. Max and Min
/// return NaN when either operand is NaN. Results of comparisons are bytes, 0 or 1; any byte that is not 0 is true.
enum class LoopOp : std::uint8_t {
#define RLX_LOOP_OPS(T, E)                                                                           \
  Add##T, Sub##T, Mul##T, Max##T, Min##T, Neg##T, Eq##T, Ne##T, Lt##T, Le##T, To##T /* from Bool */, \
      True##T /* not 0 */,
  RLX_LOOP_NUMBERS(RLX_LOOP_OPS)
#undef RLX_LOOP_OPS
      DivF32,
  DivF64,
  SqrtF32,
  SqrtF64,
  AbsF32,
  AbsF64,
  RecipF32,
  RecipF64,
  AndI32,
  OrI32,
  XorI32,
  AndI64,
  OrI64,
  XorI64,
  AndB,
  OrB,
  XorB,
  EqB,
  NotB,
  F32ToF64,
  F64ToF32,
  I32ToF32,
  I32ToF64,
  I64ToF32,
  I64ToF64,
  I32ToI64,
  I64ToI32,
  Where1,
  Where4,
  Where8,  // a ? b : c, by bytes of an element
  Copy4,
  Copy8,
  CopyBytes,  // d = a; n bytes
  LoadRow4,
  LoadRow8,
  LoadRowBytes,  // d = row t of a
  StoreRow4,
  StoreRow8,
  StoreRowBytes,  // row t of d = a
  LeaveUnless,    // ends the loop unless a is true
  Tape,
  Typed,
  Wide,
  Take,
  Put,
  Kernel,  // `call` has the rest
  Many     // `inner` on `n` elements
};

/// An instruction. Operands and result are where the plan has them, or in memory of the loop.
struct LoopInstr {
  LoopOp op = LoopOp::CopyBytes;
  LoopOp inner = LoopOp::CopyBytes;
  std::uint8_t once = 0;  // of Many: bit i is set when operand i is one element
  std::size_t n = 0;      // bytes; of Many: elements
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  const void* call = nullptr;
};

/// An instruction of the elementwise tape on elements of F32 or I32.
struct LoopTapeCall {
  TapeFew run = nullptr;
  TapeInstr instr;
};
/// A function in the dtype itself.
struct LoopTypedCall {
  TypedFn run = nullptr;
  int bytes = 0;  // of an operand's element
};
/// An F64 function.
struct LoopWideCall {
  BlockFn<double> run = nullptr;
  BlockArgs args;
};
/// Block of `n` bytes at run-time indices along the leading axes of a tensor.
struct LoopIndexing {
  static constexpr int kMostAxes = 4;
  struct Axis {
    const void* index = nullptr;
    bool wide = false;                    // I64
    std::int64_t extent = 0, stride = 0;  // stride in bytes
  };
  Axis axes[kMostAxes];
  int count = 0;
  bool clamp = false;  // else a block out of range is `fill` or not written
  const std::byte* fill = nullptr;
  std::byte* table = nullptr;

  /// Null for an index out of range.
  std::byte* block() const;
};
/// A task of another kernel.
struct LoopKernelCall {
  void (*run)(void* ctx, std::int64_t chunk) = nullptr;
  void* ctx = nullptr;
  std::int64_t chunks = 0;
};

/// The most elements of LoopOp::Many.
inline constexpr std::int64_t kMostMany = kMostFew;

/// Runs the code for `iterations` rows from t on, `step` apart. Returns the number of complete iterations: fewer when a
/// LeaveUnless ended the loop.
std::int64_t run_loop_code(std::span<const LoopInstr> code, std::int64_t t, std::int64_t step, std::int64_t iterations);

}  // namespace rlx::cpu
