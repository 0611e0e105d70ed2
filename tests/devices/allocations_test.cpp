// Runs allocate nothing of ours from the second on: counted, not believed.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "rlx/runtime/session.h"
#include "tests/devices/allocations.h"
#include "tests/devices/test_device.h"
#include "tests/support/paths.h"
#include "tests/support/shapes.h"

namespace {
std::atomic<long> counted_allocations{0};
// Of a library that calls the same operator new: whether this thread is inside of it. Its threads are its own.
std::atomic<bool (*)()> is_inside{nullptr};
thread_local bool is_ours = false;
void count() {
  if (bool (*const inside)() = is_inside; inside && (!is_ours || inside())) return;
  counted_allocations.fetch_add(1, std::memory_order_relaxed);
}
void* counted_new(std::size_t size) {
  count();
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
void* counted_new(std::size_t size, std::align_val_t align) {
  count();
  const auto a = static_cast<std::size_t>(align);
  if (void* p = std::aligned_alloc(a, (size + a) / a * a)) return p;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return counted_new(size); }
void* operator new[](std::size_t size) { return counted_new(size); }
void* operator new(std::size_t size, std::align_val_t align) { return counted_new(size, align); }
void* operator new[](std::size_t size, std::align_val_t align) { return counted_new(size, align); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace rlx {

long test::num_allocations() { return counted_allocations; }

namespace {

// Ten runs of each sort, behind some that make what later ones use.
void expect_no_allocations(const Session& session) {
  Graph g("steps");
  Expr x = g.input("x", test::f32({4, 8})), total = g.state("total", Tensor::zeros(test::f32({4, 8})));
  g.set_state("total", total + x);
  g.set_outputs({total * 2.0, g.tanh(x + g.param("w", test::f32({8})))});
  CompiledGraph f = session.compile(std::move(g));
  REQUIRE(test::host_part(f).empty());
  f.set_param("w", std::vector<float>(8, 1));
  std::vector<float> in(32, 1), a(32), b(32);
  const TensorView views[] = {{in.data(), DType::F32, {}, 128}};
  const MutableTensorView outs[] = {{a.data(), DType::F32, {}, 128}, {b.data(), DType::F32, {}, 128}};
  for (int i = 0; i < 3; ++i) f.run_into(views, outs);
  const long before = counted_allocations;
  for (int i = 0; i < 10; ++i) f.run_into(views, outs);
  CHECK(counted_allocations - before == 0);
  CHECK(a[5] == 24);
  for (int i = 0; i < 3; ++i) (void)f.run_slots(views);
  const long slots = counted_allocations;
  for (int i = 0; i < 10; ++i) (void)f.run_slots(views);
  CHECK(counted_allocations - slots == 0);
}

}  // namespace

TEST_CASE("device: runs allocate nothing from the second on") {
  if (!test::device_here()) return;
  if (test::generated_kernels_here()) return expect_no_allocations(Session(test::test_device()));
  if (test::test_device() != Device::Tpu) return;
  const std::string path = test::build_path("tests/counted_pjrt.so");
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE_MESSAGE(library, ::dlerror());
  void* const inside = ::dlsym(library, "counted_pjrt_is_inside");
  REQUIRE(inside);
  const Session session(Device::Tpu, {{"plugin", path}});
  is_ours = true;
  is_inside = reinterpret_cast<bool (*)()>(inside);
  expect_no_allocations(session);
  const long before = counted_allocations;
  ::operator delete(::operator new(1));  // the count counts
  CHECK(counted_allocations - before == 1);
  is_inside = nullptr;
  is_ours = false;
}

}  // namespace rlx
