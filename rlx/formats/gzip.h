// gzip files: compressed bytes in, the whole content out.
#pragma once

#include <string>
#include <string_view>

namespace rlx {

/// Whether `bytes` start like a gzip file.
bool is_gzip(std::string_view bytes);

/// The content of a gzip file of one or more members. The checksum of each member is verified. Errors: BadFile naming
/// `source` for bytes that are damaged, truncated or followed by other data, and for content of more than 256 MiB and
/// 64 times the bytes.
std::string gunzip(std::string_view bytes, const std::string& source, std::size_t free_bytes = std::size_t{256} << 20);

}  // namespace rlx
