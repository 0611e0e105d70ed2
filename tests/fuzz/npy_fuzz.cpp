// Fuzz target: any bytes as an npy and as an npz file; what is accepted must survive being written and read again.
#include <cstddef>
#include <cstdint>
#include <span>

#include "rlx/error.h"
#include "rlx/formats/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    const rlx::Tensor t = rlx::parse_npy(bytes, "fuzz");
    const std::string again = rlx::npy_bytes(t);
    rlx::check(rlx::parse_npy(std::as_bytes(std::span(again.data(), again.size())), "again").identical(t),
               "npy survives a round trip");
  } catch (const rlx::Error& e) {
    if (e.code() == rlx::ErrorCode::Internal) throw;
  }
  try {
    (void)rlx::parse_npz(bytes, "fuzz");
  } catch (const rlx::Error& e) {
    if (e.code() == rlx::ErrorCode::Internal) throw;
  }
  return 0;
}
