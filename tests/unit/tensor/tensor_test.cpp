// Tensor storage: parts of one buffer.
#include "rlx/tensor/tensor.h"

#include <doctest/doctest.h>

#include <cstdint>

#include "rlx/error.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

TEST_CASE("a tensor's extents are numbers, beside a zero too") {
  const Dim n = Dim::symbol("n");
  for (const Shape& s : {Shape({0, n}, DType::F32), Shape({n, 0}, DType::F32)}) {
    const std::string text = test::error_text([&] { (void)Tensor::zeros(s); });
    CAPTURE(text);
    CHECK(test::contains(text, "symbol"));
  }
  CHECK(Tensor::zeros(Shape({std::int64_t{1} << 40, std::int64_t{1} << 40, 0}, DType::F32)).num_elements() == 0);
}

TEST_CASE("tensor: parts of one buffer are written where they are, and copied only when shared") {
  Tensor slab = Tensor::zeros(Shape({Dim(5 << 20)}, DType::U8));  // large enough for huge pages
  CHECK(reinterpret_cast<std::uintptr_t>(slab.data()) % 64 == 0);
  Tensor a = Tensor::part_of(slab, 0, Shape({Dim(64)}, DType::U8));
  Tensor b = Tensor::part_of(slab, 64, Shape({Dim(64)}, DType::U8));
  CHECK(b.mutable_data() == a.data() + 64);
  b.mutable_data()[3] = std::byte{7};
  CHECK(slab.data()[67] == std::byte{7});
  slab = Tensor();  // the parts keep the bytes
  CHECK(b.data()[3] == std::byte{7});
  Tensor shared = b;
  shared.mutable_data()[3] = std::byte{9};
  CHECK(b.data()[3] == std::byte{7});
  Tensor small = Tensor::zeros(Shape({Dim(10)}, DType::U8));
  CHECK_THROWS_AS(Tensor::part_of(small, 4, Shape({Dim(7)}, DType::U8)), Error);
}

}  // namespace
}  // namespace rlx
