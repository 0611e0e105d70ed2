// npz: a zip archive of npy files. The layout and the names in comments are those of PKWARE's APPNOTE.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "rlx/base/work_budget.h"
#include "rlx/error.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/formats/npy.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50,
                        kZip64End = 0x06064b50, kZip64Locator = 0x07064b50;
constexpr std::uint64_t kIn64 = 0xFFFFFFFFu;  // placeholder for a value in the zip64 field

// Checked little-endian reads of a zip file.
class ZipReader {
 public:
  ZipReader(std::span<const std::byte> bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorCode::BadFile, concat_text(source_, ": ", message),
                "the file is damaged or not an npz file; write it again with numpy.savez");
  }
  std::span<const std::byte> slice(std::uint64_t at, std::uint64_t size, std::string_view what) const {
    if (at > bytes_.size() || size > bytes_.size() - at) {
      fail(concat_text(what, " at byte ", at, " needs ", size, " bytes, but the file has ", bytes_.size()));
    }
    return bytes_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  }
  template <class T>
  T number(std::uint64_t at, std::string_view what) const {
    T value;
    std::memcpy(&value, slice(at, sizeof value, what).data(), sizeof value);
    return value;
  }
  std::uint64_t size() const { return bytes_.size(); }
  const std::string& source() const { return source_; }

 private:
  std::span<const std::byte> bytes_;
  const std::string& source_;
};

struct ZipEntry {
  std::string name;
  std::uint16_t flags = 0, method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed_size = 0, size = 0, local_offset = 0;
};

struct Directory {
  std::uint64_t offset = 0, num_entries = 0;
};

Directory find_directory(const ZipReader& zip) {
  constexpr std::uint64_t kEndSize = 22, kMaxComment = 0xFFFF;
  if (zip.size() < kEndSize) zip.fail(concat_text("the file has ", zip.size(), " bytes, too few for a zip archive"));
  // A comment of unknown length follows the record, so the search starts from the end.
  std::uint64_t at = zip.size() - kEndSize;
  const std::uint64_t lowest = at > kMaxComment ? at - kMaxComment : 0;
  while (zip.number<std::uint32_t>(at, "") != kEnd) {
    if (at == lowest) zip.fail("not a zip archive: it has no end of central directory record");
    --at;
  }
  Directory d;
  d.num_entries = zip.number<std::uint16_t>(at + 10, "end record");
  d.offset = zip.number<std::uint32_t>(at + 16, "end record");
  if (d.num_entries == 0xFFFF || d.offset == kIn64) {
    if (at < 20 || zip.number<std::uint32_t>(at - 20, "zip64 locator") != kZip64Locator)
      zip.fail("the zip64 locator is missing");
    const std::uint64_t end64 = zip.number<std::uint64_t>(at - 20 + 8, "zip64 locator");
    if (zip.number<std::uint32_t>(end64, "zip64 end record") != kZip64End) {
      zip.fail(concat_text("no zip64 end record at byte ", end64));
    }
    zip.slice(end64, 56, "zip64 end record");
    d.num_entries = zip.number<std::uint64_t>(end64 + 32, "zip64 end record");
    d.offset = zip.number<std::uint64_t>(end64 + 48, "zip64 end record");
  }
  return d;
}

// Replaces zip64 placeholder fields by the values of the extra field with id 1.
void read_zip64(const ZipReader& zip, std::uint64_t at, std::uint64_t size, ZipEntry& e) {
  const std::uint64_t end = at + size;
  while (at + 4 <= end) {
    const std::uint16_t id = zip.number<std::uint16_t>(at, "extra field"),
                        length = zip.number<std::uint16_t>(at + 2, "extra field");
    if (id == 1) {
      std::uint64_t field = at + 4;
      const std::uint64_t stop = std::min<std::uint64_t>(field + length, end);
      for (std::uint64_t* value : {&e.size, &e.packed_size, &e.local_offset}) {
        if (*value != kIn64) continue;
        if (field + 8 > stop) zip.fail(concat_text("entry \"", e.name, "\": its zip64 field is too short"));
        *value = zip.number<std::uint64_t>(field, "zip64 field");
        field += 8;
      }
      return;
    }
    at += 4 + std::uint64_t{length};
  }
}

std::vector<ZipEntry> read_directory(const ZipReader& zip) {
  const Directory d = find_directory(zip);
  std::vector<ZipEntry> entries;
  std::uint64_t at = d.offset;
  for (std::uint64_t i = 0; i < d.num_entries; ++i) {
    const std::string what = concat_text("directory entry ", i);
    zip.slice(at, 46, what);
    if (zip.number<std::uint32_t>(at, what) != kCentralHeader) zip.fail(concat_text("no ", what, " at byte ", at));
    ZipEntry e;
    e.flags = zip.number<std::uint16_t>(at + 8, what);
    e.method = zip.number<std::uint16_t>(at + 10, what);
    e.crc = zip.number<std::uint32_t>(at + 16, what);
    e.packed_size = zip.number<std::uint32_t>(at + 20, what);
    e.size = zip.number<std::uint32_t>(at + 24, what);
    const std::uint64_t name_size = zip.number<std::uint16_t>(at + 28, what);
    const std::uint64_t extra_size = zip.number<std::uint16_t>(at + 30, what);
    const std::uint64_t comment_size = zip.number<std::uint16_t>(at + 32, what);
    e.local_offset = zip.number<std::uint32_t>(at + 42, what);
    const std::span<const std::byte> name = zip.slice(at + 46, name_size, what);
    e.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    zip.slice(at + 46 + name_size, extra_size + comment_size, what);
    read_zip64(zip, at + 46 + name_size, extra_size, e);
    at += 46 + name_size + extra_size + comment_size;
    entries.push_back(std::move(e));
  }
  return entries;
}

std::vector<std::byte> inflate_entry(const ZipReader& zip, const ZipEntry& e, std::span<const std::byte> packed) {
  // Deflate never compresses better than about 1032 to 1. A larger claimed size would only allocate memory in vain.
  if (e.size / 1032 > packed.size() + 1) {
    zip.fail(concat_text("entry \"", e.name, "\" claims ", e.size, " bytes from ", packed.size(),
                         " compressed bytes, more than deflate can produce"));
  }
  std::vector<std::byte> out(static_cast<std::size_t>(e.size));
  z_stream stream{};
  check(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib cannot start");
  std::size_t packed_at = 0, out_at = 0;
  int status = Z_OK;
  std::byte nowhere{};  // zlib needs a valid output pointer even for an empty output
  while (status == Z_OK) {
    const std::size_t in_size = std::min<std::size_t>(packed.size() - packed_at, 1u << 30);
    const std::size_t out_size = std::min<std::size_t>(out.size() - out_at, 1u << 30);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + packed_at));
    stream.avail_in = static_cast<uInt>(in_size);
    stream.next_out = reinterpret_cast<Bytef*>(out_size == 0 ? &nowhere : out.data() + out_at);
    stream.avail_out = static_cast<uInt>(out_size);
    status = inflate(&stream, Z_NO_FLUSH);
    packed_at += in_size - stream.avail_in;
    out_at += out_size - stream.avail_out;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || out_at != out.size() || packed_at != packed.size()) {
    zip.fail(concat_text("entry \"", e.name, "\": its compressed data is damaged (", out_at, " of ", out.size(),
                         " bytes came out)"));
  }
  return out;
}

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Tensor read_entry(const ZipReader& zip, const ZipEntry& e) {
  const std::string what = concat_text("entry \"", e.name, "\"");
  if ((e.flags & 1) != 0) zip.fail(concat_text(what, " is encrypted"));
  // The local header repeats the sizes, often as zeros or zip64 placeholders. Only its own length matters.
  zip.slice(e.local_offset, 30, what);
  if (zip.number<std::uint32_t>(e.local_offset, what) != kLocalHeader)
    zip.fail(concat_text(what, ": no local header at byte ", e.local_offset));
  const std::uint64_t start = e.local_offset + 30 + zip.number<std::uint16_t>(e.local_offset + 26, what) +
                              zip.number<std::uint16_t>(e.local_offset + 28, what);
  const std::span<const std::byte> packed = zip.slice(start, e.packed_size, what);
  std::vector<std::byte> inflated;
  std::span<const std::byte> content = packed;
  if (e.method == 8) {
    inflated = inflate_entry(zip, e, packed);
    content = inflated;
  } else if (e.method != 0) {
    zip.fail(concat_text(what, " is compressed by method ", e.method, ", expected 0 (stored) or 8 (deflate)"));
  } else if (e.size != e.packed_size) {
    zip.fail(concat_text(what, " is stored, but its two sizes ", e.size, " and ", e.packed_size, " differ"));
  }
  if (checksum(content) != e.crc) zip.fail(concat_text(what, ": the checksum differs"));
  return parse_npy(content, concat_text(zip.source(), ": ", what));
}

void append_u16(std::string& out, std::size_t v) {
  out += static_cast<char>(v & 0xFF);
  out += static_cast<char>(v >> 8 & 0xFF);
}
void append_u32(std::string& out, std::size_t v) {
  append_u16(out, v & 0xFFFF);
  append_u16(out, v >> 16 & 0xFFFF);
}

}  // namespace

std::vector<NamedTensor> parse_npz(std::span<const std::byte> bytes, const std::string& source) try {
  const ZipReader zip(bytes, source);
  std::vector<NamedTensor> out;
  std::set<std::string, std::less<>> names;
  // Entries of a real archive do not share bytes, so all of them together unpack to 1032 times the file at most.
  WorkBudget budget(0, (std::uint64_t{1} << 30) + 256 * std::uint64_t{bytes.size()});
  std::uint64_t packed = 0;
  for (const ZipEntry& e : read_directory(zip)) {
    constexpr std::string_view kSuffix = ".npy";
    if (packed > bytes.size() || e.packed_size > bytes.size() - packed)
      zip.fail(concat_text("entry \"", e.name, "\" shares bytes with others"));
    packed += e.packed_size;
    const bool possible = e.size / 1032 <= e.packed_size + 1;  // else inflate_entry says so
    if (possible && !budget.take(e.size))
      throw Error(ErrorCode::BadFile,
                  concat_text(source, ": the arrays of a file of ", bytes.size(),
                              " bytes unpack to far more: it is refused, since such files fill the memory"),
                  "if it is yours, load it with numpy.load and save it with numpy.savez");
    if (e.name.size() < kSuffix.size() || e.name.substr(e.name.size() - kSuffix.size()) != kSuffix) {
      zip.fail(concat_text("entry \"", e.name, "\" is not an .npy file"));
    }
    NamedTensor t{e.name.substr(0, e.name.size() - kSuffix.size()), Tensor()};
    if (!names.insert(t.name).second) {
      zip.fail(concat_text("entry \"", e.name, "\" occurs twice"));
    }
    t.tensor = read_entry(zip, e);
    out.push_back(std::move(t));
  }
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("parse_npz");
}

std::vector<NamedTensor> read_npz(const std::string& path) try {
  const MappedFile file = MappedFile::open(path, MapAdvice::Sequential);
  const GuardedReads reads;
  std::vector<NamedTensor> arrays = parse_npz(file.bytes(), path);
  reads.check(file.bytes().data());
  return arrays;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("read_npz");
}

void write_npz(const std::string& path, std::span<const NamedTensor> tensors) try {
  std::vector<std::string> headers;  // local file header and npy header of each tensor
  std::string directory;
  std::size_t offset = 0;
  headers.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const NamedTensor& t = tensors[i];
    if (t.tensor.empty())
      throw Error(ErrorCode::InvalidArgument, concat_text("array \"", t.name, "\" is empty: it has no value"));
    const auto same = [&](const NamedTensor& other) { return other.name == t.name; };
    if (t.name.empty() || t.name.size() > 0xFFFF - 4 ||
        std::any_of(tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(i), same)) {
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("npz: array ", i, " is called \"", t.name.substr(0, 80),
                              "\"; names must be unique, not empty and at most 65531 bytes"));
    }
    const std::string head = npy_header(t.tensor.dtype(), t.tensor.dims());
    const std::size_t data_size = t.tensor.size_bytes(), size = head.size() + data_size;
    const std::string name = t.name + ".npy";
    if (offset + size + name.size() + 1024 > 0xFFFFFFFFu || i >= 0xFFFE) {
      throw Error(
          ErrorCode::Unsupported,
          concat_text("npz: array \"", t.name, "\" does not fit: an npz file has at most 4 GiB and 65534 arrays"),
          "save to a safetensors file instead");
    }
    uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(head.data()), head.size());
    if (data_size > 0) crc = crc32_z(crc, reinterpret_cast<const Bytef*>(t.tensor.data()), data_size);
    std::string fields;  // fields of both headers: version needed ... extra length
    append_u16(fields, 20);
    append_u16(fields, 0x800);  // flags: the name is UTF-8
    append_u16(fields, 0);      // stored
    append_u16(fields, 0);      // time
    append_u16(fields, 0x21);   // 1 January 1980, the earliest date: equal input gives equal files
    append_u32(fields, crc);
    append_u32(fields, size);
    append_u32(fields, size);
    append_u16(fields, name.size());
    append_u16(fields, 0);
    std::string local;
    append_u32(local, kLocalHeader);
    for (const std::string& part : {fields, name, head}) local += part;
    append_u32(directory, kCentralHeader);
    append_u16(directory, 20);
    directory += fields;
    append_u16(directory, 0);  // comment
    append_u16(directory, 0);  // disk
    append_u16(directory, 0);  // internal attributes
    append_u32(directory, 0);  // external attributes
    append_u32(directory, offset);
    directory += name;
    offset += local.size() + data_size;
    headers.push_back(std::move(local));
  }
  std::string end;
  append_u32(end, kEnd);
  append_u32(end, 0);
  append_u16(end, tensors.size());
  append_u16(end, tensors.size());
  append_u32(end, directory.size());
  append_u32(end, offset);
  append_u16(end, 0);
  std::vector<std::string_view> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    parts.emplace_back(headers[i]);
    parts.emplace_back(reinterpret_cast<const char*>(tensors[i].tensor.data()), tensors[i].tensor.size_bytes());
  }
  parts.emplace_back(directory);
  parts.emplace_back(end);
  write_file(path, parts);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("write_npz");
}

}  // namespace rlx
