// The files in which a driver caches compiled kernels. rlx only checks whether the driver can write them safely.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rlx::wgpu {

/// The bytes that this process may still write to the disk of a folder, which need not exist yet. The largest number
/// where it is unknown.
std::uint64_t free_bytes(const std::string& folder);

/// The folder of Mesa's cache if its disk is so full that Mesa's next kernel would end the process by SIGBUS: Mesa
/// writes to a mapped file whose disk blocks are not allocated yet. Else "". `driver` is the adapter's.
std::string full_cache(std::string_view driver, std::uint64_t (*free)(const std::string& folder) = free_bytes);

}  // namespace rlx::wgpu
