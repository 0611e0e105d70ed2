// The comparison that all numeric tests use: it detects NaN, infinities, subnormal numbers and 1 ulp of each dtype.
#include "tests/support/closeness.h"
#include "tests/support/values.h"

#include <doctest/doctest.h>

#include "rlx/error.h"

using namespace rlx;
using namespace rlx::test;

namespace {

Tensor one(DType t, double x) { return Tensor::full(Shape({1}, t), x); }

}  // namespace

TEST_CASE("closeness: NaN equals NaN alone, and nothing after it is forgotten") {
  CHECK(difference(kNan, kNan) == 0);
  CHECK(difference(kNan, 1) == kApart);
  CHECK(difference(1, kNan) == kApart);
  CHECK(difference(kInf, kInf) == 0);
  CHECK(difference(kInf, -kInf) == kApart);
  CHECK(difference(kInf, 1e308) == kApart);
  Worst worst;
  worst.add(1.5, 1, 0.25);
  CHECK(worst.value() == 2);
  worst.add(kNan, 1);
  worst.add(1, 1);
  CHECK(worst.value() == kApart);
  Worst by_distance;
  by_distance.add(kNan);
  CHECK(by_distance.value() == kApart);
}

TEST_CASE("closeness: the last place of every float dtype") {
  CHECK(last_place(DType::F32, 1) == 0x1p-23);
  CHECK(last_place(DType::F32, -1.99) == 0x1p-23);
  CHECK(last_place(DType::F32, 0.99) == 0x1p-24);
  CHECK(last_place(DType::F32, 0) == 0x1p-149);
  CHECK(last_place(DType::F32, 1e-40) == 0x1p-149);
  CHECK(last_place(DType::F64, 0) == 0x1p-1074);
  CHECK(last_place(DType::BF16, 1) == 0x1p-7);
  CHECK(last_place(DType::F16, 1) == 0x1p-10);
  CHECK(last_place(DType::F16, 1e-7) == 0x1p-24);
  CHECK(last_place(DType::F8E4M3, 1) == 0.125);
  CHECK(last_place(DType::F8E5M2, 1) == 0.25);
  CHECK(last_place(DType::F4E2M1, 4) == 2);
  CHECK(last_place(DType::F4E2M1, 0.5) == 0.5);
  CHECK_THROWS_AS(last_place(DType::I32, 1), Error);
  // In every dtype the number next to 1 is 1 ulp away.
  for (DType t : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2, DType::F4E2M1}) {
    CAPTURE(dtype_name(t));
    const Tensor next = one(t, 1 + epsilon_of(t));
    CHECK(next.at(0) > 1);
    CHECK(ulp_gap(next, one(t, 1)).size == 1);
    CHECK(ulp_gap(one(t, 1), one(t, 1)).size == 0);
    if (t != DType::F64) CHECK(ulp_gap(one(t, 1), one(DType::F64, 1 + epsilon_of(t) / 4)).size == 0.25);
    CHECK(one(t, float_format(t).largest).at(0) == float_format(t).largest);
  }
}

TEST_CASE("closeness: overflow, subnormal numbers, saturation") {
  const double largest = float_format(DType::F32).largest;
  CHECK(ulps(DType::F32, kInf, 1e300) == 0);
  CHECK(ulps(DType::F32, kInf, kInf) == 0);
  CHECK(ulps(DType::F32, kInf, largest) == 1);
  CHECK(ulps(DType::F32, kInf, -largest) == kApart);
  CHECK(ulps(DType::F32, largest, kInf) == kApart);  // log(0) is not the lowest number
  CHECK(ulps(DType::F32, 0, 0x1p-149) == 1);
  CHECK(ulps(DType::F64, kInf, float_format(DType::F64).largest) == 1);
  CHECK(ulps(DType::F8E4M3, 448, 1e6) == 0);
  CHECK(ulps(DType::F8E4M3, 448, kNan) == kApart);
  CHECK(ulps(DType::F4E2M1, 0, kNan) == 0);
}

TEST_CASE("closeness: integers by difference, complex by parts, shapes and dtypes must fit") {
  CHECK(ulp_gap(one(DType::I32, 3), one(DType::I32, 5)).size == 2);
  CHECK(ulp_gap(one(DType::I4, -8), one(DType::I4, 7)).size == 15);
  CHECK(ulp_gap(one(DType::Bool, 1), one(DType::Bool, 0)).size == 1);
  Tensor a = Tensor::zeros(Shape({1}, DType::I64)), b = a;
  a.set_i64(0, (std::int64_t{1} << 53) + 1);
  b.set_i64(0, std::int64_t{1} << 53);
  CHECK(ulp_gap(a, b).size == 1);
  CHECK(ulp_gap(one(DType::C64, 1), one(DType::C128, 1 + 0x1p-24)).size == 0.5);
  CHECK(ulp_gap(one(DType::F32, 1), one(DType::I32, 1)).size == kApart);
  CHECK(ulp_gap(one(DType::F32, 1), Tensor::full(Shape({1, 1}, DType::F32), 1)).size == kApart);
  CHECK(ulp_gap(one(DType::F32, kNan), one(DType::F32, 1)).size == kApart);
  CHECK(ulp_gap(one(DType::F32, kNan), one(DType::F32, kNan)).size == 0);
  CHECK(ulp_gap(one(DType::F32, 1.5), one(DType::F32, 1)).text.find("element 0 is 1.5, wanted 1") == 0);
}
