// docs/devices.md: which op runs in which dtype on which device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/device/device.h"
#include "rlx/ir/op_def.h"

namespace rlx::cli {

/// The sample as a graph with `t` in place of the dtype of its data; none when the op does not take `t`, which
/// `refusal` then says of where it does.
std::optional<Graph> sample_in_dtype(const Sample& sample, DType t, std::string* refusal = nullptr);
/// Devices of one backend: its rows answer alike for all of them.
struct DeviceColumn {
  std::vector<Device> devices;
  std::string names() const;
};
std::vector<DeviceColumn> device_columns();

/// The page: every op sample is tried in every dtype, and the compiler's own legalisation says what a device makes of
/// it.
std::string devices_page();

}  // namespace rlx::cli
