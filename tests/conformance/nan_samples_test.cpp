// The check for NaN on the samples of every op: whatever gives a result that is not finite is named.
#include <doctest/doctest.h>

#include <limits>

#include "rlx/runtime/nan_check.h"
#include "rlx/runtime/session.h"
#include "tests/support/samples.h"

namespace rlx {
namespace {

bool is_finite(const Tensor& t) {
  const bool complex = is_complex(t.dtype());
  if (!is_inexact(t.dtype()) && t.dtype() != DType::F8E4M3 && t.dtype() != DType::F8E5M2) return true;
  const Tensor parts =
      complex ? Tensor::copy_of(t.data(), Shape({Dim(2 * t.num_elements())}, real_dtype(t.dtype()))) : t;
  for (std::int64_t i = 0; i < parts.num_elements(); ++i)
    if (const double v = parts.at(i); v - v != 0) return false;
  return true;
}

// One element of the k-th float operand becomes `value`. Returns its name, or "" if there is no such operand.
std::string poison(std::vector<Tensor>& operands, std::size_t k, double value) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!is_float(operands[i].dtype()) || operands[i].num_elements() == 0 || k-- != 0) continue;
    operands[i].set(operands[i].num_elements() / 2, value);
    return concat_text("x", i);
  }
  return {};
}

}  // namespace

TEST_CASE("nan check: what gives NaN or an infinity in a sample of an op is named") {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  const Session session;
  std::size_t number = 0;
  test::for_each_run_sample([&](const OpDef& def, const testing::Sample& sample) {
    CompiledGraph f = session.compile(test::sample_graph(sample));
    for (const IoInfo& p : f.params()) f.set_param(p.name, Tensor::zeros(p.shape));
    for (std::size_t k = 0; k < 3; ++k) {
      std::vector<Tensor> operands = testing::draw_operands(sample);
      const double values[] = {kNaN, kInf, -kInf};
      const std::string poisoned = k == 0 ? "" : poison(operands, k - 1, values[number++ % 3]);
      if (k != 0 && poisoned.empty()) break;
      INFO("poisoned '", poisoned, "'");
      const NamedTensors inputs = test::bind_operands(operands);
      bool finite = true;
      for (const Tensor& t : f.run_typed(inputs)) finite = finite && is_finite(t);
      const NanCheckScope on(NanCheck::NanOrInf);
      try {
        (void)f.run_typed(inputs);
        CHECK(finite);
      } catch (const NotFinite& e) {
        const NanOrigin& o = e.origin();
        INFO(std::string(e.what()));
        CHECK(!finite);
        CHECK(!o.op.empty());
        if (o.op == "input") {
          CHECK(o.label == poisoned);
          CHECK(o.operands.empty());
        } else if (def.bodies == BodyKind::None) {
          CHECK(o.label == "%" + std::to_string(operands.size()));  // the op of the sample follows its inputs
          CHECK(o.operands.size() == operands.size());
        }
      }
    }
  });
}

}  // namespace rlx
