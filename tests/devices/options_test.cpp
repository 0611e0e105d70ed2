// Sessions with options of the device's backend: what they decide at open is another opening of the device.
#include <doctest/doctest.h>

#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/session.h"
#include "tests/devices/test_device.h"
#include "tests/support/error_text.h"

namespace rlx {
namespace {

Graph twice() {
  Graph g("twice");
  const Expr x = g.input("x", Shape({4}, DType::F32));
  g.set_outputs({g.add(x, x)});
  return g;
}

TEST_CASE("device: tensors go to a device as a session has opened it") {
  if (!test::device_here()) return;
  const DeviceId id = test::test_device();
  if (id.kind == Device::Tpu) return;  // wgpu's option
  const Session usual(id), small(id, {{"memory", "1000000"}});
  REQUIRE(usual.open_device() != small.open_device());
  CompiledGraph f = small.compile(twice());
  const Tensor x = to(Tensor::full(Shape({4}, DType::F32), 3), id);
  REQUIRE(x.buffer()->opened() == usual.open_device().get());
  const std::string text = test::error_text([&] { (void)f.run_device({{"x", x}}); });
  CHECK_MESSAGE(test::contains(text, "other options"), text);
  CHECK_MESSAGE(test::contains(text, "rlx::to(tensor, *session.open_device())"), text);
  const Tensor there = to(x, *small.open_device());
  CHECK(there.buffer()->opened() == small.open_device().get());
  CHECK(to(there, *small.open_device()).buffer() == there.buffer());
  CHECK(f.run_device({{"x", there}})[0].to_host().at(2) == 6);
  CHECK_THROWS_AS((void)to(Tensor(), *small.open_device()), Error);
}

TEST_CASE("device: options that a backend does not take, or no value of one") {
  if (!test::device_here()) return;
  const DeviceId id = test::test_device();
  const std::string text = test::error_text([&] { (void)Session(id, {{"memori", "1"}}); });
  CHECK_MESSAGE(test::contains(text, "takes no option 'memori'"), text);
  if (id.kind == Device::Tpu) return;
  for (const char* value : {"", "many", "-1", "1 MiB", "0"})
    CHECK_MESSAGE(test::contains(test::error_text([&] {
                                   (void)Session(id, {{"memory", value}});
                                 }),
                                 "option memory"),
                  value);
  CHECK(test::contains(test::error_text([&] { (void)Session(id, {{"kernels", "fast"}}); }), "hardware or software"));
}

}  // namespace
}  // namespace rlx
