// Exchanges device tensors with another library through DLPack: without a copy, with one owner, and with completed
// bytes.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "rlx/device/registry.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/dlpack.h"
#include "rlx/runtime/session.h"
#include "tests/adversarial/adversarial_device.h"
#include "tests/support/error_text.h"
#include "tests/support/shapes.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

// DLPack has no type for the device kind that the other tests use.
struct VulkanProof {
  VulkanProof() { register_backend(Device::Vulkan, test::adversarial_backend()); }
  VulkanProof(const VulkanProof&) = delete;
  VulkanProof& operator=(const VulkanProof&) = delete;
  ~VulkanProof() { register_backend(Device::Vulkan, nullptr); }
};

using test::f32;

}  // namespace

TEST_CASE("adversarial: a device tensor goes through DLPack and back without a copy") {
  const VulkanProof adversary;
  Graph g("twice");
  g.set_outputs({g.input("x", f32({4})) * 2.0});
  CompiledGraph f = Session(Device::Vulkan).compile(std::move(g));
  Tensor y = f.run_device({{"x", Tensor::full(f32({4}), 3)}})[0];
  const std::uintptr_t native = y.buffer()->native();
  dlpack::Managed* m = to_dlpack(y);  // waits for the run
  CHECK(m->tensor.device.type == dlpack::DeviceType::Vulkan);
  CHECK(reinterpret_cast<std::uintptr_t>(m->tensor.data) == native);
  Tensor back = adopt(m);
  y = Tensor();
  CHECK(back.device() == DeviceId(Device::Vulkan));
  CHECK(back.buffer()->native() == native);
  CHECK(f.run_device({{"x", back}})[0].to_host().to_f32() == std::vector<float>(4, 12));
  CHECK(back.to_host().to_f32() == std::vector<float>(4, 6));

  // Unknown memory, and tensors that are not dense.
  m = to_dlpack(back);
  void* const data = std::exchange(m->tensor.data, &m);
  CHECK(contains(error_text([&] { (void)adopt(m); }), "on vulkan cannot be shared"));
  m->tensor.data = data;
  m->tensor.strides[0] = 2;
  CHECK(contains(error_text([&] { (void)adopt(m); }), "on vulkan is not dense"));
  m->tensor.device.id = 5;
  m->tensor.strides[0] = 1;
  CHECK(contains(error_text([&] { (void)adopt(m); }), "there is no device vulkan:5"));
  m->deleter(m);
  CHECK(back.to_host().to_f32() == std::vector<float>(4, 6));
  const test::AdversarialScope other;
  CHECK(contains(error_text([&] { (void)to_dlpack(to(back.to_host(), test::AdversarialScope::kDevice)); }),
                 "a device without a DLPack type"));
}

}  // namespace rlx
