// Checksums of files on a hub: SHA-256 of large files, git's SHA-1 of the others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rlx {

/// The state of a SHA-256 or SHA-1 sum over bytes that come in pieces.
class Digest {
 public:
  enum class Kind : std::uint8_t { Sha1, Sha256 };
  explicit Digest(Kind kind);
  void add(std::string_view bytes);
  /// The sum in lower-case hexadecimal digits. Call once.
  std::string finish();

 private:
  void block(const unsigned char* bytes);
  void block_sha1(const unsigned char* bytes);
  void block_sha256(const unsigned char* bytes);
  Kind kind_;
  std::array<std::uint32_t, 8> state_{};
  std::array<unsigned char, 64> rest_{};
  std::size_t held_ = 0;
  std::uint64_t size_ = 0;
};

/// The checksum of a file of `size` bytes as a hub lists it: 64 digits are SHA-256, 40 digits are the name of a git
/// blob.
Digest file_digest(std::size_t digits, std::uint64_t size);

}  // namespace rlx
