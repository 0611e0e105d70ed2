// Samples of LlamaDecoderBlock.
#include <optional>

#include "rlx/ir/ops/blocks.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {
namespace {

// Mask bits of the optional operands.
constexpr std::uint32_t kLn1Beta = 1U << 13, kLn2Beta = 1U << 14, kQNorm = 1U << 15, kKNorm = 1U << 16, kBq = 1U << 17,
                        kBk = 1U << 18, kBv = 1U << 19, kBo = 1U << 20, kKCache = 1U << 21, kVCache = 1U << 22,
                        kStart = 1U << 23;

// Operands with 3 columns, 2 query heads of dim 2 over 1 key head, and 5 columns in the MLP; the tables have `rows`
// rows.
std::vector<SampleInput> decoder_operands(DType t, std::uint32_t present, std::int64_t rows, std::int64_t cached,
                                          std::optional<SampleInput> mask = {}) {
  const auto in = [&](Dims dims) { return SampleInput(Shape(std::move(dims), t), Fill::Unit); };
  std::vector<SampleInput> out{Shape({1, 2, 3}, t), in({3}),    in({3, 4}),    in({3, 2}),
                               in({3, 2}),          in({4, 3}), in({3}),       in({3, 5}),
                               in({3, 5}),          in({5, 3}), in({rows, 1}), in({rows, 1})};
  if (mask) out.push_back(*mask);
  const std::pair<std::uint32_t, Dims> more[] = {{kLn1Beta, {3}},
                                                 {kLn2Beta, {3}},
                                                 {kQNorm, {2}},
                                                 {kKNorm, {2}},
                                                 {kBq, {4}},
                                                 {kBk, {2}},
                                                 {kBv, {2}},
                                                 {kBo, {3}},
                                                 {kKCache, {1, cached, 2}},
                                                 {kVCache, {1, cached, 2}}};
  for (const auto& o : more)
    if (present & o.first) out.push_back(in(o.second));
  if (present & kStart) out.emplace_back(Shape({}, DType::I32), Fill::Index, cached - 1);
  return out;
}

}  // namespace

template <>
void samples<ops::LlamaDecoderBlock>(SampleSet& s) {
  ops::LlamaDecoderBlock op;
  op.num_heads = 2, op.kv_heads = 1, op.head_dim = 2, op.eps = 1e-3;
  s.add("causal", decoder_operands(DType::F64, 0, 2, 0), op);
  const auto add = [&](const char* name, DType t, std::uint32_t present, std::int64_t rows, std::int64_t cached) {
    op.present.bits = present;
    s.add(name, decoder_operands(t, present, rows, cached), op);
  };
  op.mask = MaskKind::Custom;
  s.add("mask", decoder_operands(DType::F32, 0, 2, 0, SampleInput(Shape({1, 1, 1, 2}, DType::Bool), Fill::Boolean)),
        op);
  op.mask = MaskKind::Causal, op.scale = 0.4, op.softcap = 2.0;
  constexpr std::uint32_t kAll = kLn1Beta | kLn2Beta | kQNorm | kKNorm | kBq | kBk | kBv | kBo;
  add("norms, biases, scale, softcap", DType::F64, kAll, 2, 0);
  op.scale.reset(), op.softcap.reset();
  add("bias of v alone", DType::F32, kBv, 2, 0);
  add("behind a cache", DType::F64, kKCache | kVCache, 5, 3);
  op.mask = MaskKind::SlidingWindow, op.window = 1, op.activation = ActivationKind::GeluApprox;
  add("window behind a cache, another gate", DType::F32, kKCache | kVCache | kKNorm, 5, 3);
  op.mask = MaskKind::Causal, op.window = 0, op.activation = ActivationKind::Silu;
  op.pairing = RopePairing::Interleaved;
  add("written into a cache", DType::F32, kKCache | kVCache | kStart | kBq, 5, 4);
}

}  // namespace rlx::testing
