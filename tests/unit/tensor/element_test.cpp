// Element: a dtype with the meaning of its stored bytes.
#include <doctest/doctest.h>

#include "rlx/tensor/dtype.h"

namespace rlx {
namespace {

TEST_CASE("fp8 elements live in bytes, saturate, and name the dtype of their values") {
  constexpr Element e4m3 = Element::fp8_e4m3(), e5m2 = Element::fp8_e5m2(), plain = Element::of(DType::BF16);
  CHECK(e4m3 == Element{DType::U8, ElementSubtype::Fp8E4m3, true});
  CHECK(e5m2 == Element{DType::U8, ElementSubtype::Fp8E5m2, true});
  CHECK(plain == Element{DType::BF16, ElementSubtype::Standard, false});
  CHECK(e4m3 != e5m2);
  CHECK(e4m3.value_dtype() == DType::F8E4M3);
  CHECK(e5m2.value_dtype() == DType::F8E5M2);
  CHECK(plain.value_dtype() == DType::BF16);
  for (Element e : {e4m3, e5m2}) CHECK(size_bytes(e.dtype) == size_bytes(e.value_dtype()));
  CHECK(Element{}.dtype == DType::F32);
}

}  // namespace
}  // namespace rlx
