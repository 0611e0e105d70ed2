// Samples of Mamba2.
#include "rlx/ir/ops/sequence.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::Mamba2>(SampleSet& s) {
  struct Case {
    const char* name;
    std::int64_t batch, steps, heads, groups, width, n, chunk;
    std::uint32_t present;
    bool softplus;
    DType t;
  };
  constexpr std::uint32_t kD = 1U << 5, kZ = 1U << 6, kBias = 1U << 7, kState = 1U << 8,
                          kAll = kD | kZ | kBias | kState;
  const Case cases[] = {{"step by step", 2, 3, 2, 1, 2, 3, 1, kState, false, DType::F32},
                        {"two pieces and a rest", 1, 5, 2, 2, 2, 2, 2, kAll, true, DType::F64},
                        {"one piece", 2, 3, 2, 1, 2, 2, 64, 0, false, DType::F32},
                        {"groups", 1, 4, 4, 2, 1, 2, 2, kBias, true, DType::F32},
                        {"gate", 1, 3, 1, 1, 3, 2, 4, kD | kZ, false, DType::F32},
                        {"one of everything", 1, 1, 1, 1, 1, 1, 64, kAll, true, DType::F32},
                        {"no steps", 1, 0, 2, 1, 2, 2, 4, kState, false, DType::F32},
                        {"no sequences", 0, 3, 2, 1, 2, 2, 2, 0, false, DType::F32},
                        {"no width", 1, 3, 2, 1, 0, 2, 2, 0, false, DType::F32},
                        {"no state", 1, 3, 2, 1, 2, 0, 2, 0, false, DType::F32},
                        {"wider", 2, 21, 4, 2, 19, 16, 8, kAll, true, DType::F32},
                        {"bf16", 1, 3, 2, 1, 4, 2, 2, kAll, false, DType::BF16}};
  for (const Case& k : cases) {
    ops::Mamba2 op;
    op.dt_softplus = k.softplus, op.chunk = k.chunk, op.present.bits = k.present;
    const auto in = [&](Dims dims) { return SampleInput(Shape(std::move(dims), k.t), Fill::Unit); };
    const Dims x{k.batch, k.steps, k.heads, k.width}, b{k.batch, k.steps, k.groups, k.n};
    std::vector<SampleInput> v{in(x), in({k.batch, k.steps, k.heads}), in({k.heads}), in(b), in(b)};
    if (k.present & kD) v.push_back(k.batch == 2 ? in({k.heads, k.width}) : in({k.heads}));
    if (k.present & kZ) v.push_back(in(x));
    if (k.present & kBias) v.push_back(in({k.heads}));
    if (k.present & kState) v.emplace_back(Shape({k.batch, k.heads, k.width, k.n}, accumulator_dtype(k.t)));
    if (k.width > 15 || accumulator_dtype(k.t) != k.t)
      s.add_discrete(k.name, std::move(v), op);
    else
      s.add(k.name, std::move(v), op);
  }
}

}  // namespace rlx::testing
