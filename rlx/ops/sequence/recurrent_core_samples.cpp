// Operands of the samples of Rnn, Gru and Lstm.
#include "rlx/ops/recurrent_samples.h"

namespace rlx::testing {

std::vector<SampleInput> recurrent_operands(const RecurrentSample& s, std::int64_t gates, std::int64_t directions,
                                            bool batch_first, bool keeps_bias) {
  const auto has = [&](std::uint32_t bit) { return (s.present & bit) != 0; };
  const auto in = [&](Dims dims) { return SampleInput(Shape(std::move(dims), s.dtype), Fill::Unit); };
  const std::int64_t rows = gates * s.hidden, width = has(kHasW) ? s.in : directions * rows;
  std::vector<SampleInput> out{in(batch_first ? Dims{s.batch, s.steps, width} : Dims{s.steps, s.batch, width})};
  if (has(kHasW)) out.push_back(in({directions, rows, s.in}));
  out.push_back(in({directions, rows, s.hidden}));
  if (has(kHasBias))
    out.push_back(in(has(kHasW) || !keeps_bias ? Dims{directions, 2 * rows} : Dims{directions, s.hidden}));
  if (has(kHasLengths)) out.emplace_back(Shape({s.batch}, DType::I32), Fill::Index, s.steps + 1);
  for (std::uint32_t bit : {kHasH0, kHasC0})
    if (has(bit)) out.push_back(in({directions, s.batch, s.hidden}));
  if (has(kHasPeepholes)) out.push_back(in({directions, 3 * s.hidden}));
  return out;
}

}  // namespace rlx::testing
