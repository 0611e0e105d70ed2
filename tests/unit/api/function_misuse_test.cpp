// Misuse of the functions that are composed of ops: wrong dtypes, parameters and empty values.
#include <cmath>

#include "rlx/functions/activations.h"
#include "rlx/functions/floats.h"
#include "rlx/functions/special.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/ops/attention.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

TEST_CASE("misuse: attributes that the dtype of the computation does not hold") {
  Graph g("g");
  const Expr x = g.input("x", {{2, 3, 4}, DType::F32}), half = g.input("h", {{2, 3, 4}, DType::BF16}),
             d = g.input("d", {{2, 3, 4}, DType::F64}), v = g.input("v", {{4}, DType::F32});
  const auto attend = [&](const Expr& q, double scale, std::optional<double> softcap = {}) {
    ops::Attention op;
    op.num_heads = op.kv_heads = 1, op.head_dim = 4, op.scale = scale, op.softcap = softcap;
    return g.attention(q, q, q, op);
  };
  for (const Expr& q : {x, half}) {
    REFUSED("scale 1e+39 becomes infinite or 0 in f32", attend(q, 1e39));
    REFUSED("scale -1e-60 becomes infinite or 0 in f32", attend(q, -1e-60));
    REFUSED("softcap 1e+300 becomes infinite or 0 in f32", attend(q, 1, 1e300));
    REFUSED("eps 1e-60 becomes infinite or 0 in f32", g.rms_norm(q, {}, {}, 1e-60));
    REFUSED("eps 1e+39 becomes infinite or 0 in f32", g.layer_norm(q, {}, {}, 1e39));
    REFUSED("eps 1e+39 becomes infinite or 0 in f32", g.group_norm(q, 1, {}, {}, 1e39));
  }
  REFUSED("eps 1e+39 becomes infinite or 0 in f32", g.residual_rms_norm(x, x, v, v, 1e39));
  REFUSED("scale must be finite", attend(d, HUGE_VAL));
  // A number that only F64 holds is allowed beside F64 values; 0 and the smallest F32 numbers are allowed everywhere.
  CHECK(attend(d, 1e300).valid());
  CHECK(attend(d, 1e-300, 1e300).valid());
  CHECK(g.rms_norm(d, {}, {}, 1e-300).valid());
  CHECK(attend(x, 0).valid());
  CHECK(attend(half, 1e-45, 3e38).valid());
  CHECK(g.layer_norm(half, {}, {}, 0).valid());
  CHECK(g.rms_norm(x, {}, {}, 1e-44).valid());
}

TEST_CASE("misuse: functions over elements") {
  Graph g("g");
  const Expr x = g.input("x", {{2}, DType::F32}), i = g.input("i", {{2}, DType::I32}),
             d = g.input("d", {{2}, DType::F64});
  REFUSED("selu needs a float operand, got [2] i32", nn::selu(i));
  REFUSED("celu: alpha must be finite and not 0", nn::celu(x, 0));
  REFUSED("celu: alpha must be finite and not 0", nn::celu(x, NAN));
  REFUSED("prelu needs a float operand", nn::prelu(i, i));
  REFUSED("thresholded_relu needs a float operand", nn::thresholded_relu(i));
  REFUSED("low must not be above high", nn::hard_tanh(x, 1, -1));
  REFUSED("hard_tanh needs a float operand", nn::hard_tanh(i));
  REFUSED("relu6 needs a float operand", nn::relu6(i));
  REFUSED("b must not be negative", nn::squareplus(x, -1));
  REFUSED("lambda must not be negative", nn::shrink(x, NAN));
  REFUSED("tanh", nn::tanh_shrink(i));
  REFUSED("copysign needs floats", floats::copysign(i, i));
  REFUSED("nextafter needs floats", floats::nextafter(i, i));
  REFUSED("ldexp needs floats", floats::ldexp(i, i));
  REFUSED("ldexp needs integer exponents", floats::ldexp(x, x));
  REFUSED("frexp needs floats", floats::frexp(i));
  REFUSED("logit needs floats", special::logit(i));
  REFUSED("xlogy needs floats of one dtype", special::xlogy(x, d));
  REFUSED("xlog1py needs floats of one dtype", special::xlog1py(x, d));
  REFUSED("entr needs floats", special::entr(i));
  REFUSED("rel_entr needs floats", special::rel_entr(x, d));
  REFUSED("needs floats of one dtype", special::kl_div(x, d));
  REFUSED("ndtr needs floats", special::ndtr(i));
  REFUSED("log_ndtr needs floats", special::log_ndtr(i));
  REFUSED("ndtri needs floats", special::ndtri(i));
  REFUSED("gamma needs floats", special::gamma(i));
  REFUSED("betaln needs floats", special::betaln(x, d));
  REFUSED("logaddexp2 needs floats", special::logaddexp2(x, d));
  REFUSED("betainc needs floats of one dtype", special::betainc(x, x, d));
  const Expr empty;
  REFUSED("an empty Expr", floats::is_nan(empty));
  REFUSED("an empty Expr", floats::is_inf(empty));
  REFUSED("an empty Expr", floats::is_finite(empty));
  REFUSED("an empty Expr", floats::signbit(empty));
}
