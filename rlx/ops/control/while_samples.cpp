// Samples of While.
#include <optional>

#include "rlx/ir/ops/control.h"
#include "rlx/ops/control/control.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::While>(SampleSet& s) {
  const Shape scalar({}, DType::F64), v({2}, DType::F64), count({}, DType::I32);
  const auto loop = [&](std::optional<std::int64_t> max_trips, bool ys) {
    Graph t("cond"), b("body");
    Expr rate = t.input("rate", scalar), n = t.input("n", count), x = t.input("x", v);
    (void)rate, (void)x;
    Expr a = b.input("rate", scalar), m = b.input("n", count), y = b.input("x", v);
    Expr next = b.sin(y * a) + y;
    Exprs out{m + 1, next};
    if (ys) out.push_back(next * a);
    return ops::While{1, max_trips, finished(t, {t.lt(n, 3)}), finished(b, out)};
  };
  const std::vector<SampleInput> in{scalar, {count, Fill::Small}, v};
  s.add("until a count", in, loop(7, false));
  s.add("rows of each trip, stopped early", in, loop(2, true));
  s.add("rows of each trip", in, loop(8, true));
  s.add("no trips", in, loop(0, true));
  Graph t("cond"), b("body");
  Expr n = t.input("n", count);
  Expr m = b.input("n", count);
  s.add_discrete("integers without a bound", {{count, Fill::Small}},
                 ops::While{0, {}, finished(t, {t.lt(n, 5)}), finished(b, {m * 2 + 5})});
}

}  // namespace rlx::testing
