// The header of a GGUF file: magic, version, counts, metadata, tensor records; then the layout of the tensor data.
#include "rlx/formats/gguf_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/foreign_file.h"

namespace rlx {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is little-endian and is used in place");

constexpr std::size_t kMaxGgufKeyBytes = 65535;  // the format's limit
constexpr int kMaxGgufDims = 8;                  // the format has 4 and may grow
constexpr int kMaxArrayDepth = 4;                // nesting depth of arrays
constexpr std::string_view kGgufCut = "the file is cut short; fetch it again";

}  // namespace

std::size_t gguf_kind_bytes(GgufKind kind) {
  switch (kind) {
    case GgufKind::U8:
    case GgufKind::I8:
    case GgufKind::Bool: return 1;
    case GgufKind::U16:
    case GgufKind::I16: return 2;
    case GgufKind::U32:
    case GgufKind::I32:
    case GgufKind::F32: return 4;
    case GgufKind::U64:
    case GgufKind::I64:
    case GgufKind::F64: return 8;
    case GgufKind::String:
    case GgufKind::Array: return 0;
  }
  return 0;
}

std::size_t gguf_value_bytes(GgufKind kind, const std::byte* p) {
  if (kind == GgufKind::String) return 8 + static_cast<std::size_t>(load_gguf<std::uint64_t>(p));
  if (kind != GgufKind::Array) return gguf_kind_bytes(kind);
  const auto element = static_cast<GgufKind>(load_gguf<std::uint32_t>(p));
  const auto count = static_cast<std::size_t>(load_gguf<std::uint64_t>(p + 4));
  if (const std::size_t each = gguf_kind_bytes(element)) return 12 + count * each;
  std::size_t size = 12;
  for (std::size_t i = 0; i < count; ++i) size += gguf_value_bytes(element, p + size);
  return size;
}

GgufReader::GgufReader(GgufFile& file, std::uint32_t part)
    : file_(file), part_(file.parts_[part]), index_(part), bytes_(part_.bytes) {}

void GgufReader::fail(const std::string& message, std::string hint) const {
  file_.fail(part_, message, std::move(hint));
}

void GgufReader::spend(std::uint64_t steps, std::string_view what) {
  if (!budget_.spend(steps))
    fail(concat_text(what, " at byte ", at_, " is part of a header that is far longer than that of any model"),
         "the file is damaged");
}

template <class T>
T GgufReader::take(std::string_view what) {
  if (left() < sizeof(T))
    fail(concat_text(what, " at byte ", at_, " takes ", sizeof(T), " bytes, but only ", left(), " follow"),
         std::string(kGgufCut));
  const T v = load_gguf<T>(bytes_.data() + at_);
  at_ += sizeof(T);
  return v;
}

std::string_view GgufReader::take_string(std::string_view what) {
  const std::size_t start = at_;
  const auto size = take<std::uint64_t>(what);
  if (size > left())
    fail(concat_text(what, " at byte ", start, " has ", size, " bytes, but only ", left(), " follow"),
         std::string(kGgufCut));
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, static_cast<std::size_t>(size));
  at_ += text.size();
  return text;
}

GgufKind GgufReader::take_kind(std::string_view what) {
  const std::size_t start = at_;
  const auto kind = take<std::uint32_t>(what);
  if (kind > static_cast<std::uint32_t>(GgufKind::F64))
    fail(concat_text(what, " at byte ", start, " has the unknown value type ", kind),
         "the value types of GGUF are 0 to 12");
  return static_cast<GgufKind>(kind);
}

void GgufReader::skip_array(GgufValue& value, int depth) {
  const std::string label = concat_text("the array \"", value.key_, "\"");
  value.element_ = take_kind(label);
  const auto count = take<std::uint64_t>(label);
  const std::size_t each = gguf_kind_bytes(value.element_);
  const std::size_t least = each ? each : value.element_ == GgufKind::String ? 8 : 12;
  if (count > left() / least)
    fail(concat_text(label, " at byte ", at_, " has ", count, " elements of ", gguf_kind_name(value.element_),
                     ", but only ", left(), " bytes follow"),
         std::string(kGgufCut));
  value.count_ = static_cast<std::size_t>(count);
  if (each) {
    if (value.element_ == GgufKind::Bool) {
      spend(value.count_, label);
      for (std::size_t i = 0; i < value.count_; ++i)
        if (bytes_[at_ + i] > std::byte{1})
          fail(concat_text(label, ": element ", i, " is the byte ", static_cast<unsigned>(bytes_[at_ + i]),
                           ", expected 0 or 1 for bool"));
    }
    at_ += value.count_ * each;
    return;
  }
  spend(8 * std::uint64_t{value.count_}, label);
  if (value.element_ == GgufKind::String) {
    for (std::size_t i = 0; i < value.count_; ++i) take_string(label);
    return;
  }
  if (depth == kMaxArrayDepth)
    fail(concat_text(label, " at byte ", at_, " has arrays nested more than ", kMaxArrayDepth, " deep"));
  GgufValue inner = value;
  for (std::size_t i = 0; i < value.count_; ++i) take_value(GgufKind::Array, inner, depth + 1);
}

void GgufReader::take_value(GgufKind kind, GgufValue& value, int depth) {
  const std::size_t start = at_;
  value.kind_ = kind;
  if (kind == GgufKind::Array) {
    skip_array(value, depth);
  } else if (kind == GgufKind::String) {
    take_string(concat_text("the string \"", value.key_, "\""));
  } else {
    const std::size_t size = gguf_kind_bytes(kind);
    if (size > left())
      fail(concat_text("the value of \"", value.key_, "\" at byte ", at_, " takes ", size, " bytes, but only ", left(),
                       " follow"),
           std::string(kGgufCut));
    if (kind == GgufKind::Bool && bytes_[at_] > std::byte{1})
      fail(concat_text("the value of \"", value.key_, "\" at byte ", at_, " is the byte ",
                       static_cast<unsigned>(bytes_[at_]), ", expected 0 or 1 for bool"));
    at_ += size;
  }
  value.raw_ = bytes_.subspan(start, at_ - start);
}

void GgufReader::read_version() {
  const std::string_view magic(reinterpret_cast<const char*>(bytes_.data()), std::min<std::size_t>(bytes_.size(), 4));
  if (magic != "GGUF") {
    const std::string_view start(reinterpret_cast<const char*>(bytes_.data()),
                                 std::min<std::size_t>(bytes_.size(), 256));
    if (const auto foreign = foreign_file(start))
      fail(concat_text("this is ", foreign->what), std::string(foreign->hint));
    const bool older = magic == "tjgg" || magic == "fmgg" || magic == "lmgg" || magic == "algg";
    fail(older ? "the file has one of the older GGML formats, not GGUF" : "the file does not begin with \"GGUF\"",
         older              ? "convert the model again with a current converter"
         : magic.size() < 4 ? std::string(kGgufCut)
                            : "this is not a GGUF file");
  }
  at_ = 4;
  const auto version = take<std::uint32_t>("the version");
  if (version == 2 || version == 3) {
    part_.version = static_cast<int>(version);
    return;
  }
  const bool swapped = (version & 0xffff) == 0 && version != 0;
  throw Error(ErrorCode::Unsupported,
              swapped
                  ? concat_text(part_.source, ": the file is big-endian; rlx reads little-endian files")
                  : concat_text(part_.source, ": the file has GGUF version ", version, "; rlx reads versions 2 and 3"),
              swapped        ? "fetch the little-endian file of the model"
              : version == 1 ? "convert the model again with a current converter"
                             : "");
}

// Reads a count and checks that the rest of the file has room for it.
std::uint64_t GgufReader::count_of(std::string_view what, std::size_t least_bytes) {
  const std::size_t start = at_;
  const auto count = take<std::uint64_t>(concat_text("the number of ", what));
  if (count > left() / least_bytes)
    fail(concat_text("the count at byte ", start, " is ", count, " ", what, ", but only ", left(), " bytes follow"),
         std::string(kGgufCut));
  return count;
}

void GgufReader::read_metadata(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t start = at_;
    GgufValue value;
    value.source_ = &part_.source;
    value.key_ = take_string(concat_text("key ", i, " of the metadata"));
    if (value.key_.empty() || value.key_.size() > kMaxGgufKeyBytes)
      fail(concat_text("key ", i, " of the metadata at byte ", start, " has ", value.key_.size(),
                       " bytes, expected 1 to ", kMaxGgufKeyBytes));
    if (find_invalid_utf8(value.key_))
      fail(concat_text("key ", i, " of the metadata at byte ", start, " is not UTF-8"));
    take_value(take_kind(concat_text("the value of \"", value.key_, "\"")), value, 0);
    part_.values.push_back(value);
    if (value.key_ != "general.alignment") continue;
    if (value.kind_ != GgufKind::U32) value.fail("u32");
    part_.alignment = static_cast<std::size_t>(value.as_int());
    if (!std::has_single_bit(part_.alignment))
      fail(concat_text("key \"general.alignment\" is ", part_.alignment, ", expected a power of two"));
  }
}

void GgufReader::read_tensor() {
  const std::size_t start = at_, number = file_.tensors_.size();
  GgufTensor t;
  t.name = take_string(concat_text("the name of tensor ", number));
  if (t.name.empty()) fail(concat_text("tensor ", number, " at byte ", start, " has no name"));
  if (const auto bad = find_invalid_utf8(t.name))
    fail(concat_text("the name of tensor ", number, " at byte ", start, " is not UTF-8"));
  const std::string label = concat_text("tensor \"", t.name, "\"");
  const auto rank = take<std::uint32_t>(label);
  if (rank > kMaxGgufDims) fail(concat_text(label, " has ", rank, " dimensions, expected at most ", kMaxGgufDims));
  GgufFile::Place place;
  place.part = index_;
  place.dims.resize(rank);
  for (std::uint32_t i = 0; i < rank; ++i) {  // the innermost dimension comes first
    const auto d = take<std::uint64_t>(label);
    if (d > static_cast<std::uint64_t>(kMaxElements))
      fail(concat_text(label, " has the dimension ", d, ", more elements than any file can hold"));
    place.dims[rank - 1 - i] = static_cast<std::int64_t>(d);
  }
  const auto number_of_type = take<std::uint32_t>(label);
  const std::optional<GgufType> type = gguf_type_of_number(number_of_type);
  if (!type) {
    throw Error(
        ErrorCode::Unsupported,
        concat_text(part_.source, ": ", label, " has the type number ", number_of_type, ", which rlx does not know"),
        "convert the model to another type, Q4_K or Q8_0 for example");
  }
  t.type = *type;
  const auto offset = take<std::uint64_t>(label);
  const GgufTypeInfo& info = gguf_type_info(t.type);
  std::int64_t row = rank == 0 ? 1 : place.dims.back(), rows = 1, size = 0;
  if (row % info.elements != 0)
    fail(concat_text(label, " of shape ", dims_text(place.dims), " and type ", info.name, " has rows of ", row,
                     " elements, expected a multiple of ", info.elements));
  bool too_large = __builtin_mul_overflow(row / info.elements, std::int64_t{info.bytes}, &row);
  for (std::uint32_t i = 0; i + 1 < rank; ++i) too_large |= __builtin_mul_overflow(rows, place.dims[i], &rows);
  too_large |= __builtin_mul_overflow(rows, row, &size);
  // A zero dimension makes the tensor empty, whatever the product of the others.
  if (std::find(place.dims.begin(), place.dims.end(), 0) != place.dims.end()) {
    size = 0;
  } else if (too_large || size >= kMaxElements) {
    fail(
        concat_text(label, " has more bytes than any file can hold: shape ", dims_text(place.dims), " in ", info.name));
  }
  if (!info.dtype) {
    place.byte_dims = place.dims;
    place.byte_dims.back() = row;
  }
  place.offset = static_cast<std::size_t>(offset);
  t.bytes = bytes_.first(0);
  // The start of the data is known after the last record, so check_layout checks the offsets.
  place.size = static_cast<std::size_t>(size);
  file_.tensors_.push_back(t);
  file_.places_.push_back(std::move(place));
}

// Checks that offsets are aligned and inside the file, and that no two tensors overlap.
void GgufReader::check_layout(std::size_t first) const {
  std::vector<std::size_t> order;
  const std::size_t data = bytes_.size() - part_.data;
  for (std::size_t i = first; i < file_.tensors_.size(); ++i) {
    GgufFile::Place& place = file_.places_[i];
    const auto label = [&] { return concat_text("tensor \"", file_.tensors_[i].name, "\""); };
    if (place.offset % part_.alignment != 0)
      fail(concat_text(label(), " begins at offset ", place.offset, ", expected a multiple of the alignment ",
                       part_.alignment));
    if (place.offset > data || place.size > data - place.offset)
      fail(concat_text(label(), " has ", place.size, " bytes from offset ", place.offset, ", but the data section has ",
                       data),
           std::string(kGgufCut));
    place.offset += part_.data;
    file_.tensors_[i].bytes = bytes_.subspan(place.offset, place.size);
    if (place.size > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return file_.places_[a].offset < file_.places_[b].offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const GgufFile::Place &a = file_.places_[order[i - 1]], &b = file_.places_[order[i]];
    if (a.offset + a.size > b.offset)
      fail(concat_text("tensors \"", file_.tensors_[order[i - 1]].name, "\" and \"", file_.tensors_[order[i]].name,
                       "\" overlap at byte ", b.offset, ": the first ends at ", a.offset + a.size));
  }
}

void GgufReader::read() {
  read_version();
  const std::uint64_t tensors = count_of("tensors", 24);
  const std::uint64_t values = count_of("metadata values", 13);
  read_metadata(values);
  part_.records = at_;
  const std::size_t first = file_.tensors_.size();
  for (std::uint64_t i = 0; i < tensors; ++i) read_tensor();
  part_.data = at_;
  if (tensors == 0) return;  // without tensors no data must be aligned
  const std::size_t over = at_ % part_.alignment;
  if (over != 0) {
    if (part_.alignment - over > left()) {
      // Only a file of empty tensors may end before its data begin.
      part_.data = bytes_.size();
    } else {
      part_.data += part_.alignment - over;
    }
  }
  check_layout(first);
}

}  // namespace rlx
