// Fuzz target: any bytes as a gzip file, as they are and behind a whole header, so that they reach the inflater.
#include <cstdint>
#include <string>
#include <string_view>

#include "rlx/error.h"
#include "rlx/formats/gzip.h"

namespace {

void run(const std::string& bytes) {
  try {
    rlx::gunzip(bytes, "fuzz");
  } catch (const rlx::Error& e) {
    if (e.code() != rlx::ErrorCode::BadFile) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) size = 4096;  // a byte inflates to up to a thousand
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  run(bytes);
  run(std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + bytes);
  return 0;
}
