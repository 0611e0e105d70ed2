// Prints the memory report: one line per device.
#include "cli/memory_report.h"

#include <cstdio>
#include <string>

#include "rlx/device/device.h"
#include "rlx/device/registry.h"
#include "rlx/ir/inspect.h"

namespace rlx::cli {

void report_memory(const OpenDevice& device, std::size_t host_weights) {
  DeviceMemory memory = device.memory();
  if (device.memory_model() == MemoryModel::Host)
    memory.in_use[static_cast<std::size_t>(BufferUse::Weights)] += host_weights;
  std::string line = concat_text("memory of ", device_text(device.id()), ": ", bytes_text(memory.used()));
  if (memory.total != 0) line += concat_text(" of ", bytes_text(memory.total));
  for (int i = 0; i < kNumBufferUses; ++i)
    line += concat_text(i ? ", " : ": ", buffer_use_name(static_cast<BufferUse>(i)), " ",
                        bytes_text(memory.in_use[static_cast<std::size_t>(i)]));
  std::fprintf(stderr, "%s\n", line.c_str());
}

void report_memory(Device kind, std::size_t host_weights) {
  for (const std::shared_ptr<OpenDevice>& device : opened_devices(kind)) report_memory(*device, host_weights);
}

}  // namespace rlx::cli
