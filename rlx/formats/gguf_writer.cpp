// The GGUF writer. It builds the header in memory, since offsets are known only after all sizes.
#include "rlx/formats/gguf_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "rlx/base/output_file.h"
#include "rlx/base/sigbus_guard.h"
#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/gguf_reader.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

template <class T>
void put_number(std::string& out, T v) {
  char bytes[sizeof v];
  std::memcpy(bytes, &v, sizeof v);
  out.append(bytes, sizeof v);
}
void put_gguf_string(std::string& out, std::string_view text) {
  put_number(out, static_cast<std::uint64_t>(text.size()));
  out.append(text);
}
std::size_t padding(std::size_t at, std::size_t alignment) { return (alignment - at % alignment) % alignment; }

[[noreturn]] void refuse_gguf(const std::string& message, std::string hint = {}) {
  throw Error(ErrorCode::InvalidArgument, message, std::move(hint));
}

// Appends `v` as a number of an integer kind.
void put_int(std::string& out, std::string_view key, GgufKind kind, std::int64_t v) {
  const auto put = [&]<class T>(T) {
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      if (v < 0) refuse_gguf(concat_text("key \"", key, "\": ", v, " does not fit in ", gguf_kind_name(kind)));
    } else if (static_cast<std::int64_t>(static_cast<T>(v)) != v) {
      refuse_gguf(concat_text("key \"", key, "\": ", v, " does not fit in ", gguf_kind_name(kind)));
    }
    put_number(out, static_cast<T>(v));
  };
  switch (kind) {
    case GgufKind::U8: return put(std::uint8_t{});
    case GgufKind::I8: return put(std::int8_t{});
    case GgufKind::U16: return put(std::uint16_t{});
    case GgufKind::I16: return put(std::int16_t{});
    case GgufKind::U32: return put(std::uint32_t{});
    case GgufKind::I32: return put(std::int32_t{});
    case GgufKind::U64: return put(std::uint64_t{});
    case GgufKind::I64: return put(std::int64_t{});
    default: break;
  }
  refuse_gguf(concat_text("key \"", key, "\": an integer cannot be written as ", gguf_kind_name(kind)),
              "use set_number, set_bool or set_string");
}

}  // namespace

std::size_t gguf_size_bytes(GgufType type, std::span<const std::int64_t> dims) {
  const GgufTypeInfo& info = gguf_type_info(type);
  std::int64_t rows = 1, size = 0;
  const std::int64_t row = dims.empty() ? 1 : dims.back();
  for (const std::int64_t d : dims)
    if (d < 0) refuse_gguf(concat_text("a tensor has the negative dimension ", d, ": ", dims_text(dims)));
  if (row % info.elements != 0)
    refuse_gguf(concat_text("a row has ", row, " elements, which is not a multiple of ", info.elements,
                            ", the block size of ", info.name),
                "use another type for this tensor: Q8_0 has blocks of 32 elements, F16 has no blocks");
  bool too_large = false;
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) too_large |= __builtin_mul_overflow(rows, dims[i], &rows);
  too_large |= __builtin_mul_overflow(row / info.elements, std::int64_t{info.bytes}, &size);
  too_large |= __builtin_mul_overflow(rows, size, &size);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  if (too_large || size >= kMaxElements)
    refuse_gguf(concat_text("a tensor ", dims_text(dims), " has more bytes than any file can hold"));
  return static_cast<std::size_t>(size);
}

struct GgufWriter::Impl {
  std::string path;
  Options options;
  std::string metadata, records;
  std::uint64_t num_values = 0;
  bool has_own_values = false;  // those of the options are set, and the user's follow
  std::set<std::string, std::less<>> keys, names;
  std::vector<OutputFile::Extent> tensors;
  std::optional<OutputFile> file;
  std::size_t next = 0, done = 0;  // the current tensor, and its bytes written
  std::size_t data_end = 0;

  void require_open(std::string_view what) const {
    if (file) refuse_gguf(concat_text(path, ": ", what, " must be called before begin()"));
  }
  // Starts a value. The caller appends its payload.
  std::string& value(std::string_view key, GgufKind kind) {
    require_open("metadata");
    if (key.empty() || key.size() > 65535 || find_invalid_utf8(key))
      refuse_gguf(concat_text(path, ": a metadata key must be 1 to 65535 bytes of UTF-8, got \"", key, "\""));
    if (key == "general.alignment" && has_own_values)  // readers would look for the tensors elsewhere
      refuse_gguf(
          concat_text(path, ": the key \"", key, "\" is written by itself: set GgufWriter::Options::alignment"));
    if (!keys.emplace(key).second) refuse_gguf(concat_text(path, ": the key \"", key, "\" is given twice"));
    put_gguf_string(metadata, key);
    put_number(metadata, static_cast<std::uint32_t>(kind));
    ++num_values;
    return metadata;
  }
  std::string& array(std::string_view key, GgufKind kind, std::size_t count) {
    std::string& out = value(key, GgufKind::Array);
    put_number(out, static_cast<std::uint32_t>(kind));
    put_number(out, static_cast<std::uint64_t>(count));
    return out;
  }
  std::string head() const {
    std::string out = "GGUF";
    put_number(out, std::uint32_t{3});
    put_number(out, static_cast<std::uint64_t>(tensors.size()));
    put_number(out, num_values);
    out += metadata;
    out += records;
    out.append(padding(out.size(), options.alignment), '\0');
    return out;
  }
  // Writes zeros from the end of a tensor to the next tensor that has bytes.
  void pad_after(std::size_t tensor) {
    if (next < tensors.size())
      file->write(std::string(tensors[next].offset - tensors[tensor].offset - tensors[tensor].size, '\0'));
  }
  void skip_empty() {
    while (next < tensors.size() && tensors[next].size == 0) ++next;
  }
};

GgufWriter::GgufWriter(std::string path, Options options) : impl_(new Impl) {
  if (!std::has_single_bit(options.alignment) || options.alignment > (std::size_t{1} << 31))
    refuse_gguf(concat_text(path, ": the alignment ", options.alignment, " is not a power of two up to 2^31"));
  impl_->path = std::move(path);
  impl_->options = std::move(options);
  if (impl_->options.alignment != 32)
    set_int("general.alignment", GgufKind::U32, static_cast<std::int64_t>(impl_->options.alignment));
  impl_->has_own_values = true;
}
GgufWriter::~GgufWriter() = default;

void GgufWriter::set_bool(std::string_view key, bool v) { impl_->value(key, GgufKind::Bool) += v ? '\1' : '\0'; }
void GgufWriter::set_int(std::string_view key, GgufKind kind, std::int64_t v) {
  std::string bytes;
  put_int(bytes, key, kind, v);
  impl_->value(key, kind) += bytes;
}
void GgufWriter::set_number(std::string_view key, GgufKind kind, double v) {
  if (kind != GgufKind::F32 && kind != GgufKind::F64)
    refuse_gguf(concat_text("key \"", key, "\": a float must be written as f32 or f64, not ", gguf_kind_name(kind)));
  std::string& out = impl_->value(key, kind);
  if (kind == GgufKind::F32)
    put_number(out, static_cast<float>(v));
  else
    put_number(out, v);
}
void GgufWriter::set_string(std::string_view key, std::string_view v) {
  put_gguf_string(impl_->value(key, GgufKind::String), v);
}
void GgufWriter::set_strings(std::string_view key, std::span<const std::string> v) {
  std::string& out = impl_->array(key, GgufKind::String, v.size());
  for (const std::string& s : v) put_gguf_string(out, s);
}
void GgufWriter::set_ints(std::string_view key, GgufKind kind, std::span<const std::int64_t> v) {
  std::string bytes;
  for (const std::int64_t i : v) put_int(bytes, key, kind, i);
  if (v.empty()) put_int(bytes, key, kind, 0), bytes.clear();  // checks the kind
  impl_->array(key, kind, v.size()) += bytes;
}
void GgufWriter::set_floats(std::string_view key, std::span<const float> v) {
  std::string& out = impl_->array(key, GgufKind::F32, v.size());
  if (!v.empty()) out.append(reinterpret_cast<const char*>(v.data()), v.size_bytes());
}
void GgufWriter::copy(const GgufValue& v) {
  if (v.raw().empty()) refuse_gguf("cannot copy a value that belongs to no file");
  impl_->value(v.key(), v.kind()).append(reinterpret_cast<const char*>(v.raw().data()), v.raw().size());
}
bool GgufWriter::has(std::string_view key) const { return impl_->keys.find(key) != impl_->keys.end(); }

void GgufWriter::add_tensor(std::string_view name, GgufType type, std::span<const std::int64_t> dims) {
  Impl& w = *impl_;
  w.require_open("a tensor");
  if (name.empty() || find_invalid_utf8(name))
    refuse_gguf(concat_text(w.path, ": a tensor name must be UTF-8 and not empty, got \"", name, "\""));
  if (w.names.find(name) != w.names.end())
    refuse_gguf(concat_text(w.path, ": the tensor \"", name, "\" is given twice"));
  if (dims.size() > 4)
    refuse_gguf(concat_text(w.path, ": tensor \"", name, "\" has ", dims.size(), " dimensions; GGUF allows at most 4"));
  std::size_t size = 0;
  try {
    size = gguf_size_bytes(type, dims);
  } catch (const Error& e) {
    Diagnostic d = e.diagnostic();
    d.message = concat_text(w.path, ": tensor \"", name, "\": ", d.message);
    throw Error(std::move(d));
  }
  const std::size_t offset = w.data_end + padding(w.data_end, w.options.alignment);
  put_gguf_string(w.records, name);
  put_number(w.records, static_cast<std::uint32_t>(dims.size()));
  for (auto d = dims.rbegin(); d != dims.rend(); ++d) put_number(w.records, static_cast<std::uint64_t>(*d));
  put_number(w.records, static_cast<std::uint32_t>(type));
  put_number(w.records, static_cast<std::uint64_t>(offset));
  w.names.emplace(name);
  w.tensors.push_back({offset, size});
  w.data_end = offset + size;
}

std::size_t GgufWriter::begin() try {
  Impl& w = *impl_;
  w.require_open("begin()");
  const std::string head = w.head();
  if (w.options.resume_key.empty()) {
    w.file.emplace(w.path);
  } else {
    w.file.emplace(w.path, w.options.resume_key);
    w.next = w.file->keep_whole(head, w.tensors);
    if (const std::size_t kept = w.next; kept > 0) {
      w.skip_empty();
      w.pad_after(kept - 1);
      return w.next;
    }
  }
  w.file->write(head);
  w.skip_empty();
  return 0;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("GgufWriter::begin");
}

void GgufWriter::write(std::span<const std::byte> bytes) try {
  Impl& w = *impl_;
  if (!w.file) refuse_gguf(concat_text(w.path, ": tensor bytes must be written after begin()"));
  const GuardedReads reads;
  const void* const all = bytes.data();
  while (!bytes.empty()) {
    if (w.next == w.tensors.size())
      refuse_gguf(concat_text(w.path, ": ", bytes.size(), " bytes were written after the last tensor"));
    const std::size_t current = w.next, size = w.tensors[current].size, now = std::min(bytes.size(), size - w.done);
    w.file->write({reinterpret_cast<const char*>(bytes.data()), now});
    bytes = bytes.subspan(now);
    reads.check(all);
    w.done += now;
    if (w.done < size) return;
    w.done = 0;
    ++w.next;
    w.skip_empty();
    w.pad_after(current);
  }
} catch (const std::bad_alloc&) {
  throw_out_of_memory("GgufWriter::write");
}

void GgufWriter::commit() {
  Impl& w = *impl_;
  if (!w.file) refuse_gguf(concat_text(w.path, ": commit() must be called after begin()"));
  if (w.next < w.tensors.size())
    refuse_gguf(concat_text(w.path, ": ", w.tensors.size() - w.next, " of ", w.tensors.size(),
                            " tensors have not been written"));
  std::size_t end = 0;  // end of the last tensor with bytes
  for (const OutputFile::Extent& t : w.tensors)
    if (t.size > 0) end = t.offset + t.size;
  w.file->write(std::string(w.data_end + padding(w.data_end, w.options.alignment) - end, '\0'));
  w.file->commit();
}

std::size_t GgufWriter::data_size_bytes() const {
  std::size_t sum = 0;
  for (const OutputFile::Extent& t : impl_->tensors) sum += t.size;
  return sum;
}

}  // namespace rlx
