// Internal: reads and checks the header of one GGUF file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/base/work_budget.h"
#include "rlx/formats/gguf.h"

namespace rlx {

/// The number at `p`, aligned or not.
template <class T>
T load_gguf(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
/// Bytes of one value of fixed size; 0 for strings and arrays.
std::size_t gguf_kind_bytes(GgufKind kind);
/// Bytes of the value at `p`. The value must have been checked.
std::size_t gguf_value_bytes(GgufKind kind, const std::byte* p);

/// Reads the header of a part: metadata into the part, tensor records into the file.
class GgufReader {
 public:
  GgufReader(GgufFile& file, std::uint32_t part);
  /// Errors: as GgufFile::open.
  void read();

 private:
  template <class T>
  T take(std::string_view what);
  std::string_view take_string(std::string_view what);
  GgufKind take_kind(std::string_view what);
  void take_value(GgufKind kind, GgufValue& value, int depth);
  void skip_array(GgufValue& value, int depth);
  void read_version();
  void read_metadata(std::uint64_t count);
  void read_tensor();
  void check_layout(std::size_t first) const;
  std::uint64_t count_of(std::string_view what, std::size_t least_bytes);
  std::size_t left() const { return bytes_.size() - at_; }
  void spend(std::uint64_t steps, std::string_view what);
  [[noreturn]] void fail(const std::string& message, std::string hint = {}) const;

  GgufFile& file_;
  GgufFile::Part& part_;
  std::uint32_t index_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  WorkBudget budget_{std::uint64_t{1} << 28, 0};  // a sparse file has bytes for any count
};

}  // namespace rlx
