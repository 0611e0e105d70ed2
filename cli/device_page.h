// docs/devices.md: which op runs in which dtype on which device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/device/device.h"
#include "rlx/ir/graph.h"
#include "rlx/testing/op_samples.h"

namespace rlx::cli {

/// The sample as a graph whose data have dtype `t`. None if the op does not take `t`; `refusal` gets the error.
std::optional<Graph> sample_in_dtype(const testing::Sample& sample, DType t, std::string* refusal = nullptr);
/// The devices of one backend. They have the same kernels.
struct DeviceColumn {
  std::vector<Device> devices;
  std::string names() const;
};
std::vector<DeviceColumn> device_columns();

/// The page. The compiler legalizes every op sample in every dtype for every device.
std::string devices_page();

}  // namespace rlx::cli
