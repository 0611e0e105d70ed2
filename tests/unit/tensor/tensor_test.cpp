// Tensor storage: parts of one buffer.
#include "rlx/tensor/tensor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "rlx/error.h"
#include "tests/support/build_kind.h"
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

#if !defined(RLX_ADDRESS_SANITIZER)
TEST_CASE("tensor: a buffer that was let go of serves the next value of as many bytes") {
  const auto made = [](std::int64_t bytes) { return Tensor::uninitialized(Shape({Dim(bytes)}, DType::U8)); };
  for (const std::int64_t bytes : {std::int64_t{1} << 18, (std::int64_t{5} << 20) + 1}) {
    const std::byte* const first = made(bytes).data();
    const Tensor other = made(bytes - 1);  // of another size
    CHECK(other.data() != first);
    const Tensor again = made(bytes), more = made(bytes);
    CHECK(again.data() == first);
    CHECK(more.data() != first);
  }
}
#endif

TEST_CASE("tensor: threads that make values and let them go have each its own") {
  std::atomic<int> wrong = 0;
  const auto work = [&wrong](int mine) {
    for (int i = 0; i < 300; ++i) {
      const std::int64_t bytes = (std::int64_t{1} << 16) * (1 + i % 3);
      Tensor a = Tensor::uninitialized(Shape({Dim(bytes)}, DType::U8)), b = Tensor::uninitialized(a.shape());
      std::fill_n(a.mutable_data(), bytes, static_cast<std::byte>(mine));
      std::fill_n(b.mutable_data(), bytes, static_cast<std::byte>(mine + 100));
      const bool whole = std::count(a.data(), a.data() + bytes, static_cast<std::byte>(mine)) == bytes;
      if (!whole) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
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
