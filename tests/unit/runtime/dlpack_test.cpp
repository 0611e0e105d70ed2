// DLPack: tensors from and to other libraries share bytes and count owners, and unreadable ones are refused by name.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "rlx/runtime/dlpack.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

// A tensor that another library owns.
struct Foreign {
  std::vector<float> values;
  std::vector<std::int64_t> dims, strides;
  dlpack::Managed managed{};
  int deleted = 0;

  Foreign(std::vector<std::int64_t> d, std::vector<std::int64_t> s, std::size_t count) : dims(d), strides(s) {
    for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
    managed.version = {1, 0};
    managed.manager_ctx = this;
    managed.deleter = [](dlpack::Managed* m) { ++static_cast<Foreign*>(m->manager_ctx)->deleted; };
    managed.tensor = {values.data(),
                      {dlpack::DeviceType::Cpu, 0},
                      static_cast<std::int32_t>(dims.size()),
                      {dlpack::Code::Float, 32, 1},
                      dims.data(),
                      strides.empty() ? nullptr : strides.data(),
                      0};
  }
};

}  // namespace

TEST_CASE("dlpack: dense bytes are shared, and the deleter is called with the last holder") {
  Foreign f({2, 3}, {}, 6);
  {
    Tensor t = adopt(&f.managed);
    CHECK(t.data() == reinterpret_cast<const std::byte*>(f.values.data()));
    Tensor other = t;
    t.mutable_data()[0] = std::byte{1};  // copies, because bytes of other libraries are never written
    CHECK(f.values[0] == 0);
    t = Tensor();
    CHECK(f.deleted == 0);
    CHECK(other.at(5) == 5);
  }
  CHECK(f.deleted == 1);
  // A dimension of extent 1 may have any stride.
  Foreign g({1, 3}, {77, 1}, 3);
  CHECK(adopt(&g.managed).data() == reinterpret_cast<const std::byte*>(g.values.data()));
  CHECK(g.deleted == 1);
}

TEST_CASE("dlpack: strides, an offset, bytes off their alignment and no bytes at all are copied") {
  Foreign transposed({3, 2}, {1, 3}, 6);
  const Tensor t = adopt(&transposed.managed);
  CHECK(transposed.deleted == 1);
  CHECK(t.to_f32() == std::vector<float>{0, 3, 1, 4, 2, 5});
  Foreign backwards({3}, {-1}, 3);
  backwards.managed.tensor.byte_offset = 8;
  CHECK(adopt(&backwards.managed).to_f32() == std::vector<float>{2, 1, 0});
  Foreign repeated({2, 2}, {0, 1}, 2);
  CHECK(adopt(&repeated.managed).to_f32() == std::vector<float>{0, 1, 0, 1});
  Foreign offset({2}, {}, 4);
  offset.managed.tensor.byte_offset = 8;
  CHECK(adopt(&offset.managed).to_f32() == std::vector<float>{2, 3});
  Foreign odd({2}, {}, 4);
  std::vector<std::byte> bytes(9);
  std::memcpy(bytes.data() + 1, odd.values.data(), 8);
  odd.managed.tensor.data = bytes.data() + 1;
  CHECK(adopt(&odd.managed).to_f32() == std::vector<float>{0, 1});
  CHECK(odd.deleted == 1);
  Foreign none({0, 4}, {}, 0);
  none.managed.tensor.data = nullptr;
  CHECK(adopt(&none.managed).num_elements() == 0);
  CHECK(none.deleted == 1);
}

TEST_CASE("dlpack: what cannot be taken is refused by name, and stays the caller's") {
  const auto refused = [](auto change, const std::string& text) {
    Foreign f({2, 3}, {}, 6);
    change(f.managed);
    const std::string got = error_text([&] { (void)adopt(&f.managed); });
    CHECK_MESSAGE(contains(got, text), got);
    CHECK(f.deleted == 0);
  };
  using dlpack::Managed;
  CHECK(contains(error_text([] { (void)adopt(nullptr); }), "no DLPack tensor was given"));
  refused([](Managed& m) { m.version.major = 2; }, "has version 2.0, but this rlx reads 1.x");
  refused([](Managed& m) { m.tensor.dtype.lanes = 4; }, "has elements with 4 lanes");
  refused([](Managed& m) { m.tensor.dtype.bits = 24; }, "has elements of type code 2 with 24 bits");
  refused([](Managed& m) { m.tensor.dtype.code = dlpack::Code::OpaqueHandle; }, "which no rlx dtype matches");
  refused(
      [](Managed& m) {
        m.tensor.dtype = {dlpack::Code::Int, 4, 1};
        m.flags = dlpack::kSubBytePadded;
      },
      "pads each i4 to a byte");
  refused([](Managed& m) { m.tensor.ndim = -1; }, "of -1 dimensions has no shape");
  refused([](Managed& m) { m.tensor.shape = nullptr; }, "has no shape");
  refused([](Managed& m) { m.tensor.shape[1] = -3; }, "has -3 elements along axis 1");
  refused([](Managed& m) { m.tensor.data = nullptr; }, "has no data");
  refused([](Managed& m) { m.tensor.device.type = dlpack::DeviceType::Hexagon; }, "lies on a device of type 16");
  refused([](Managed& m) { m.tensor.device.type = dlpack::DeviceType::Rocm; }, "ROCm is not available");
  CHECK(contains(error_text([] { (void)to_dlpack(Tensor()); }), "to_dlpack: an empty tensor"));
}

TEST_CASE("dlpack: every dtype goes out and comes back, sharing the bytes") {
  for (int i = 0; i < kNumDTypes; ++i) {
    const Tensor t = Tensor::zeros(Shape({3, 4}, static_cast<DType>(i)));
    dlpack::Managed* m = to_dlpack(t);
    CHECK(m->flags == dlpack::kReadOnly);
    CHECK(m->tensor.strides[0] == 4);
    const Tensor back = adopt(m);
    CHECK(back.shape() == t.shape());
    CHECK(back.data() == t.data());
  }
  // A result outlives the tensor that was exported.
  dlpack::Managed* m = to_dlpack(Tensor::full(Shape({2}, DType::F32), 3));
  CHECK(static_cast<const float*>(m->tensor.data)[1] == 3);
  m->deleter(m);
}

}  // namespace rlx
