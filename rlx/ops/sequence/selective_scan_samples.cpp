// Samples of SelectiveScan.
#include "rlx/ir/ops/sequence.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::SelectiveScan>(SampleSet& s) {
  struct Case {
    const char* name;
    std::int64_t batch, steps, width, n;
    std::uint32_t present;
    bool softplus;
    DType t;
  };
  constexpr std::uint32_t kD = 1U << 5, kZ = 1U << 6, kBias = 1U << 7, kState = 1U << 8,
                          kAll = kD | kZ | kBias | kState;
  const Case cases[] = {{"plain", 2, 3, 3, 2, 0, false, DType::F32},
                        {"everything", 2, 3, 3, 2, kAll, true, DType::F64},
                        {"softplus", 1, 3, 2, 3, kBias, true, DType::F32},
                        {"start state", 2, 2, 2, 3, kState, false, DType::F32},
                        {"gate", 1, 2, 3, 2, kD | kZ, false, DType::F32},
                        {"one of everything", 1, 1, 1, 1, kAll, true, DType::F32},
                        {"no steps", 1, 0, 2, 2, kState, false, DType::F32},
                        {"no channels", 1, 2, 0, 2, 0, false, DType::F32},
                        {"no state", 1, 2, 2, 0, kD, false, DType::F32},
                        {"no sequences", 0, 2, 2, 2, 0, false, DType::F32},
                        {"wider", 2, 9, 37, 16, kAll, true, DType::F32},
                        {"bf16", 1, 3, 4, 2, kAll, true, DType::BF16},
                        {"f16", 1, 3, 4, 2, 0, false, DType::F16}};
  for (const Case& k : cases) {
    ops::SelectiveScan op;
    op.delta_softplus = k.softplus, op.present.bits = k.present;
    const auto in = [&](Dims dims, Fill fill = Fill::Unit) { return SampleInput(Shape(std::move(dims), k.t), fill); };
    std::vector<SampleInput> v{in({k.batch, k.steps, k.width}), in({k.batch, k.steps, k.width}), in({k.width, k.n}),
                               in({k.batch, k.steps, k.n}), in({k.batch, k.steps, k.n})};
    if (k.present & kD) v.push_back(in({k.width}));
    if (k.present & kZ) v.push_back(in({k.batch, k.steps, k.width}));
    if (k.present & kBias) v.push_back(in({k.width}));
    if (k.present & kState) v.emplace_back(Shape({k.batch, k.width, k.n}, accumulator_dtype(k.t)));
    if (k.width > 30 || accumulator_dtype(k.t) != k.t)
      s.add_discrete(k.name, std::move(v), op);
    else
      s.add(k.name, std::move(v), op);
  }
}

}  // namespace rlx::testing
