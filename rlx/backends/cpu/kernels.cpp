// Kernel tables and instruction sets, and those parts of kernels that do not depend on an instruction set.
#include "rlx/backends/cpu/kernels.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "rlx/backends/cpu/kernel_families.h"
#include "rlx/backends/cpu/machine_isa.h"
#include "rlx/backends/cpu/matmul/bf16_kernels.h"
#include "rlx/backends/cpu/quant/interleaved_kernels.h"
#include "rlx/error.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace rlx::cpu {

namespace {

constexpr std::int64_t kStreamBytes = 16LL << 20;  // larger outputs do not stay in the cache
constexpr std::int64_t kFetchBytes = 1 << 20;      // larger outputs do not stay in L2

constexpr std::array<std::string_view, 5> kIsaNames = {"generic", "sse4", "avx2", "avx512", "neon"};

struct TapeOpInfo {
  std::string_view name;
  int arity;
};

constexpr TapeOpInfo kTapeOps[] = {
#define RLX_NAME(Kind, name, ...) {#name, 1},
    RLX_FOR_EACH_FORMULA(RLX_NAME)
#undef RLX_NAME
    // clang-format off
    {"copy", 1}, {"neg", 1}, {"abs", 1}, {"sqrt", 1}, {"rsqrt", 1}, {"recip", 1}, {"square", 1}, {"sin", 1},
    {"cos", 1}, {"tan", 1}, {"atan", 1}, {"softsign", 1}, {"relu", 1}, {"elu", 1}, {"hard_swish", 1},
    {"hard_sigmoid", 1}, {"asin", 1}, {"acos", 1}, {"cbrt", 1}, {"trunc", 1},
    {"lgamma", 1}, {"round", 1}, {"floor", 1}, {"ceil", 1}, {"sign", 1}, {"not", 1},
    {"add", 2}, {"sub", 2}, {"mul", 2}, {"div", 2}, {"max", 2},
    {"min", 2}, {"pow", 2}, {"mod", 2}, {"rem", 2}, {"atan2", 2}, {"hypot", 2}, {"logaddexp", 2}, {"and", 2},
    {"or", 2}, {"xor", 2}, {"eq", 2}, {"ne", 2}, {"lt", 2}, {"le", 2}, {"gt", 2}, {"ge", 2}, {"where", 3},
    {"neg_i", 1}, {"abs_i", 1}, {"sign_i", 1}, {"not_i", 1}, {"popcount_i", 1}, {"clz_i", 1}, {"add_i", 2},
    {"sub_i", 2}, {"mul_i", 2}, {"div_i", 2}, {"mod_i", 2}, {"rem_i", 2}, {"max_i", 2}, {"min_i", 2}, {"and_i", 2},
    {"or_i", 2}, {"xor_i", 2}, {"shl_i", 2}, {"shr_i", 2}, {"eq_i", 2}, {"ne_i", 2}, {"lt_i", 2}, {"le_i", 2},
    {"gt_i", 2}, {"ge_i", 2}, {"f32_to_i32", 1}, {"i32_to_f32", 1}, {"bool_to_i32", 1}, {"round_bf16", 1},
    {"round_f16", 1},
    // clang-format on
};
static_assert(std::size(kTapeOps) == kNumTapeOps);

KernelTable make_table(Isa isa) {
  KernelTable t{};
  t.isa = isa;
  t.lanes_f32 = isa == Isa::Avx512 ? 16 : isa == Isa::Avx2 ? 8 : 4;
  fill_matmul_kernels(isa, t);
  fill_packed_b_kernels(isa, t);
  fill_attention_kernels(isa, t);
  fill_row_kernels(isa, t);
  fill_tape_kernels(isa, t);
  fill_copy_reduce_kernels(isa, t);
  fill_random_kernels(isa, t);
  t.interleaved = &interleaved_kernels(isa, int8_matmul(isa).back());
  if (const auto pairs = fast_bf16_matmul(isa)) t.bf16 = &bf16_kernels(isa, *pairs);
  return t;
}

constexpr std::array<Isa, 5> kBestFirst = {Isa::Avx512, Isa::Avx2, Isa::Sse4, Isa::Neon, Isa::Generic};

/// Whether this processor runs kernels of `isa`, whether or not they are built.
bool machine_runs(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::Sse4: return machine_has_sse4();
    case Isa::Avx2: return machine_has_avx2();
    case Isa::Avx512: return machine_has_avx512();
    default: return false;
  }
#elif defined(__aarch64__)
  return isa == Isa::Neon;
#else
  return isa == Isa::Generic;
#endif
}

/// The instruction sets of this build, joined by ", ".
std::string built_names() {
  std::string names;
  for (std::size_t i = 0; i < kIsaNames.size(); ++i) {
    if (!isa_built(static_cast<Isa>(i))) continue;
    if (!names.empty()) names += ", ";
    names += kIsaNames[i];
  }
  return names;
}

void require_supported(Isa isa) {
  if (isa_supported(isa)) return;
  if (!machine_runs(isa))
    throw Error(ErrorCode::Unsupported, concat_text("this machine cannot run ", isa_name(isa), " kernels"),
                concat_text("the best it has is ", isa_name(best_isa())));
  throw Error(ErrorCode::Unsupported,
              concat_text("this build has no ", isa_name(isa), " kernels, only those of ", built_names()),
              "configure it with -DRLX_ISA=all, which builds every instruction set");
}

/// Notes once on stderr that a build with RLX_ISA=native runs on a processor without the instruction set it was built
/// for.
void note_other_machine([[maybe_unused]] Isa best) {
#if defined(RLX_NATIVE_ISA)
  static const bool noted = [best] {
    const auto built = std::find_if(kBestFirst.begin(), kBestFirst.end(), isa_built);
    if (*built != best)
      std::fprintf(stderr,
                   "note: rlx was built for %s (RLX_ISA=native), which this processor lacks: the %s kernels run. Build "
                   "it on this machine, or with -DRLX_ISA=all\n",
                   std::string(isa_name(*built)).c_str(), std::string(isa_name(best)).c_str());
    return true;
  }();
  static_cast<void>(noted);
#endif
}

}  // namespace

bool has_tiles([[maybe_unused]] TileType products) {
#if defined(__x86_64__) && defined(__linux__)
  // Linux grants AMX tiles on request, because they enlarge the saved state of a thread by 8 KB.
  static const unsigned features = [] {
    constexpr unsigned kTile = 1U << 24;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // for arch_prctl
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTile) == 0) return 0U;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? d : 0U;
  }();
  constexpr unsigned kInt8 = 1U << 25, kBf16 = 1U << 22;
  return (features & (products == TileType::Bytes ? kInt8 : kBf16)) != 0;
#else
  return false;
#endif
}

std::string_view isa_name(Isa isa) { return kIsaNames[static_cast<std::size_t>(isa)]; }

bool isa_built(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Sse4) return true;
#if !defined(RLX_WITHOUT_AVX2)
  if (isa == Isa::Avx2) return true;
#endif
#if !defined(RLX_WITHOUT_AVX512)
  if (isa == Isa::Avx512) return true;
#endif
  return false;
#elif defined(__aarch64__)
  return isa == Isa::Neon;
#else
  return isa == Isa::Generic;
#endif
}

bool isa_supported(Isa isa) { return isa_built(isa) && machine_runs(isa); }

Isa best_isa() {
  for (const Isa isa : kBestFirst) {
    if (!isa_supported(isa)) continue;
    note_other_machine(isa);
    return isa;
  }
  throw Error(ErrorCode::Unsupported, "this processor lacks SSE4.2, which the cpu backend needs",
              "use the reference backend");
}

Isa parse_isa(std::string_view name) {
  if (name.empty() || name == "best") return best_isa();
  for (std::size_t i = 0; i < kIsaNames.size(); ++i) {
    if (kIsaNames[i] != name) continue;
    const Isa isa = static_cast<Isa>(i);
    require_supported(isa);
    return isa;
  }
  std::vector<std::string> names(kIsaNames.begin(), kIsaNames.end());
  names.emplace_back("best");
  throw Error(ErrorCode::InvalidArgument, concat_text("unknown instruction set '", name, "'"),
              did_you_mean(name, names, "use best, sse4, avx2, avx512, neon or generic"));
}

const KernelTable& kernels_for(Isa isa) {
  require_supported(isa);
#if defined(__x86_64__)
  // Filling a table runs code compiled for its instruction set, so only requested tables are made.
  switch (isa) {
    case Isa::Avx512: {
      static const KernelTable avx512 = make_table(Isa::Avx512);
      return avx512;
    }
    case Isa::Avx2: {
      static const KernelTable avx2 = make_table(Isa::Avx2);
      return avx2;
    }
    default: {
      static const KernelTable sse4 = make_table(Isa::Sse4);
      return sse4;
    }
  }
#else
  static const KernelTable only = make_table(isa);
  return only;
#endif
}

std::string_view tape_op_name(TapeOp op) { return kTapeOps[static_cast<std::size_t>(op)].name; }
int tape_op_arity(TapeOp op) { return kTapeOps[static_cast<std::size_t>(op)].arity; }

void tape_prepare(Tape& t) {
  const auto fail = [](auto... parts) { throw Error(ErrorCode::InvalidArgument, concat_text("tape: ", parts...)); };
  if (t.rank < 0 || t.rank > kTapeMaxRank) fail("rank ", t.rank, ", the limit is ", kTapeMaxRank);
  if (t.num_inputs < 0 || t.num_inputs > kTapeMaxInputs) fail(t.num_inputs, " inputs, the limit is ", kTapeMaxInputs);
  if (t.num_outputs < 1 || t.num_outputs > kTapeMaxOutputs)
    fail(t.num_outputs, " outputs, the range is 1 to ", kTapeMaxOutputs);
  std::array<bool, kTapeMaxRegisters> defined{};
  for (int i = 0; i < t.num_inputs; ++i) defined[static_cast<std::size_t>(i)] = true;
  for (int k = 0; k < t.num_instrs; ++k) {
    const TapeInstr& in = t.instrs[k];
    if (static_cast<int>(in.op) >= kNumTapeOps) fail("instruction ", k, " has an unknown operation");
    const std::uint8_t operands[] = {in.a, in.b, in.c};
    const int arity = tape_op_arity(in.op);
    int immediates = 0;
    for (int i = 0; i < arity; ++i) {
      if (operands[i] == kTapeImm) {
        ++immediates;
      } else if (operands[i] >= kTapeMaxRegisters || !defined[operands[i]]) {
        fail("instruction ", k, " (", tape_op_name(in.op), ") reads register ", static_cast<int>(operands[i]),
             ", which nothing has written");
      }
    }
    if (immediates > 1)
      fail("instruction ", k, " (", tape_op_name(in.op), ") has two immediate operands; fold them first");
    if (in.then != TapeThen::None) {
      if (in.op != TapeOp::Add && in.op != TapeOp::Sub && in.op != TapeOp::Mul && in.op != TapeOp::Div)
        fail("instruction ", k, " (", tape_op_name(in.op),
             ") has a second step; only add, sub, mul and div may have one");
      if (in.then > TapeThen::RoundF16) fail("instruction ", k, " has an unknown second step");
      if (in.c != kTapeImm && (in.c >= kTapeMaxRegisters || !defined[in.c]))
        fail("instruction ", k, " reads register ", static_cast<int>(in.c),
             " in its second step, which nothing has written");
    }
    if (in.dst >= kTapeMaxRegisters || in.dst < t.num_inputs) {
      fail("instruction ", k, " (", tape_op_name(in.op), ") writes register ", static_cast<int>(in.dst),
           "; results go to registers ", t.num_inputs, " to ", kTapeMaxRegisters - 1);
    }
    defined[in.dst] = true;
  }
  for (int o = 0; o < t.num_outputs; ++o) {
    const std::uint8_t reg = t.outputs[o].reg;
    if (reg >= kTapeMaxRegisters || !defined[reg])
      fail("output ", o, " stores register ", static_cast<int>(reg), ", which nothing has written");
  }
  std::int64_t elements = 1;
  for (int i = 0; i < t.rank; ++i) {
    if (t.dims[i] < 0) fail("dimension ", i, " is ", t.dims[i]);
    elements *= t.dims[i];
  }
  t.num_elements = elements;
  // Drop axes of size 1, then merge an axis with the next one where the strides of every input allow it.
  int rank = 0;
  for (int i = 0; i < t.rank; ++i) {
    if (t.dims[i] == 1) continue;
    t.dims[rank] = t.dims[i];
    for (int k = 0; k < t.num_inputs; ++k) t.inputs[k].strides[rank] = t.inputs[k].strides[i];
    ++rank;
  }
  t.rank = rank;
  for (int i = t.rank - 2; i >= 0; --i) {
    bool merge = true;
    for (int k = 0; k < t.num_inputs; ++k) {
      merge = merge && t.inputs[k].strides[i] == t.inputs[k].strides[i + 1] * t.dims[i + 1];
    }
    if (!merge) continue;
    t.dims[i] *= t.dims[i + 1];
    for (int k = 0; k < t.num_inputs; ++k) t.inputs[k].strides[i] = t.inputs[k].strides[i + 1];
    for (int j = i + 1; j + 1 < t.rank; ++j) {
      t.dims[j] = t.dims[j + 1];
      for (int k = 0; k < t.num_inputs; ++k) t.inputs[k].strides[j] = t.inputs[k].strides[j + 1];
    }
    --t.rank;
  }
  std::int64_t bytes = 0;
  for (int o = 0; o < t.num_outputs; ++o) bytes += elements * 4;
  t.stream_outputs = bytes > kStreamBytes;
}

void copy_prepare(StridedCopy& c) {
  const auto fail = [](auto... parts) {
    throw Error(ErrorCode::InvalidArgument, concat_text("strided copy: ", parts...));
  };
  if (c.rank < 0 || c.rank > kCopyMaxRank) fail("rank ", c.rank, ", the limit is ", kCopyMaxRank);
  if (c.element_bytes != 1 && c.element_bytes != 2 && c.element_bytes != 4 && c.element_bytes != 8 &&
      c.element_bytes != 16) {
    fail("elements of ", c.element_bytes, " bytes; the size must be 1, 2, 4, 8 or 16");
  }
  std::int64_t elements = 1;
  int rank = 0;
  for (int i = 0; i < c.rank; ++i) {
    if (c.dims[i] < 0) fail("dimension ", i, " is ", c.dims[i]);
    elements *= c.dims[i];
    if (c.dims[i] == 1) continue;
    c.dims[rank] = c.dims[i];
    c.x_strides[rank] = c.x_strides[i];
    c.y_strides[rank] = c.y_strides[i];
    ++rank;
  }
  c.rank = rank;
  if (elements == 0) {
    c.chunks = 0;
    return;
  }
  for (int i = c.rank - 2; i >= 0; --i) {
    if (c.x_strides[i] != c.x_strides[i + 1] * c.dims[i + 1] || c.y_strides[i] != c.y_strides[i + 1] * c.dims[i + 1])
      continue;
    c.dims[i] *= c.dims[i + 1];
    c.x_strides[i] = c.x_strides[i + 1];
    c.y_strides[i] = c.y_strides[i + 1];
    for (int j = i + 1; j + 1 < c.rank; ++j) {
      c.dims[j] = c.dims[j + 1];
      c.x_strides[j] = c.x_strides[j + 1];
      c.y_strides[j] = c.y_strides[j + 1];
    }
    --c.rank;
  }
  const std::int64_t bytes = elements * c.element_bytes;
  c.stream = bytes > kStreamBytes;
  c.fetch_lines = bytes > kFetchBytes;
  constexpr std::int64_t kChunkBytes = 128 << 10;
  if (c.rank == 0) {
    c.rows = c.rows_per_chunk = c.chunks = 1;
    return;
  }
  const std::int64_t row_bytes = c.rank == 1 ? c.element_bytes : c.dims[c.rank - 1] * c.element_bytes;
  c.rows = c.rank == 1 ? c.dims[0] : elements / c.dims[c.rank - 1];
  c.rows_per_chunk = std::max<std::int64_t>(1, kChunkBytes / row_bytes);
  if (c.rank > 1 && c.rows_per_chunk > 16) c.rows_per_chunk = c.rows_per_chunk / 16 * 16;
  c.chunks = (c.rows + c.rows_per_chunk - 1) / c.rows_per_chunk;
}

std::int64_t rows_per_chunk(std::int64_t rows, std::int64_t cols, double cost_ns, int threads) {
  if (rows <= 0) return 1;
  if (threads <= 1) return rows;
  const double row_ns = std::max(1.0, static_cast<double>(cols) * cost_ns);
  const double least_ns = threads == kFinestTiling ? 0 : 3000.0;
  const auto least = static_cast<std::int64_t>(least_ns / row_ns) + 1;
  const std::int64_t even = (rows + 4LL * threads - 1) / (4LL * threads);
  return std::min(rows, std::max(least, even));
}

}  // namespace rlx::cpu
