// The CPU kernel library: plain functions over pointers, strides and sizes, in one table per instruction set.
//
// Conventions. Strides and leading dimensions count elements. A kernel never allocates and never starts threads. Work
// is split into chunks. Any thread may run any chunk in any order, and results do not depend on which thread ran which
// chunk. The caller provides scratch memory. Its size follows from the shape; each concurrently running thread has its
// own, 64-byte aligned. Outputs must not overlap inputs unless a function says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rlx/elementwise/list.h"

namespace rlx::cpu {

/// Instruction sets of the kernels. `Generic` is the portable build for other processors.
enum class Isa : std::uint8_t { Generic, Sse4, Avx2, Avx512, Neon };

/// Lower-case name: "generic", "sse4", "avx2", "avx512", "neon".
std::string_view isa_name(Isa isa);
/// The best instruction set that this build has and this machine runs, from CPU feature bits only. The first call in a
/// process prints a note to stderr when a build with RLX_ISA=native runs on a processor without the set it was built
/// for.
Isa best_isa();
/// True when this build has the kernels of `isa` (RLX_ISA of the build may exclude some).
bool isa_built(Isa isa);
/// True when this build has the kernels of `isa` and this machine can run them.
bool isa_supported(Isa isa);
/// Parses a name of `isa_name`. Throws Error{InvalidArgument} that suggests the closest name, and Error{Unsupported}
/// when this machine cannot run the set or this build lacks it. "best" and "" give `best_isa()`.
Isa parse_isa(std::string_view name);

// -- GEMM --

/// Activation applied by a GEMM epilogue. Gelu is the erf form, GeluTanh the tanh form.
enum class Act : std::uint8_t { None, Relu, Gelu, GeluTanh, Silu, Tanh, Sigmoid };

/// The epilogue of a GEMM, applied before C is stored: t = alpha * acc + bias[n] (+ residual[m, n]); y = act(t); y *=
/// mul[m, n]. With `residual_after_act` the residual is added after the activation and the multiply instead. Null
/// pointers skip their step. `residual` and `mul` may be C itself with the same leading dimension.
struct GemmEpilogue {
  float alpha = 1.0F;
  Act act = Act::None;
  bool residual_after_act = false;
  const float* bias = nullptr;      // [N]
  const float* residual = nullptr;  // [M, N]
  std::int64_t ld_residual = 0;
  const float* mul = nullptr;  // [M, N]
  std::int64_t ld_mul = 0;
  /// True when the epilogue does nothing.
  bool plain() const { return bias == nullptr && adds_bias_alone(); }
  /// True when it does nothing but add the bias, if there is one.
  bool adds_bias_alone() const { return alpha == 1.0F && residual == nullptr && act == Act::None && mul == nullptr; }
};

/// Element type of packed B. Kernels widen the elements on load. I8 has quantized values with one scale per column; the
/// scales follow all panels. BF16Pairs is the bf16 pair (VNNI) layout of matmul/bf16_kernels.h.
enum class PackedBType : std::uint8_t { F32, BF16, F16, I8, BF16Pairs };
constexpr std::int64_t panel_element_bytes(PackedBType t) {
  return t == PackedBType::F32 ? 4 : t == PackedBType::I8 ? 1 : 2;
}

inline constexpr int kGemmMaxAxes = 16;

/// An axis of a strided matmul: its extent and its strides in A, B and C. A stride of 0 broadcasts the operand.
struct GemmAxis {
  std::int64_t extent = 1, a = 0, b = 0, c = 0;
};

struct MatmulKernel;        // matmul/matmul_kernels.h
struct InterleavedKernels;  // quant/interleaved_kernels.h
struct Bf16Kernels;         // matmul/bf16_kernels.h

// -- Attention --

/// Which keys a query sees, besides the optional key mask and bias. Queries are aligned to the end of the keys.
enum class AttentionMask : std::uint8_t {
  None,
  Causal,         // key k visible to query q iff k <= q + (Sk - Sq)
  SlidingWindow,  // with q' = q + (Sk - Sq): visible iff q' - window <= k <= q'
};

/// How the elements of a mask are read: a float is visible iff >= 0.5, a byte iff non-zero.
enum class MaskType : std::uint8_t { None, F32, U8 };

/// The queries of one entry of a paged attention: `count` rows of q from row `first` on. The first of them has position
/// kv_len - behind.
struct QueryRange {
  std::int64_t first = 0, count = 0, behind = 0;
};

/// Element type of the K and V pools of a paged attention: floats, or blocks of a block scheme.
enum class PoolType : std::uint8_t { F32, F16, BF16, Q8_0, Q4_0 };
/// The unit in bytes of the strides of such a pool.
constexpr std::int64_t pool_unit(PoolType t) { return t == PoolType::F32 ? 4 : t <= PoolType::BF16 ? 2 : 1; }
/// Bytes of `dim` elements of a head in such a pool. For block types `dim` is a multiple of 32.
constexpr std::int64_t pool_row_bytes(PoolType t, std::int64_t dim) {
  return t == PoolType::Q8_0 ? dim / 32 * 34 : t == PoolType::Q4_0 ? dim / 32 * 18 : dim * pool_unit(t);
}

/// softmax(mask(softcap(scale * q k^T) + bias)) v for q [B, Sq, H, D], k [B, Sk, Hkv, D], v [B, Sk, Hkv, Dv], out [B,
/// Sq, H, Dv]. D and Dv are contiguous; other strides are free. Hkv divides H. A row that sees no key gives zeros.
/// Lengths are clamped to the extents. With lengths, keys from kv_lens[b] on are not read, rows from q_lens[b] on give
/// zeros, and the lengths replace Sk and Sq in the positions of the mask. A sink is one more score of each row, without
/// a value.
struct AttentionF32 {
  std::int64_t batch = 0, q_len = 0, k_len = 0, heads = 0, kv_heads = 0, head_dim = 0, v_head_dim = 0;
  const float* q = nullptr;
  std::int64_t q_batch_stride = 0, q_seq_stride = 0, q_head_stride = 0;
  const float* k = nullptr;
  std::int64_t k_batch_stride = 0, k_seq_stride = 0, k_head_stride = 0;
  const float* v = nullptr;
  std::int64_t v_batch_stride = 0, v_seq_stride = 0, v_head_stride = 0;
  float* out = nullptr;
  std::int64_t out_batch_stride = 0, out_seq_stride = 0, out_head_stride = 0;
  float scale = 1.0F;
  float softcap = 0.0F;  // 0 = none; else s -> softcap * tanh(s / softcap)
  AttentionMask mask_kind = AttentionMask::None;
  std::int64_t window = 0;
  MaskType custom_type = MaskType::None;  // element type of `custom`; strides of 0 broadcast
  const void* custom = nullptr;           // [B, H, Sq, Sk] by strides
  std::int64_t custom_batch_stride = 0, custom_head_stride = 0, custom_q_stride = 0, custom_k_stride = 0;
  const float* bias = nullptr;  // added to the scaled scores; strides of 0 broadcast
  std::int64_t bias_batch_stride = 0, bias_head_stride = 0, bias_q_stride = 0, bias_k_stride = 0;
  const std::int32_t* kv_lens = nullptr;  // [B], optional
  const std::int32_t* q_lens = nullptr;   // [B], optional
  const float* sinks = nullptr;           // [B, H], optional
  std::int64_t sinks_batch_stride = 0;
  float* lse = nullptr;  // [B, H, Sq] by strides, optional: log(sum(exp(scores))), -inf where nothing is seen
  std::int64_t lse_batch_stride = 0, lse_head_stride = 0, lse_q_stride = 1;
  // A paged KV cache: key j of entry b is row j % page of page blocks[b * blocks_stride + j / page], clamped to the
  // pool. k_batch_stride and v_batch_stride are 0. `ranges` gives the queries of each entry; the batch strides of
  // queries are 0 too.
  const std::int32_t* blocks = nullptr;
  std::int64_t blocks_stride = 0, page = 0, pages = 0, k_page_stride = 0, v_page_stride = 0;
  const QueryRange* ranges = nullptr;  // [B], with blocks
  PoolType pool = PoolType::F32;       // of k and v with blocks; their strides count pool_unit(pool) bytes
  /// With a pool of Q8_0: q may be rounded to int8 in blocks of 32, and scores are int8 dot products.
  const InterleavedKernels* rounds_q = nullptr;
};

/// How an attention is split into chunks. An item is (batch, heads of one kv head, query block); a chunk is a range of
/// items.
struct AttentionPlan {
  std::int64_t chunks = 0;
  std::int64_t items = 0, items_per_chunk = 1;
  std::int64_t query_blocks = 0;
  std::int64_t queries_per_block = 0;      // of one head
  std::int64_t packed_heads = 1;           // of an item
  std::int64_t slots = 1, slot_bytes = 0;  // scratch of items that run together
  std::size_t scratch_bytes = 0;           // per concurrently running thread
};

// -- Row kernels --

/// Layer or RMS normalisation of rows [rows, cols]: s = x (+ bias[c]) (+ residual[r, c]); y = norm(s) * gamma + beta.
/// Null `bias`, `residual`, `gamma`, `beta` and `sum_out` skip their part. `sum_out` receives s and may alias x or
/// residual. y may alias x.
template <class T>
struct Norm {
  std::int64_t cols = 0;
  const T* x = nullptr;
  std::int64_t ld_x = 0;
  const T* bias = nullptr;
  const T* residual = nullptr;
  std::int64_t ld_residual = 0;
  const T* gamma = nullptr;
  const T* beta = nullptr;
  T eps = static_cast<T>(1e-5);
  T* sum_out = nullptr;
  std::int64_t ld_sum = 0;
  T* y = nullptr;
  std::int64_t ld_y = 0;
  T* mean_out = nullptr;  // [rows], optional (layer norm only)
  T* rstd_out = nullptr;  // [rows], optional
};
using NormF32 = Norm<float>;
using NormF64 = Norm<double>;

/// Rotary embedding of x [B, S, H, D] by strides. Pairs (i, i + n_rot/2), or (2i, 2i + 1) when interleaved, are rotated
/// by the angle whose cosine and sine are at [position, i]. Elements from n_rot on are copied. `positions` (I32 [B, S]
/// by strides) selects the table row; without it the row is position_offset + s. y may alias x.
struct RopeF32 {
  std::int64_t batch = 0, seq = 0, heads = 0, head_dim = 0, n_rot = 0;
  bool interleaved = false;
  bool inverse = false;  // rotate back: the sine is negated
  const float* x = nullptr;
  std::int64_t x_batch_stride = 0, x_seq_stride = 0, x_head_stride = 0;
  float* y = nullptr;
  std::int64_t y_batch_stride = 0, y_seq_stride = 0, y_head_stride = 0;
  const float* cos = nullptr;  // [positions, table_stride]
  const float* sin = nullptr;
  std::int64_t table_stride = 0;
  std::int64_t table_rows = 0;
  const std::int32_t* positions = nullptr;
  std::int64_t pos_batch_stride = 0, pos_seq_stride = 0;
  std::int64_t position_offset = 0;
};

// -- Elementwise --

/// Operations of the elementwise tape. Registers hold a block of 256 to 1024 values of 4 bytes: F32, or I32 for names
/// that end in I. A truth value is F32 0 or 1; any value that is not 0 is true. Max and Min return NaN when either
/// operand is NaN.
enum class TapeOp : std::uint8_t {
// one operand, F32; the first are the formulas of rlx/elementwise
#define RLX_ENUMERATOR(Kind, ...) Kind,
  RLX_FOR_EACH_FORMULA(RLX_ENUMERATOR)
#undef RLX_ENUMERATOR
      Copy,
  Neg,
  Abs,
  Sqrt,
  Rsqrt,
  Recip,
  Square,
  Sin,
  Cos,
  Tan,
  Atan,
  Softsign,
  Relu,
  Elu /* imm */,
  HardSwish,
  HardSigmoid,
  Asin,
  Acos,
  Cbrt,
  Trunc,
  Lgamma,
  Round /* ties to even */,
  Floor,
  Ceil,
  Sign,
  Not,
  // two operands, F32
  Add,
  Sub,
  Mul,
  Div,
  Max,
  Min,
  Pow,
  Mod /* floored: sign of the divisor */,
  Rem /* truncated: sign of the dividend */,
  Atan2,
  Hypot,
  LogAddExp,
  And,
  Or,
  Xor,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  // three operands
  Where /* a ? b : c, any 4-byte values */,
  // I32
  NegI,
  AbsI,
  SignI,
  NotI /* bitwise */,
  PopcountI,
  ClzI,
  AddI,
  SubI,
  MulI,
  DivI /* truncated; x / 0 = 0 */,
  ModI /* floored */,
  RemI,
  MaxI,
  MinI,
  AndI,
  OrI,
  XorI,
  ShlI,
  ShrI /* arithmetic */,
  EqI,
  NeI,
  LtI,
  LeI,
  GtI,
  GeI,
  // conversions; F32 to I32 truncates, saturates, NaN gives 0
  F32ToI32,
  I32ToF32,
  BoolToI32,
  // F32 rounded to the nearest bf16 or f16 value, as a store and a load would round it
  RoundBF16,
  RoundF16,
};

/// Number of entries of TapeOp.
inline constexpr int kNumTapeOps = static_cast<int>(TapeOp::RoundF16) + 1;

/// Stable name of a tape operation, such as "add" or "f32_to_i32".
std::string_view tape_op_name(TapeOp op);
/// How many operands `op` reads (1..3).
int tape_op_arity(TapeOp op);

/// Storage type of a tape input or output. Registers hold the value as F32, or as I32 for I32 storage.
enum class TapeType : std::uint8_t { F32, I32, Bool, BF16, F16, U8, I8 };

inline constexpr int kTapeMaxInputs = 16;
inline constexpr int kTapeMaxOutputs = 4;
inline constexpr int kTapeMaxRank = 8;
inline constexpr int kTapeMaxRegisters = 64;
inline constexpr std::uint8_t kTapeImm = 255;  // operand is the instruction's imm

/// A second step of a tape instruction, on its result x and another register c. The first result is rounded before it.
/// It saves a register write and read. `From` and `Into` have c on the left; RoundBF16 and RoundF16 read no c.
enum class TapeThen : std::uint8_t { None, Add, Sub, SubFrom, Mul, Div, DivInto, RoundBF16, RoundF16 };

/// One tape instruction: reg[dst] = op(reg[a], reg[b], reg[c]). At most one operand may be kTapeImm; it then is `imm`
/// (for I32 ops: imm_i). Registers 0..num_inputs-1 are the inputs and are read-only. Add, Sub, Mul and Div may have a
/// second step: then(op(reg[a], reg[b]), reg[c]), where c as kTapeImm is `imm_then`.
struct TapeInstr {
  TapeOp op = TapeOp::Copy;
  std::uint8_t dst = 0, a = 0, b = 0, c = 0;
  float imm = 0.0F;
  std::int32_t imm_i = 0;
  TapeThen then = TapeThen::None;
  float imm_then = 0.0F;
};

/// One tape input: element strides per output axis (0 = broadcast).
struct TapeInput {
  TapeType type = TapeType::F32;
  std::int64_t strides[kTapeMaxRank] = {};
};

/// One tape output: the stored register, row-major over `dims`.
struct TapeOutput {
  TapeType type = TapeType::F32;
  std::uint8_t reg = 0;
};

/// An elementwise program over an index space `dims` (row-major). Call `tape_prepare` once after filling it.
struct Tape {
  int rank = 0;
  std::int64_t dims[kTapeMaxRank] = {};
  int num_inputs = 0;
  TapeInput inputs[kTapeMaxInputs];
  int num_outputs = 0;
  TapeOutput outputs[kTapeMaxOutputs];
  const TapeInstr* instrs = nullptr;
  int num_instrs = 0;
  std::int64_t num_elements = 0;  // set by tape_prepare
  bool stream_outputs = false;    // set by tape_prepare: outputs exceed the cache share, use non-temporal stores
};

/// Checks the program (Error{InvalidArgument} names the instruction) and merges axes. The index space stays the same.
void tape_prepare(Tape& tape);

// -- Reductions and copies --

enum class ReduceKind : std::uint8_t { Sum, Mean, Max, Min, Prod };

/// y[outer, inner] = reduce(x[outer, r, inner]) with contiguous x and y. The order of sums depends on the shape alone.
/// Max and Min return NaN when an element is NaN. An empty r gives 0 (Sum), 1 (Prod), NaN (Mean), -Inf (Max), +Inf
/// (Min).
struct ReduceF32 {
  ReduceKind kind = ReduceKind::Sum;
  std::int64_t outer = 0, r = 0, inner = 0;
  const float* x = nullptr;
  float* y = nullptr;
};

/// How a reduction is split into chunks. When `splits` > 1 the first step writes partial results to `partials`
/// (`partial_floats` floats shared by all threads), and `reduce_finish_f32` must run after all chunks.
struct ReducePlan {
  std::int64_t chunks = 0;
  std::int64_t splits = 1;
  std::int64_t outer_per_chunk = 0, inner_per_chunk = 0, inner_chunks = 1;
  std::int64_t partial_floats = 0;
};

inline constexpr int kCopyMaxRank = 8;

/// Strided copy of an index space `dims` from x to y: transpose, slice, concat, interior pad, broadcast. Strides count
/// elements; 0 in x broadcasts. Elements have 1, 2, 4, 8 or 16 bytes. Call `copy_prepare` once.
struct StridedCopy {
  int rank = 0;
  std::int64_t dims[kCopyMaxRank] = {};
  std::int64_t x_strides[kCopyMaxRank] = {};
  std::int64_t y_strides[kCopyMaxRank] = {};
  int element_bytes = 4;
  std::int64_t chunks = 0;  // set by copy_prepare
  std::int64_t rows = 0;    // set by copy_prepare: product of all dims but those of the inner tile
  std::int64_t rows_per_chunk = 0;
  bool stream = false;       // set by copy_prepare: runs are written past the caches
  bool fetch_lines = false;  // set by copy_prepare: a transpose fetches the lines that it will write
};

/// Checks, drops and merges axes, and chooses chunks. Error{InvalidArgument} on a bad element size or rank.
void copy_prepare(StridedCopy& copy);

// -- The table --

/// As a number of threads: asks plans for the finest chunks possible, whatever a chunk costs. For tests.
inline constexpr int kFinestTiling = 1 << 20;

/// Rows per chunk such that a chunk takes some microseconds. `cost_ns` is the estimated time per element.
std::int64_t rows_per_chunk(std::int64_t rows, std::int64_t cols, double cost_ns, int threads);

/// All kernels of one instruction set.
struct KernelTable {
  Isa isa;
  int lanes_f32;

  // Packed B. The packed layout depends on the instruction set and N alone, so one packed B serves every M.
  /// Panel width for N columns. The last panel has as many full vectors (`lanes_f32`) as its columns need.
  std::int64_t (*packed_nr_f32)(std::int64_t n);
  /// Floats of packed B[K, N].
  std::int64_t (*packed_size_f32)(std::int64_t k, std::int64_t n);
  /// Packs src[K, n1-n0] into columns [n0, n1) of packed B[K, N]. Element (k, j) of the source is src[k * k_stride + (j
  /// - n0) * n_stride]. The call that ends at N zeroes the padding columns. Calls on disjoint ranges may run
  /// concurrently.
  void (*pack_b_f32)(const float* src, std::int64_t k_stride, std::int64_t n_stride, std::int64_t k, std::int64_t n,
                     std::int64_t n0, std::int64_t n1, float* packed);
  /// The same for 16-bit elements, which are moved unchanged.
  void (*pack_b_16)(const std::uint16_t* src, std::int64_t k_stride, std::int64_t n_stride, std::int64_t k,
                    std::int64_t n, std::int64_t n0, std::int64_t n1, std::uint16_t* packed);

  /// The records of matmuls, by MatmulSums; with packed B, by PackedBType.
  const MatmulKernel *matmul, *packed_b;
  /// Matmuls with block-quantized weights.
  const InterleavedKernels* interleaved;
  /// bf16 matmuls; null where the machine has no bf16 instructions.
  const Bf16Kernels* bf16;

  AttentionPlan (*attention_plan_f32)(const AttentionF32& attention, int threads);
  void (*attention_f32)(const AttentionF32& attention, const AttentionPlan& plan, std::int64_t chunk, void* scratch);

  // Row kernels work on rows [row_begin, row_end).
  void (*layer_norm_f32)(const NormF32& norm, std::int64_t row_begin, std::int64_t row_end);
  void (*rms_norm_f32)(const NormF32& norm, std::int64_t row_begin, std::int64_t row_end);
  /// y[r, :] = softmax(x[r, :]). A row of -Inf gives zeros. y may alias x.
  void (*softmax_f32)(const float* x, std::int64_t ld_x, float* y, std::int64_t ld_y, std::int64_t cols,
                      std::int64_t row_begin, std::int64_t row_end);
  void (*log_softmax_f32)(const float* x, std::int64_t ld_x, float* y, std::int64_t ld_y, std::int64_t cols,
                          std::int64_t row_begin, std::int64_t row_end);
  /// Row index: b * seq + s.
  void (*rope_f32)(const RopeF32& rope, std::int64_t row_begin, std::int64_t row_end);

  /// Runs elements [begin, end) of a prepared tape; begin should be a multiple of 256. An output may alias an input
  /// that is contiguous over the index space and has the same element size.
  void (*tape_run)(const Tape& tape, const void* const* inputs, void* const* outputs, std::int64_t begin,
                   std::int64_t end);

  ReducePlan (*reduce_plan_f32)(const ReduceF32& reduce);
  void (*reduce_f32)(const ReduceF32& reduce, const ReducePlan& plan, std::int64_t chunk, float* partials);
  void (*reduce_finish_f32)(const ReduceF32& reduce, const ReducePlan& plan, const float* partials);
  /// Encodes blocks of 32 values as q8_0 blocks of 34 bytes.
  void (*encode_q8_0)(const float* x, std::int64_t blocks, std::uint8_t* out);
  void (*strided_copy)(const StridedCopy& copy, const void* x, void* y, std::int64_t chunk);

  /// y[i] = threefry_bits(k0, k1, first + i, 32) for i in [0, n): the values of RngBits for U32.
  void (*threefry_u32)(std::uint32_t k0, std::uint32_t k1, std::uint64_t first, std::int64_t n, std::uint32_t* y);

  /// Runs `iterations` of the fastest FMA loop on registers and returns the number of floating-point operations, to
  /// measure peak FLOP/s.
  std::int64_t (*fma_peak_f32)(std::int64_t iterations);
};

/// The kernels of `isa`; throws Error{Unsupported} when this build or machine has none.
const KernelTable& kernels_for(Isa isa);

}  // namespace rlx::cpu
