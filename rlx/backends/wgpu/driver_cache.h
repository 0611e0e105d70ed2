// The files that a driver keeps of compiled kernels. They are its own; all that is asked of them is whether the driver
// survives them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rlx::wgpu {

/// Bytes that this process may still write to the disk of a folder, which need not be there yet; the most there are
/// where nobody can tell.
std::uint64_t free_bytes(const std::string& folder);

/// The folder of Mesa's cache where its disk is so full that Mesa's next kernel ends the process by SIGBUS: it writes
/// to a mapped file whose bytes the disk has not given it yet. Else "". `driver` is the adapter's.
std::string full_cache(std::string_view driver, std::uint64_t (*free)(const std::string& folder) = free_bytes);

}  // namespace rlx::wgpu
