// Samples of GatedDeltaNet.
#include "rlx/ir/ops/sequence.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::GatedDeltaNet>(SampleSet& s) {
  struct Case {
    const char* name;
    std::int64_t batch, steps, groups, heads, n, width, chunk;
    bool state;
    DType t;
  };
  const Case cases[] = {{"step by step", 2, 3, 2, 2, 2, 3, 1, true, DType::F32},
                        {"pieces and a rest", 1, 5, 1, 2, 3, 2, 2, true, DType::F64},
                        {"one piece", 2, 3, 1, 1, 2, 2, 32, false, DType::F32},
                        {"shared keys", 1, 4, 2, 4, 2, 2, 4, false, DType::F64},
                        {"one of everything", 1, 1, 1, 1, 1, 1, 32, true, DType::F32},
                        {"no steps", 1, 0, 1, 2, 2, 2, 4, true, DType::F32},
                        {"no sequences", 0, 3, 1, 2, 2, 2, 2, false, DType::F32},
                        {"no width", 1, 3, 1, 1, 2, 0, 2, false, DType::F32},
                        {"no keys", 1, 3, 1, 1, 0, 2, 2, false, DType::F32},
                        {"wider", 2, 19, 2, 4, 16, 37, 8, true, DType::F32},
                        {"bf16", 1, 3, 1, 2, 4, 4, 2, true, DType::BF16}};
  for (const Case& k : cases) {
    ops::GatedDeltaNet op;
    op.chunk = k.chunk, op.present.bits = k.state ? 1U << 5 : 0;
    if (k.groups == 2) op.scale = 0.7;
    const auto in = [&](Dims dims) { return SampleInput(Shape(std::move(dims), k.t), Fill::Unit); };
    const Dims key{k.batch, k.steps, k.groups, k.n}, head{k.batch, k.steps, k.heads};
    std::vector<SampleInput> v{in(key), in(key), in({k.batch, k.steps, k.heads, k.width}), in(head), in(head)};
    if (k.state) v.emplace_back(Shape({k.batch, k.heads, k.n, k.width}, accumulator_dtype(k.t)));
    if (k.width > 15 || accumulator_dtype(k.t) != k.t)
      s.add_discrete(k.name, std::move(v), op);
    else
      s.add(k.name, std::move(v), op);
  }
}

}  // namespace rlx::testing
