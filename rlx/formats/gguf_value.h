// Metadata of GGUF files: typed values in the mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// Type of a metadata value. The values are those of the format.
enum class GgufKind : std::uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };

/// "u32", "string", ...; for messages. Errors: InvalidArgument for a number that is not an enumerator.
std::string_view gguf_kind_name(GgufKind kind);

/// A metadata value inside a GgufFile, valid as long as the file lives. It copies nothing. A failed access throws
/// Error{BadFile} that names the file, the key and the expected kind.
class GgufValue {
 public:
  GgufKind kind() const { return kind_; }
  bool is_array() const { return kind_ == GgufKind::Array; }
  bool is_string() const { return kind_ == GgufKind::String; }
  std::string_view key() const { return key_; }

  bool as_bool() const;
  /// A value of any integer kind. A value outside signed 64 bits is an error.
  std::int64_t as_int() const;
  /// A value of any integer or float kind.
  double as_number() const;
  std::string_view as_string() const;

  /// Kind of the elements of an array; an error for another kind of value.
  GgufKind element_kind() const;
  /// Number of elements of an array; an error for another kind of value.
  std::size_t size() const;
  /// All strings of an array of strings, in one pass over the file's bytes.
  std::vector<std::string_view> strings() const;
  /// All elements of an array of integers or bools.
  std::vector<std::int64_t> ints() const;
  /// All elements of an array of floats or integers, rounded to F32.
  std::vector<float> floats() const;
  /// All elements of any array as values.
  std::vector<GgufValue> elements() const;

  /// The value's bytes as in the file, without its kind; for writing the value again.
  std::span<const std::byte> raw() const { return raw_; }

 private:
  friend class GgufReader;
  [[noreturn]] void fail(std::string_view expected) const;
  template <class F>
  void each(F f) const;
  GgufKind kind_ = GgufKind::U8, element_ = GgufKind::U8;
  std::size_t count_ = 0;           // elements of an array
  std::span<const std::byte> raw_;  // an array's bytes begin with its kind and its count
  const std::string* source_ = nullptr;
  std::string_view key_;
};

}  // namespace rlx
