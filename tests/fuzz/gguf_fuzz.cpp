// Fuzz target: any bytes as a GGUF file; only rlx::Error may come out, and every value and byte of what is accepted is
// readable.
#include <cstddef>
#include <cstdint>

#include "rlx/error.h"
#include "rlx/formats/gguf.h"

namespace {

void read_value(const rlx::GgufValue& v) {
  std::size_t sum = v.raw().size();
  if (v.is_string()) {
    for (const char c : v.as_string()) sum += static_cast<unsigned char>(c);
  } else if (v.is_array()) {
    const std::vector<rlx::GgufValue> elements = v.elements();
    rlx::check(elements.size() == v.size(), "an array has the elements it counts");
    for (const rlx::GgufValue& e : elements) read_value(e);
    if (v.element_kind() == rlx::GgufKind::String)
      rlx::check(v.strings().size() == v.size(), "an array of strings has the strings it counts");
  } else if (v.kind() == rlx::GgufKind::Bool) {
    sum += v.as_bool();
  } else {
    sum += v.as_number() == 0;
  }
  rlx::check(sum > 0, "no value is without bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto file = rlx::GgufFile::from_bytes(std::as_bytes(std::span(data, size)), "fuzz");
    for (const rlx::GgufValue& v : file->metadata()) read_value(*file->find_value(v.key()));
    std::size_t total = 0;
    for (const std::string& name : file->names()) {
      const rlx::Tensor t = rlx::GgufFile::tensor(file, name);
      const rlx::GgufTensor& record = file->at(name);
      rlx::check(t.size_bytes() == record.bytes.size(), "the tensor has the size of its bytes");
      total += t.size_bytes();
      if (t.size_bytes() > 0) (void)rlx::Tensor::copy_of(t.data(), t.shape());
      if (!record.info().dtype) (void)file->decoded(name);
    }
    rlx::check(total == file->data_size_bytes() && total <= size, "tensors do not overlap");
  } catch (const rlx::Error& e) {
    if (e.code() == rlx::ErrorCode::Internal) throw;
  }
  return 0;
}
