// Writes index files, and reads them with every number checked.
#include "rlx/models/search/index_file.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "rlx/base/output_file.h"
#include "rlx/base/utf8.h"
#include "rlx/formats/json.h"

namespace rlx {
namespace {

constexpr std::string_view kIndexMagic = "RLXINDEX";
constexpr std::uint32_t kIndexVersion = 1;
constexpr std::size_t kIndexFixed = 16, kIndexChecksum = 16, kIndexAlignment = 64;
constexpr std::size_t kMostHead = std::size_t{1} << 20;
constexpr std::size_t kFileRecord = 64, kPlaceRecord = 8, kPassageRecord = 32;
constexpr std::uint64_t kMostRecords = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMostWidth = std::int64_t{1} << 20;

std::uint64_t unsigned_at(std::string_view bytes, std::size_t at, int count) {
  std::uint64_t v = 0;
  for (int i = count; i-- > 0;) v = v << 8 | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
  return v;
}
std::uint32_t u32_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint32_t>(unsigned_at(bytes, at, 4));
}
std::uint64_t u64_at(std::string_view bytes, std::size_t at) { return unsigned_at(bytes, at, 8); }
Fingerprint checksum_at(std::string_view bytes, std::size_t at) {
  Fingerprint f;
  f.low = u64_at(bytes, at), f.high = u64_at(bytes, at + 8);
  return f;
}
void put(std::string& out, std::uint64_t v, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(v >> (8 * i) & 0xFF);
}
void put(std::string& out, const Fingerprint& f) {
  put(out, f.low, 8);
  put(out, f.high, 8);
}
std::size_t padded(std::size_t size) { return (size + kIndexAlignment - 1) / kIndexAlignment * kIndexAlignment; }

Fingerprint sum_of(std::initializer_list<std::string_view> parts) {
  std::string sums;
  for (const std::string_view part : parts) put(sums, text_checksum(part));
  return text_checksum(sums);
}

PassageKind passage_kind_called(std::string_view name, const std::string& path) {
  for (const PassageKind kind : {PassageKind::Lines, PassageKind::Paragraphs, PassageKind::Chunks})
    if (passage_kind_name(kind) == name) return kind;
  throw Error(ErrorCode::BadFile, concat_text("\"", path, "\": unknown passages \"", name, "\""));
}

std::string head_json(const IndexContent& c, std::uint64_t path_bytes, std::uint64_t text_bytes,
                      const Fingerprint& tables, const Fingerprint& vectors) {
  const TextIndexOptions& o = c.head.options;
  JsonWriter json;
  const auto list = [&](std::string_view key, const std::vector<std::string>& texts) {
    json.key(key).begin_array();
    for (const std::string& text : texts) json.value(text);
    json.end_array();
  };
  json.begin_object();
  list("paths", c.head.paths);
  list("globs", o.files.globs);
  json.member("hidden", o.files.hidden).member("ignore_files", o.files.ignore_files);
  json.member("max_bytes", o.files.max_bytes).member("passages", passage_kind_name(o.passages));
  json.member("max_tokens", o.chunks.max_tokens).member("overlap", o.chunks.overlap);
  json.member("model", c.head.model).member("model_fingerprint", c.head.model_fingerprint);
  json.member("vectors", dtype_name(o.vectors)).member("width", c.head.width);
  json.member("started_ns", c.head.started_ns);
  json.member("num_files", c.files.size()).member("num_places", c.places.size());
  json.member("num_passages", c.passages.size());
  json.member("path_bytes", path_bytes).member("text_bytes", text_bytes);
  json.member("tables_checksum", tables.text()).member("vectors_checksum", vectors.text());
  return json.end_object().take();
}

std::vector<std::string> strings_of(const JsonValue& root, std::string_view key) {
  std::vector<std::string> out;
  for (const JsonValue& text : root.at(key).elements(key)) out.emplace_back(text.as_string(key));
  return out;
}

}  // namespace

bool IndexFile::is_index(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  const GuardedReads reads;
  return file.text().starts_with(kIndexMagic);
}

void IndexFile::fail(std::string_view problem) const {
  if (file_.size() > 0) GuardedReads::check(file_.bytes().data());  // where the file was made shorter, that is why
  throw Error(ErrorCode::BadFile, concat_text("the index \"", file_.path(), "\" ", problem),
              "delete it, and make it again with `rlx index`");
}

// Sets the head, and returns where it ends.
std::size_t IndexFile::read_head() {
  const std::string_view all = file_.text();
  if (!all.starts_with(kIndexMagic))
    throw Error(ErrorCode::BadFile, concat_text("\"", file_.path(), "\" is not an index of texts"),
                "`rlx index` makes one");
  if (all.size() < kIndexFixed) fail("is cut short");
  if (const std::uint32_t version = u32_at(all, 8); version != kIndexVersion)
    fail(concat_text("has version ", version, "; this program reads version ", kIndexVersion));
  const std::size_t size = u32_at(all, 12);
  if (size > kMostHead) fail("has a damaged header");
  if (all.size() < kIndexFixed + size + kIndexChecksum) fail("is cut short");
  const std::size_t end = kIndexFixed + size;
  if (text_checksum(all.substr(0, end)) != checksum_at(all, end)) fail("has a damaged header");
  const JsonDocument document = JsonDocument::parse(std::string(all.substr(kIndexFixed, size)), file_.path());
  const JsonValue root = document.root_object();
  const auto count = [&](std::string_view key, std::uint64_t most = kMostRecords) {
    const std::int64_t v = root.get_int(key);
    if (v < 0 || static_cast<std::uint64_t>(v) > most) fail(concat_text("has \"", key, "\" out of range"));
    return static_cast<std::uint64_t>(v);
  };
  constexpr auto kAnything = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  TextIndexOptions& o = head_.options;
  head_.paths = strings_of(root, "paths"), o.files.globs = strings_of(root, "globs");
  o.files.hidden = root.get_bool("hidden"), o.files.ignore_files = root.get_bool("ignore_files");
  o.files.max_bytes = count("max_bytes", kAnything);
  o.passages = passage_kind_called(root.get_string("passages"), file_.path());
  o.chunks.max_tokens = root.get_int("max_tokens"), o.chunks.overlap = root.get_int("overlap");
  head_.model = root.get_string("model"), head_.model_fingerprint = root.get_string("model_fingerprint");
  const std::string_view type = root.get_string("vectors");
  if (type != dtype_name(DType::F16) && type != dtype_name(DType::I8))
    fail(concat_text("has vectors of type \"", type, "\""));
  o.vectors = type == dtype_name(DType::F16) ? DType::F16 : DType::I8;
  head_.width = root.get_int("width"), head_.started_ns = root.get_int("started_ns");
  if (head_.width < 1 || head_.width > kMostWidth) fail("has \"width\" out of range");
  num_files_ = count("num_files"), num_places_ = count("num_places"), num_passages_ = count("num_passages");
  path_bytes_ = count("path_bytes", file_.size()), text_bytes_ = count("text_bytes", file_.size());
  const auto sum = [&](std::string_view key) {
    const std::string_view text = root.get_string(key);
    Fingerprint f;
    for (std::size_t i = 0; i < 32 && i < text.size(); ++i) {
      const std::size_t digit = std::string_view("0123456789abcdef").find(text[i]);
      (i < 16 ? f.high : f.low) = (i < 16 ? f.high : f.low) << 4 | (digit & 15);
    }
    if (f.text() != text) fail(concat_text("has a damaged \"", key, "\""));
    return f;
  };
  tables_sum_ = sum("tables_checksum"), vectors_sum_ = sum("vectors_checksum");
  return end + kIndexChecksum;
}

std::string_view IndexFile::section(std::string_view name, std::uint64_t bytes, std::size_t& at) const {
  at = padded(at);
  if (at > file_.size() || bytes > file_.size() - at) fail(concat_text("is cut short: its ", name, " are missing"));
  const std::string_view out = file_.text().substr(at, bytes);
  at += bytes;
  return out;
}

IndexFile::IndexFile(const std::string& path) : file_(MappedFile::open(path)) {
  const GuardedReads reads;
  std::size_t at = read_head();
  files_ = section("files", std::uint64_t{num_files_} * kFileRecord, at);
  places_ = section("places", std::uint64_t{num_places_} * kPlaceRecord, at);
  passages_ = section("passages", std::uint64_t{num_passages_} * kPassageRecord, at);
  paths_ = section("paths", path_bytes_, at);
  texts_ = section("texts", text_bytes_, at);
  scales_ = section("scales", head_.options.vectors == DType::I8 ? std::uint64_t{num_passages_} * 4 : 0, at);
  vectors_ = section("vectors", std::uint64_t{num_passages_} * vector_bytes(head_), at);
  if (at != file_.size()) fail("is too long");
  if (sum_of({files_, places_, passages_, paths_}) != tables_sum_) fail("has damaged tables");
  check_records();
  reads.check(file_.bytes().data());
}

void IndexFile::check_records() const {
  const auto inside = [](std::uint64_t at, std::uint64_t size, std::uint64_t all) {
    return at <= all && size <= all - at;
  };
  std::uint64_t next_place = 0;
  for (std::size_t i = 0; i < num_files_; ++i) {
    const std::string_view r = files_.substr(i * kFileRecord, kFileRecord);
    if (!inside(u64_at(r, 0), u32_at(r, 8), path_bytes_) || u32_at(r, 12) >= head_.paths.size() ||
        u32_at(r, 56) != next_place || !inside(next_place, u32_at(r, 60), num_places_))
      fail(concat_text("has a damaged record of file ", i));
    next_place += u32_at(r, 60);
  }
  if (next_place != num_places_) fail("has places of no file");
  for (std::size_t i = 0; i < num_places_; ++i)
    if (u32_at(places_, i * kPlaceRecord) >= num_passages_) fail(concat_text("has a damaged record of place ", i));
  for (std::size_t i = 0; i < num_passages_; ++i) {
    const std::string_view r = passages_.substr(i * kPassageRecord, kPassageRecord);
    if (!inside(u64_at(r, 0), u32_at(r, 8), text_bytes_)) fail(concat_text("has a damaged record of passage ", i));
  }
}

IndexedFile IndexFile::file(std::size_t i) const {
  const std::string_view r = files_.substr(i * kFileRecord, kFileRecord);
  IndexedFile out;
  out.path = paths_.substr(u64_at(r, 0), u32_at(r, 8)), out.root = u32_at(r, 12), out.size = u64_at(r, 16);
  out.mtime_ns = static_cast<std::int64_t>(u64_at(r, 24)), out.ctime_ns = static_cast<std::int64_t>(u64_at(r, 32));
  out.content = checksum_at(r, 40), out.first_place = u32_at(r, 56), out.num_places = u32_at(r, 60);
  return out;
}

IndexedPlace IndexFile::place(std::size_t i) const {
  return {u32_at(places_, i * kPlaceRecord), u32_at(places_, i * kPlaceRecord + 4)};
}

IndexedPassage IndexFile::passage(std::size_t i) const {
  const std::string_view r = passages_.substr(i * kPassageRecord, kPassageRecord);
  return {texts_.substr(u64_at(r, 0), u32_at(r, 8)), checksum_at(r, 16)};
}

std::size_t IndexFile::file_of_place(std::size_t place) const {
  std::size_t low = 0, high = num_files_;  // the last file whose first place is not after it
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (u32_at(files_, middle * kFileRecord + 56) <= place ? low : high) = middle;
  }
  return low;
}

std::size_t IndexFile::vector_bytes(const IndexHead& head) {
  return static_cast<std::size_t>(head.width) * (head.options.vectors == DType::F16 ? 2 : 1);
}

const std::byte* IndexFile::vector(std::size_t passage) const {
  return reinterpret_cast<const std::byte*>(vectors_.data()) + passage * vector_bytes(head_);
}

float IndexFile::scale(std::size_t passage) const {
  float out = 1;
  if (!scales_.empty()) std::memcpy(&out, scales_.data() + passage * 4, 4);
  return out;
}

void IndexFile::verify_vectors() const {
  if (sum_of({scales_, vectors_}) != vectors_sum_) fail("has damaged vectors");
}

std::string IndexFile::checked_text(std::size_t i) const {
  const IndexedPassage p = passage(i);
  if (text_checksum(p.text) != p.checksum || find_invalid_utf8(p.text))
    fail(concat_text("has a damaged text of passage ", i));
  return std::string(p.text);
}

void write_index(const std::string& path, const IndexContent& c) {
  std::string files, places, passages, paths;
  std::uint64_t text_bytes = 0;
  for (const IndexedFile& f : c.files) {
    put(files, paths.size(), 8);
    put(files, f.path.size(), 4);
    put(files, f.root, 4);
    put(files, f.size, 8);
    put(files, static_cast<std::uint64_t>(f.mtime_ns), 8);
    put(files, static_cast<std::uint64_t>(f.ctime_ns), 8);
    put(files, f.content);
    put(files, f.first_place, 4);
    put(files, f.num_places, 4);
    paths += f.path;
  }
  for (const IndexedPlace& p : c.places) put(places, p.passage, 4), put(places, p.line, 4);
  for (const IndexedPassage& p : c.passages) {
    put(passages, text_bytes, 8);
    put(passages, p.text.size(), 4);
    put(passages, 0, 4);
    put(passages, p.checksum);
    text_bytes += p.text.size();
  }
  const std::string json =
      head_json(c, paths.size(), text_bytes, sum_of({files, places, passages, paths}), sum_of({c.scales, c.vectors}));
  if (json.size() > kMostHead || c.places.size() > kMostRecords || c.passages.size() > kMostRecords)
    throw Error(
        ErrorCode::InvalidArgument,
        concat_text("an index has at most ", kMostHead, " bytes of paths and globs, and ", kMostRecords, " passages"),
        "make several indexes");
  std::string head(kIndexMagic);
  put(head, kIndexVersion, 4);
  put(head, json.size(), 4);
  head += json;
  put(head, text_checksum(head));
  OutputFile out(path);
  std::size_t written = 0;
  const auto write = [&](std::string_view bytes) {
    out.write(bytes);
    written += bytes.size();
  };
  const auto align = [&] { write(std::string(padded(written) - written, '\0')); };
  write(head);
  for (const std::string_view part :
       {std::string_view(files), std::string_view(places), std::string_view(passages), std::string_view(paths)}) {
    align();
    write(part);
  }
  align();
  for (const IndexedPassage& p : c.passages) write(p.text);
  for (const std::string_view part : {std::string_view(c.scales), std::string_view(c.vectors)}) {
    align();
    write(part);
  }
  out.commit();
}

}  // namespace rlx
