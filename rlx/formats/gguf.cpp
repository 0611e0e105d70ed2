// GGUF files and their parts: opening, names, tensors, metadata. The reader (gguf_reader.cpp) checks their headers.
#include "rlx/formats/gguf.h"

#include <algorithm>
#include <cstring>

#include "rlx/error.h"
#include "rlx/formats/gguf_reader.h"
#include "rlx/formats/missing_tensor.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

// "PREFIX-00002-of-00005.gguf".
struct PartName {
  std::string prefix;
  std::int64_t number = 0, count = 0;  // numbered from 1
};
constexpr std::size_t kShardDigits = 5;

std::optional<std::int64_t> digits(std::string_view text) {
  std::int64_t v = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    v = v * 10 + (c - '0');
  }
  return v;
}

std::optional<PartName> parse_part_name(std::string_view path) {
  constexpr std::string_view kOf = "-of-", kEnd = ".gguf";
  constexpr std::size_t kTail = 1 + kShardDigits + kOf.size() + kShardDigits + kEnd.size();
  if (path.size() <= kTail) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kTail);
  if (tail[0] != '-' || tail.substr(1 + kShardDigits, kOf.size()) != kOf || tail.substr(kTail - kEnd.size()) != kEnd)
    return std::nullopt;
  const auto number = digits(tail.substr(1, kShardDigits)),
             count = digits(tail.substr(1 + kShardDigits + kOf.size(), kShardDigits));
  if (!number || !count) return std::nullopt;
  return PartName{std::string(path.substr(0, path.size() - kTail)), *number, *count};
}

std::string part_path(const PartName& name, std::int64_t number) {
  const auto padded = [](std::int64_t v) {
    std::string text = std::to_string(v);
    return std::string(kShardDigits - std::min(kShardDigits, text.size()), '0') + text;
  };
  return concat_text(name.prefix, "-", padded(number), "-of-", padded(name.count), ".gguf");
}

const GgufValue* value_of(std::span<const GgufValue> values, std::string_view key) {
  for (const GgufValue& v : values)
    if (v.key() == key) return &v;
  return nullptr;
}

std::int64_t int_of(std::span<const GgufValue> values, std::string_view key, std::int64_t fallback) {
  const GgufValue* v = value_of(values, key);
  return v ? v->as_int() : fallback;
}

// Indices of `n` entries sorted by name. Calls `twice` for repeated names.
template <class NameOf, class Twice>
std::vector<std::uint32_t> sorted_by_name(std::size_t n, NameOf name_of, Twice twice) {
  std::vector<std::uint32_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<std::uint32_t>(i);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int c = name_of(a).compare(name_of(b));
    return c != 0 ? c < 0 : a < b;
  });
  for (std::size_t i = 1; i < n; ++i)
    if (name_of(order[i - 1]) == name_of(order[i])) twice(order[i]);
  return order;
}

template <class NameOf>
std::optional<std::uint32_t> find_by_name(std::span<const std::uint32_t> order, NameOf name_of, std::string_view name) {
  const auto at = std::lower_bound(order.begin(), order.end(), name,
                                   [&](std::uint32_t i, std::string_view n) { return name_of(i) < n; });
  if (at == order.end() || name_of(*at) != name) return std::nullopt;
  return *at;
}

}  // namespace

void GgufFile::fail(const Part& part, const std::string& message, std::string hint) const {
  throw Error(ErrorCode::BadFile, concat_text(part.source, ": ", message), std::move(hint));
}

std::shared_ptr<GgufFile> GgufFile::open(const std::string& path) try {
  std::shared_ptr<GgufFile> file(new GgufFile);
  file->source_ = path;
  file->open_parts(path);
  file->finish();
  return file;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("GgufFile::open");
}

std::shared_ptr<GgufFile> GgufFile::from_bytes(std::span<const std::byte> bytes, std::string source) try {
  std::shared_ptr<GgufFile> file(new GgufFile);
  file->source_ = std::move(source);
  Part& part = file->parts_.emplace_back();
  part.source = file->source_;
  part.bytes = bytes;
  GgufReader(*file, 0).read();
  const std::int64_t count = int_of(part.values, "split.count", 1);
  if (count > 1)
    file->fail(part, concat_text("this is one of ", count, " parts of a split file"),
               "open the file by its path, so that the other parts are found, or merge the parts first");
  file->finish();
  return file;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("GgufFile::from_bytes");
}

void GgufFile::open_parts(const std::string& path) {
  const auto add = [&](const std::string& name) -> Part& {
    Part& part = parts_.emplace_back();
    part.source = name;
    part.file = MappedFile::open(name);
    part.bytes = part.file.bytes();
    const GuardedReads reads;
    GgufReader(*this, static_cast<std::uint32_t>(parts_.size() - 1)).read();
    reads.check(part.bytes.data());
    return part;
  };
  const Part& named = add(path);
  const std::int64_t count = int_of(named.values, "split.count", 1);
  if (count <= 1) return;
  const std::int64_t number = int_of(named.values, "split.no", 0) + 1;
  const std::optional<PartName> name = parse_part_name(path);
  if (!name || name->number != number || name->count != count) {
    fail(named,
         concat_text("the file says that it is part ", number, " of ", count, ", but its name says ",
                     name ? concat_text("part ", name->number, " of ", name->count) : std::string("no part number")),
         "rename the parts to NAME-00001-of-00003.gguf, ...");
  }
  parts_.clear();
  tensors_.clear();
  places_.clear();
  for (std::int64_t i = 1; i <= count; ++i) {
    const Part& part = [&]() -> const Part& {
      try {
        return add(part_path(*name, i));
      } catch (const Error& e) {
        if (e.code() != ErrorCode::NotFound) throw;
        throw Error(ErrorCode::NotFound,
                    concat_text("part ", i, " of ", count, " of the model is missing: ", e.diagnostic().message),
                    "fetch all parts into one folder");
      }
    }();
    const std::int64_t own = int_of(part.values, "split.no", -1), of = int_of(part.values, "split.count", 1);
    if (own != i - 1 || of != count)
      fail(part,
           concat_text("the metadata says that this is part ", own + 1, " of ", of, ", expected ", i, " of ", count),
           "the parts belong to different models");
  }
  for (const Part& part : parts_) {
    const std::int64_t all = int_of(part.values, "split.tensors.count", static_cast<std::int64_t>(tensors_.size()));
    if (all != static_cast<std::int64_t>(tensors_.size()))
      fail(part, concat_text("\"split.tensors.count\" is ", all, ", but the ", count, " parts hold ", tensors_.size(),
                             " tensors"));
  }
}

// Called after all parts are read: builds the name indices and the tensor views.
void GgufFile::finish() {
  values_ = parts_.front().values;
  for (const Part& part : parts_) {
    sorted_by_name(
        part.values.size(), [&](std::uint32_t i) { return part.values[i].key(); },
        [&](std::uint32_t i) {
          fail(part, concat_text("key \"", part.values[i].key(), "\" occurs twice in the metadata"));
        });
  }
  by_key_ = sorted_by_name(
      values_.size(), [&](std::uint32_t i) { return values_[i].key(); }, [](std::uint32_t) {});
  by_name_ = sorted_by_name(
      tensors_.size(), [&](std::uint32_t i) { return tensors_[i].name; },
      [&](std::uint32_t i) {
        fail(parts_[places_[i].part], concat_text("tensor \"", tensors_[i].name, "\" occurs twice"));
      });
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    GgufTensor& t = tensors_[i];
    Place& place = places_[i];
    t.dims = place.dims;
    t.stored_dims = place.byte_dims.empty() ? place.dims : place.byte_dims;
    const std::size_t align = t.info().dtype ? alignment_of(*t.info().dtype) : 1;
    if (!t.bytes.empty() && reinterpret_cast<std::uintptr_t>(t.bytes.data()) % align != 0) {
      place.aligned.reset(new std::byte[t.bytes.size()]);
      std::memcpy(place.aligned.get(), t.bytes.data(), t.bytes.size());
      t.bytes = {place.aligned.get(), t.bytes.size()};
    }
  }
}

// The names lie in the mapped files too.
void GgufFile::check_header() const {
  if (!any_damaged_mapping()) return;
  for (const Part& p : parts_)
    if (!p.bytes.empty()) GuardedReads::check(p.bytes.data());
}

std::vector<std::string> GgufFile::names() const try {
  const GuardedReads reads;
  std::vector<std::string> out;
  out.reserve(tensors_.size());
  for (const GgufTensor& t : tensors_) out.emplace_back(t.name);
  check_header();
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("GgufFile::names");
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const GuardedReads reads;
  const auto i = find_by_name(
      by_name_, [&](std::uint32_t t) { return tensors_[t].name; }, name);
  check_header();
  return i ? &tensors_[*i] : nullptr;
}

const GgufTensor& GgufFile::at(std::string_view name) const {
  if (const GgufTensor* t = find_tensor(name)) return *t;
  throw_no_tensor(source_, name, names());
}

std::optional<TensorView> GgufFile::find(std::string_view name) const {
  const GgufTensor* t = find_tensor(name);
  if (t == nullptr) return std::nullopt;
  return TensorView{t->bytes.data(), t->info().dtype.value_or(DType::U8), t->stored_dims, t->bytes.size()};
}

std::optional<SourceIdentity> GgufFile::identity(std::string_view name) const {
  const GgufTensor* t = find_tensor(name);
  if (t == nullptr) return std::nullopt;
  const Part& part = parts_[places_[static_cast<std::size_t>(t - tensors_.data())].part];
  if (part.file.size() == 0) return std::nullopt;  // bytes in memory
  const FileStatus s = part.file.status();
  // The tensor records of the file, without the metadata (a vocabulary for example).
  const std::span<const std::byte> records = part.bytes.subspan(part.records, part.data - part.records);
  return SourceIdentity{s.device, s.inode, s.size, s.mtime_ns,
                        fingerprint_bytes(records.data(), records.size()).text()};
}

void GgufFile::drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const {
  const GgufTensor* t = find_tensor(name);
  if (t == nullptr) return;
  const Place& place = places_[static_cast<std::size_t>(t - tensors_.data())];
  if (first >= place.size) return;
  parts_[place.part].file.drop_pages(place.offset + first, std::min(bytes, place.size - first));
}

Tensor GgufFile::tensor(const std::shared_ptr<const GgufFile>& file, std::string_view name) try {
  if (!file) throw Error(ErrorCode::InvalidArgument, "GgufFile::tensor: no file was given (a null pointer)");
  const GgufTensor& t = file->at(name);
  const Shape shape(Dims(t.stored_dims.begin(), t.stored_dims.end()), t.info().dtype.value_or(DType::U8));
  return Tensor::borrowed(t.bytes.data(), shape, file);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("GgufFile::tensor");
}

Tensor GgufFile::decoded(std::string_view name) const try {
  const GuardedReads reads;
  const GgufTensor& t = at(name);
  Tensor out = Tensor::zeros(Shape(Dims(t.dims.begin(), t.dims.end()), DType::F32));
  if (out.num_elements() == 0) return out;
  decode_gguf(t.type, t.bytes,
              {reinterpret_cast<float*>(out.mutable_data()), static_cast<std::size_t>(out.num_elements())});
  reads.check(t.bytes.data());
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("GgufFile::decoded");
}

std::size_t GgufFile::data_size_bytes() const {
  std::size_t sum = 0;
  for (const Place& p : places_) sum += p.size;
  return sum;
}

const GgufValue* GgufFile::find_value(std::string_view key) const {
  const GuardedReads reads;
  const auto i = find_by_name(
      by_key_, [&](std::uint32_t v) { return values_[v].key(); }, key);
  check_header();
  return i ? &values_[*i] : nullptr;
}

const GgufValue& GgufFile::value(std::string_view key) const {
  if (const GgufValue* v = find_value(key)) return *v;
  std::vector<std::string> known;
  known.reserve(values_.size());
  for (const GgufValue& v : values_) known.emplace_back(v.key());
  throw Error(ErrorCode::BadFile, concat_text(source_, ": the metadata has no key \"", key, "\""),
              did_you_mean(key, known));
}

std::string_view GgufFile::architecture() const { return get_string("general.architecture"); }

bool GgufFile::get_bool(std::string_view key, bool fallback) const {
  const GgufValue* v = find_value(key);
  return v ? v->as_bool() : fallback;
}
std::int64_t GgufFile::get_int(std::string_view key, std::int64_t fallback) const {
  const GgufValue* v = find_value(key);
  return v ? v->as_int() : fallback;
}
double GgufFile::get_number(std::string_view key, double fallback) const {
  const GgufValue* v = find_value(key);
  return v ? v->as_number() : fallback;
}
std::string_view GgufFile::get_string(std::string_view key, std::string_view fallback) const {
  const GgufValue* v = find_value(key);
  return v ? v->as_string() : fallback;
}

}  // namespace rlx
