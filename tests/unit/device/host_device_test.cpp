// Host memory as a device: the initial values of states, and their resident memory.
#include "rlx/device/host_device.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "rlx/ir/ops/leaves.h"
#include "rlx/runtime/session.h"

namespace rlx {
namespace {

// The resident memory of the process in bytes; 0 if the system does not report it.
std::size_t resident_bytes() {
  std::FILE* f = std::fopen("/proc/self/statm", "r");
  if (f == nullptr) return 0;
  unsigned long all = 0, resident = 0;
  const int read = std::fscanf(f, "%lu %lu", &all, &resident);
  std::fclose(f);
  return read == 2 ? resident * 4096UL : 0;
}

}  // namespace

TEST_CASE("host device: memory for states is zeros of which nothing is touched, of other uses it may be anything") {
  const std::shared_ptr<OpenDevice> host = open_host_device({});
  for (const std::size_t bytes : {0UL, 1UL, 63UL, 65535UL, 65536UL, 65537UL, 4194303UL, 4194304UL, 12345678UL}) {
    CAPTURE(bytes);
    for (int again = 0; again < 2; ++again) {  // the second run may get the memory of the first
      const std::shared_ptr<Buffer> states = host->allocate(bytes, BufferUse::States);
      CHECK(allocated_as_zeros(*states));
      CHECK(states->bytes() == bytes);
      CHECK(reinterpret_cast<std::uintptr_t>(states->host()) % 64 == 0);
      CHECK(host->memory().in_use[static_cast<std::size_t>(BufferUse::States)] == bytes);
      CHECK(std::all_of(states->host(), states->host() + bytes, [](std::byte b) { return b == std::byte{0}; }));
      std::fill_n(states->host(), bytes, std::byte{7});
    }
    CHECK(host->memory().in_use[static_cast<std::size_t>(BufferUse::States)] == 0);
    CHECK_FALSE(allocated_as_zeros(*host->allocate(bytes, BufferUse::Arena)));
  }
}

TEST_CASE("host device: a large state of a program takes memory where it is written, and is zeros elsewhere") {
  constexpr std::int64_t kRows = 32768, kWidth = 1024;  // 128 MB
  Graph g("large state");
  const Expr x = g.input("x", Shape({1, kWidth}, DType::F32)), at = g.input("at", Shape({2}, DType::I32));
  const Expr state = g.add(ops::State{"s", {kRows, kWidth}, DType::F32, {}}, {});
  const Expr next = g.dynamic_update_slice(state, x, at);
  g.set_state("s", next);
  g.set_outputs({g.sum(g.slice(next, {kRows - 2, 0}, {kRows, kWidth}), {0})});
  const std::size_t before = resident_bytes();
  CompiledGraph f = Session().compile(std::move(g));
  const auto run = [&](float value, std::int32_t row) {
    return f
        .run_typed({{"x", Tensor::full(Shape({1, kWidth}, DType::F32), value)},
                    {"at", Tensor::of<std::int32_t>({2}, std::vector<std::int32_t>{row, 0})}})[0]
        .to_f32();
  };
  CHECK(run(3, 7) == std::vector<float>(kWidth, 0.0F));
  CHECK(run(2, kRows - 1) == std::vector<float>(kWidth, 2.0F));
  CHECK(run(5, kRows - 2) == std::vector<float>(kWidth, 7.0F));
  if (before != 0) CHECK(resident_bytes() < before + (std::size_t{64} << 20));
  CHECK(f.read_state("s", {6, 1}).to_f32() == std::vector<float>(kWidth, 0.0F));
  CHECK(f.read_state("s", {7, 1}).to_f32() == std::vector<float>(kWidth, 3.0F));
  f.reset();
  CHECK(run(1, 0) == std::vector<float>(kWidth, 0.0F));
  CHECK(f.read_state("s", {7, 1}).to_f32() == std::vector<float>(kWidth, 0.0F));
}

}  // namespace rlx
