// Graphs that one kernel has to do, as it is written for hardware and for rasterisers.
#pragma once

#include <string>

#include "rlx/ir/ops/linalg.h"
#include "rlx/runtime/session.h"

namespace rlx::test {

/// Matmul of rows [M, K] with w [K, N], and with w [N, K].
inline ops::DotGeneral matmul_kn() { return {{1}, {0}, {}, {}}; }
inline ops::DotGeneral matmul_nk() { return {{1}, {1}, {}, {}}; }

/// Values for the inputs of `g`: those of `known` by name, for the others whole numbers from -3 to 3 or of all bytes,
/// or numbers around 0.
NamedTensors packed_values(const Graph& g, const NamedTensors& known = {});

/// The kernels of a run, one a line.
std::string kernels_of(CompiledGraph& f, const NamedTensors& values);

/// A run of `g` with the kernels for "software" or "hardware" is exact within its bounds, leaves nothing to the host
/// and uses a kernel with `name` in its own, and none with `never` (unless that is empty).
void expect_packed_layout(const Graph& g, const char* kernels, const std::string& name, const NamedTensors& known = {},
                          const std::string& never = {});
/// The same of both, or of what of them is dealt to this device.
void expect_packed_layouts(const Graph& g, const std::string& name, const NamedTensors& known = {},
                           const std::string& never = {});
void expect_packed_layouts_by(const Graph& g, const std::string& software, const std::string& hardware);

}  // namespace rlx::test
