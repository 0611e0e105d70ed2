// The adversarial test device as a shared library, for tests in Python: rlx.load_plugin(path) serves the device
// "directx" with it. It holds an rlx of its own, of which nothing but the table is seen outside.
#include "tests/adversarial/adversarial_plugin.h"

extern "C" __attribute__((visibility("default"))) const rlx_plugin* rlx_plugin_entry(std::uint32_t major,
                                                                                      std::uint32_t minor) {
  (void)major, (void)minor;
  static const auto control = [] {
    rlx::test::AdversarialOptions options;
    options.opaque = true;
    return rlx::test::adversarial_plugin(options);
  }();
  return rlx::test::adversarial_plugin_table();
}
