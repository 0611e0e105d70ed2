// Fuzz target: any bytes as a safetensors file; only rlx::Error may come out, and every byte of what is accepted is
// readable.
#include <cstddef>
#include <cstdint>

#include "rlx/error.h"
#include "rlx/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto file = rlx::SafetensorsFile::from_bytes(std::as_bytes(std::span(data, size)), "fuzz");
    std::size_t total = 0;
    for (const std::string& name : file->names()) {
      const rlx::Tensor t = rlx::SafetensorsFile::tensor(file, name);
      rlx::check(t.size_bytes() == file->at(name).size_bytes, "the tensor has the size of its view");
      total += t.size_bytes();
      if (t.size_bytes() > 0) (void)rlx::Tensor::copy_of(t.data(), t.shape());
    }
    rlx::check(total == file->data_size_bytes(), "the tensors cover the data");
  } catch (const rlx::Error& e) {
    if (e.code() == rlx::ErrorCode::Internal) throw;
  }
  return 0;
}
