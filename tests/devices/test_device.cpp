// The device under test, from the environment.
#include "tests/devices/test_device.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "rlx/device/device.h"
#include "rlx/device/registry.h"
#include "rlx/runtime/device_ext.h"
#include "tests/support/needs.h"

namespace rlx::test {

Device test_device() {
  const char* name = std::getenv("RLX_TEST_DEVICE");
  const auto device = parse_device(name ? name : "vulkan");
  if (!device) throw Error(ErrorCode::InvalidArgument, concat_text("RLX_TEST_DEVICE = ", name, " is no device"));
  return *device;
}

std::string test_device_name() { return std::string(device_info(test_device()).id); }

bool device_here() {
  const std::string reason = unavailable_reason(test_device());
  if (reason.empty()) {
    // Open from test to test: else each program would open it again and compile its pipelines anew.
    static const std::shared_ptr<OpenDevice> kept = Session(test_device()).open_device();
    return kept != nullptr;
  }
  const char* list = std::getenv("RLX_REQUIRE_DEVICES");
  const std::string required = concat_text(",", list ? list : "", ",");
  if (required.find("," + test_device_name() + ",") != std::string::npos)
    FAIL_CHECK("device " << test_device_name() << " has to be here, but: " << reason);
  else
    skip(concat_text("device ", test_device_name(), ": ", reason));
  return false;
}

bool generated_kernels_here() { return device_here() && backend_for(test_device())->name() == "wgpu"; }

bool tpu_here() { return test_device() == Device::Tpu && device_here(); }

std::string host_part(const KernelDispatchReport& dispatch) {
  std::string text;
  for (const KindDispatch& k : dispatch.summaries)
    if (k.path == DispatchPath::HostFallback) text += concat_text(k.name, ": ", k.why, "\n");
  return text;
}

bool in_share(std::size_t number) {
  const char* text = std::getenv("RLX_TEST_SHARE");
  if (!text) return true;
  unsigned k = 0, n = 1;
  if (std::sscanf(text, "%u/%u", &k, &n) != 2 || n == 0)
    throw Error(ErrorCode::InvalidArgument, concat_text("RLX_TEST_SHARE = ", text, " is not k/n"));
  return number % n == k % n;
}

bool takes_all_cases() { return std::getenv("RLX_TEST_SHARE") == nullptr; }

bool is_dealt_here(std::size_t number) {
  if (takes_all_cases()) return true;
  constexpr Device hands[] = {Device::Vulkan, Device::OpenGl, Device::WebGpu};
  const Device here = test_device();
  return here == hands[number % std::size(hands)] || std::find(hands, std::end(hands), here) == std::end(hands);
}

}  // namespace rlx::test
