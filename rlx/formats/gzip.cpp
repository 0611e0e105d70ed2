// Decompression of gzip members with zlib, which verifies length and checksum of each.
#include "rlx/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "rlx/base/work_budget.h"
#include "rlx/error.h"

namespace rlx {

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b\x08"); }

std::string gunzip(std::string_view bytes, const std::string& source, std::size_t free_bytes) {
  auto fail = [&](std::string_view message) {
    throw Error(ErrorCode::BadFile, concat_text(source, ": ", message), "`gzip -t` tells whether the file is whole");
  };
  if (!is_gzip(bytes)) fail("this is not a gzip file");
  z_stream stream{};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK)
    throw Error(ErrorCode::OutOfMemory, "not enough memory to decompress the file");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, &inflateEnd);
  // Texts are compressed 3 to 20 times; zeros 1,000 times.
  WorkBudget budget(0, free_bytes + 64 * std::uint64_t{bytes.size()});
  const std::size_t packed = bytes.size();
  std::string out, block(1 << 16, '\0');
  auto part = [](std::size_t n) {
    return static_cast<uInt>(std::min<std::size_t>(n, std::numeric_limits<uInt>::max()));
  };
  while (true) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = part(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const std::size_t given = stream.avail_in;
    const int code = inflate(&stream, Z_NO_FLUSH);
    bytes.remove_prefix(given - stream.avail_in);
    if (!budget.take(block.size() - stream.avail_out))
      throw Error(ErrorCode::BadFile,
                  concat_text(source, ": the file has ", packed, " bytes and holds more than ", out.size(),
                              ": it is refused, since files that unpack without end fill the memory"),
                  "if it is yours, unpack it with gunzip first");
    out.append(block, 0, block.size() - stream.avail_out);
    if (code == Z_STREAM_END) {
      if (bytes.empty()) return out;
      if (!is_gzip(bytes)) fail("the file has bytes after the compressed data");
      inflateReset(&stream);
    } else if (code == Z_MEM_ERROR) {
      throw Error(ErrorCode::OutOfMemory, "not enough memory to decompress the file");
    } else if (code == Z_BUF_ERROR || (code == Z_OK && bytes.empty() && stream.avail_out > 0)) {
      fail("the compressed data ends too early");
    } else if (code != Z_OK) {
      fail(concat_text("the compressed data is damaged", stream.msg ? concat_text(" (", stream.msg, ")") : ""));
    }
  }
}

}  // namespace rlx
