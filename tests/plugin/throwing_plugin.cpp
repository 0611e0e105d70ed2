// A library whose entry function lets an exception out.
#include <rlx/device/plugin.h>

#include <cstdint>
#include <stdexcept>

extern "C" const rlx_plugin* rlx_plugin_entry(std::uint32_t, std::uint32_t) {
  throw std::runtime_error("the license has run out");
}
