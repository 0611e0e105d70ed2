// The safetensors reader with its checks, and the writer.
#include "rlx/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/foreign_file.h"
#include "rlx/formats/json.h"
#include "rlx/formats/missing_tensor.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian and is used in place");

constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference reader

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr std::array kDTypeNames = {
    DTypeName{"BOOL", DType::Bool},      DTypeName{"I8", DType::I8},     DTypeName{"I16", DType::I16},
    DTypeName{"I32", DType::I32},        DTypeName{"I64", DType::I64},   DTypeName{"U8", DType::U8},
    DTypeName{"U16", DType::U16},        DTypeName{"U32", DType::U32},   DTypeName{"U64", DType::U64},
    DTypeName{"F16", DType::F16},        DTypeName{"BF16", DType::BF16}, DTypeName{"F32", DType::F32},
    DTypeName{"F64", DType::F64},        DTypeName{"C64", DType::C64},   DTypeName{"F8_E4M3", DType::F8E4M3},
    DTypeName{"F8_E5M2", DType::F8E5M2},
};

std::optional<DType> parse_name(std::string_view name) {
  for (const DTypeName& n : kDTypeNames) {
    if (n.name == name) return n.dtype;
  }
  return std::nullopt;
}

// The dtype's name in the format; empty for dtypes the format lacks.
std::string_view name_of(DType dtype) {
  for (const DTypeName& n : kDTypeNames) {
    if (n.dtype == dtype) return n.name;
  }
  return {};
}

// The largest scalar of an element: a complex number is two floats.

}  // namespace

void SafetensorsFile::fail(const std::string& message, std::string hint) const {
  throw Error(ErrorCode::BadFile, concat_text(source_, ": ", message), std::move(hint));
}

std::shared_ptr<SafetensorsFile> SafetensorsFile::open(const std::string& path) try {
  std::shared_ptr<SafetensorsFile> file(new SafetensorsFile);
  file->file_ = MappedFile::open(path);
  file->source_ = path;
  file->bytes_ = file->file_.bytes();
  const GuardedReads reads;
  file->parse();
  reads.check(file->bytes_.data());
  return file;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SafetensorsFile::open");
}

std::shared_ptr<SafetensorsFile> SafetensorsFile::from_bytes(std::span<const std::byte> bytes, std::string source) try {
  std::shared_ptr<SafetensorsFile> file(new SafetensorsFile);
  file->source_ = std::move(source);
  file->bytes_ = bytes;
  file->parse();
  return file;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SafetensorsFile::from_bytes");
}

void SafetensorsFile::parse() {
  const std::string truncated = "the file is cut short or not a safetensors file; fetch it again";
  if (bytes_.size() < 8) {
    fail(concat_text("the file has ", bytes_.size(), " bytes, expected at least the 8 of the header's length"),
         truncated);
  }
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes_.data(), 8);
  if (header_size > kMaxHeaderBytes) {
    const std::string_view start(reinterpret_cast<const char*>(bytes_.data()),
                                 std::min<std::size_t>(bytes_.size(), 256));
    if (const auto foreign = foreign_file(start))
      fail(concat_text("this is ", foreign->what), std::string(foreign->hint));
    fail(
        concat_text("bytes 0 to 7 say that the header has ", header_size, " bytes, expected at most ", kMaxHeaderBytes),
        "this is not a safetensors file");
  }
  if (header_size > bytes_.size() - 8) {
    fail(concat_text("bytes 0 to 7 say that the header has ", header_size, " bytes, but only ", bytes_.size() - 8,
                     " follow"),
         truncated);
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes_.data()) + 8, header_size);
  if (header.empty() || header[0] != '{') {
    fail("the header at byte 8 does not start with '{'", "this is not a safetensors file");
  }
  data_ = bytes_.subspan(8 + header_size);

  const JsonDocument document = JsonDocument::parse(header, concat_text(source_, ": header (starts at byte 8)"));
  const auto members = document.root().members("header");
  entries_.reserve(members.size());
  for (const auto& [name, value] : members) {
    if (name == "__metadata__") {
      for (const auto& [key, text] : value.members(name)) metadata_.emplace_back(key, text.as_string(key));
    } else {
      parse_entry(name, value);
    }
  }
  by_name_.resize(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) by_name_[i] = static_cast<std::uint32_t>(i);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return entries_[a].name < entries_[b].name; });
  for (std::size_t i = 1; i < by_name_.size(); ++i) {
    if (entries_[by_name_[i - 1]].name == entries_[by_name_[i]].name) {
      fail(concat_text("tensor \"", entries_[by_name_[i]].name, "\" is listed twice in the header"));
    }
  }
  check_layout();
  for (Entry& e : entries_) check_values(e);
}

void SafetensorsFile::parse_entry(std::string_view name, const JsonValue& value) {
  const std::string label = concat_text("tensor \"", name, "\"");
  const auto member = [&](std::string_view key) {
    const std::optional<JsonValue> found = value.find(key);
    if (!found) fail(concat_text(label, ": the header lacks its \"", key, "\""));
    return *found;
  };
  const auto what = [&](std::string_view key) { return concat_text(key, "\" of ", label.substr(0, label.size() - 1)); };
  Entry e;
  e.name = name;
  const std::string_view dtype = member("dtype").as_string(what("dtype"));
  const std::optional<DType> known = parse_name(dtype);
  if (!known) {
    std::string names;
    for (const DTypeName& n : kDTypeNames) names += concat_text(names.empty() ? "" : ", ", n.name);
    throw Error(ErrorCode::Unsupported, concat_text(source_, ": ", label, " has the unknown dtype \"", dtype, "\""),
                concat_text("rlx reads ", names));
  }
  e.dtype = *known;
  std::int64_t count = 1;
  bool too_large = false;
  for (const JsonValue& dim : member("shape").elements(what("shape"))) {
    const std::int64_t d = dim.as_int(what("shape"));
    if (d < 0) fail(concat_text(label, " has the negative dimension ", d));
    e.dims.push_back(d);
    too_large |= __builtin_mul_overflow(count, d, &count);
  }
  constexpr std::size_t kMostDims = 64;  // as in NumPy
  if (e.dims.size() > kMostDims)
    fail(concat_text(label, " has ", e.dims.size(), " dimensions, expected at most ", kMostDims));
  // A zero dimension makes the tensor empty, whatever the product of the others.
  if (std::find(e.dims.begin(), e.dims.end(), 0) != e.dims.end()) {
    count = 0;
  } else if (too_large || count > (std::int64_t{1} << 56)) {
    fail(concat_text(label, " has more elements than any file can hold: shape ", dims_text(e.dims)));
  }
  const std::vector<JsonValue> offsets = member("data_offsets").elements(what("data_offsets"));
  if (offsets.size() != 2) fail(concat_text(label, ": \"data_offsets\" has ", offsets.size(), " values, expected 2"));
  const std::int64_t begin = offsets[0].as_int(what("data_offsets"));
  const std::int64_t end = offsets[1].as_int(what("data_offsets"));
  if (begin < 0 || end < begin) {
    fail(concat_text(label, ": \"data_offsets\" [", begin, ", ", end, "] must ascend from 0"));
  }
  if (static_cast<std::uint64_t>(end) > data_.size()) {
    fail(concat_text(label, " ends at byte ", static_cast<std::uint64_t>(end) + (bytes_.size() - data_.size()),
                     ", but the file has ", bytes_.size(), " bytes"),
         "the file is cut short; fetch it again");
  }
  const std::size_t expected = size_bytes(e.dtype, count);
  if (static_cast<std::size_t>(end - begin) != expected) {
    fail(concat_text(label, " of shape ", dims_text(e.dims), " and dtype ", dtype, " needs ", expected,
                     " bytes, but \"data_offsets\" [", begin, ", ", end, "] hold ", end - begin));
  }
  e.begin = static_cast<std::size_t>(begin);
  e.end = static_cast<std::size_t>(end);
  entries_.push_back(std::move(e));
}

// Checks that the tensors cover the data exactly once: a gap hides bytes, an overlap aliases them.
void SafetensorsFile::check_layout() const {
  std::vector<const Entry*> order;
  for (const Entry& e : entries_) order.push_back(&e);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  const std::size_t base = bytes_.size() - data_.size();
  std::size_t at = 0;
  const Entry* previous = nullptr;
  for (const Entry* e : order) {
    if (e->begin < at) {
      fail(concat_text("tensors \"", previous->name, "\" and \"", e->name, "\" overlap at byte ", base + e->begin,
                       ": the first ends at ", base + at));
    }
    if (e->begin > at) {
      fail(concat_text("bytes ", base + at, " to ", base + e->begin - 1, " before tensor \"", e->name,
                       "\" belong to no tensor"));
    }
    at = e->end;
    previous = e;
  }
  if (at != data_.size()) {
    fail(concat_text("the last ", data_.size() - at, " bytes (from byte ", base + at, ") belong to no tensor"),
         "the file was appended to, or its header is of another file");
  }
}

void SafetensorsFile::check_values(Entry& e) {
  const std::byte* data = data_.data() + e.begin;
  const std::size_t size = e.end - e.begin;
  if (e.dtype == DType::Bool) {
    for (std::size_t i = 0; i < size; ++i) {
      if (static_cast<unsigned>(data[i]) > 1) {
        fail(concat_text("tensor \"", e.name, "\": element ", i, " is the byte ", static_cast<unsigned>(data[i]),
                         ", expected 0 or 1 for BOOL"));
      }
    }
  }
  // Writers pad the header to align the data; old files may lack the padding.
  if (size > 0 && reinterpret_cast<std::uintptr_t>(data) % alignment_of(e.dtype) != 0) {
    e.aligned.reset(new std::byte[size]);
    std::memcpy(e.aligned.get(), data, size);
  }
}

const SafetensorsFile::Entry* SafetensorsFile::entry(std::string_view name) const {
  const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [&](std::uint32_t i, std::string_view n) { return entries_[i].name < n; });
  return at != by_name_.end() && entries_[*at].name == name ? &entries_[*at] : nullptr;
}

std::vector<std::string> SafetensorsFile::names() const try {
  std::vector<std::string> out;
  out.reserve(entries_.size());
  for (const Entry& e : entries_) out.push_back(e.name);
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SafetensorsFile::names");
}

std::optional<TensorView> SafetensorsFile::find(std::string_view name) const {
  const Entry* e = entry(name);
  if (e == nullptr) return std::nullopt;
  const void* data = e->aligned ? e->aligned.get() : data_.data() + e->begin;
  return TensorView{data, e->dtype, e->dims, e->end - e->begin};
}

TensorView SafetensorsFile::at(std::string_view name) const {
  if (const std::optional<TensorView> view = find(name)) return *view;
  throw_no_tensor(source_, name, names());
}

std::optional<SourceIdentity> SafetensorsFile::identity(std::string_view name) const {
  if (!entry(name) || file_.size() == 0) return std::nullopt;  // or the file is bytes in memory
  const FileStatus s = file_.status();
  const std::size_t head = bytes_.size() - data_.size();
  return SourceIdentity{s.device, s.inode, s.size, s.mtime_ns, fingerprint_bytes(bytes_.data(), head).text()};
}

void SafetensorsFile::drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const {
  const Entry* e = entry(name);
  if (!e || first >= e->end - e->begin) return;
  file_.drop_pages(bytes_.size() - data_.size() + e->begin + first, std::min(bytes, e->end - e->begin - first));
}

Tensor SafetensorsFile::tensor(const std::shared_ptr<const SafetensorsFile>& file, std::string_view name) try {
  if (!file) throw Error(ErrorCode::InvalidArgument, "SafetensorsFile::tensor: no file was given (a null pointer)");
  const TensorView view = file->at(name);
  const Shape shape(Dims(view.dims.begin(), view.dims.end()), view.dtype);
  return Tensor::borrowed(view.data, shape, file);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("SafetensorsFile::tensor");
}

void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                       const std::vector<std::pair<std::string, std::string>>& metadata) try {
  std::vector<const NamedTensor*> order;
  std::set<std::string_view> names, keys;
  const auto require_utf8 = [](std::string_view what, std::string_view text) {
    const std::optional<std::size_t> bad = find_invalid_utf8(text);
    if (bad)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("cannot write the ", what, " \"", text, "\": it is not valid UTF-8 at byte ", *bad),
                  "the header of a safetensors file is JSON, which holds UTF-8 alone: give another text");
  };
  for (const auto& [key, text] : metadata) {
    require_utf8("metadata key", key);
    require_utf8(concat_text("metadata of \"", key, "\""), text);
    if (!keys.insert(key).second)
      throw Error(ErrorCode::InvalidArgument, concat_text("cannot write the metadata key \"", key, "\" twice"));
  }
  for (const NamedTensor& t : tensors) {
    require_utf8("tensor name", t.name);
    if (t.tensor.empty())
      throw Error(ErrorCode::InvalidArgument, concat_text("tensor \"", t.name, "\" is empty: it has no value"));
    if (name_of(t.tensor.dtype()).empty()) {
      throw Error(ErrorCode::Unsupported,
                  concat_text("tensor \"", t.name, "\": safetensors has no dtype ", dtype_name(t.tensor.dtype())),
                  "cast it first");
    }
    if (t.name == "__metadata__" || !names.insert(t.name).second) {
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("cannot write the tensor name \"", t.name, "\" ",
                              t.name == "__metadata__" ? "which the format reserves" : "twice"));
    }
    order.push_back(&t);
  }
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return size_bytes(a->tensor.dtype()) > size_bytes(b->tensor.dtype());
  });
  JsonWriter header;
  header.begin_object();
  if (!metadata.empty()) {
    header.key("__metadata__").begin_object();
    for (const auto& [key, text] : metadata) header.member(key, text);
    header.end_object();
  }
  std::size_t at = 0;
  for (const NamedTensor* t : order) {
    header.key(t->name).begin_object().member("dtype", name_of(t->tensor.dtype())).key("shape").begin_array();
    for (const std::int64_t d : t->tensor.dims()) header.value(d);
    const std::size_t end = at + t->tensor.size_bytes();
    header.end_array()
        .key("data_offsets")
        .begin_array()
        .value(std::uint64_t{at})
        .value(std::uint64_t{end})
        .end_array()
        .end_object();
    at = end;
  }
  header.end_object();
  std::string head = header.take();
  head.append((8 - head.size() % 8) % 8, ' ');
  const std::uint64_t head_size = head.size();
  char length[8];
  std::memcpy(length, &head_size, 8);
  std::vector<std::string_view> parts = {std::string_view(length, 8), head};
  for (const NamedTensor* t : order) {
    parts.emplace_back(reinterpret_cast<const char*>(t->tensor.data()), t->tensor.size_bytes());
  }
  write_file(path, parts);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("write_safetensors");
}

}  // namespace rlx
