// SHA-1 and SHA-256 of FIPS 180-4.
#include "rlx/hub/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "rlx/error.h"

namespace rlx {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kCubeRoots = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const unsigned char* b) {
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

}  // namespace

Digest::Digest(Kind kind) : kind_(kind) {
  if (kind == Kind::Sha256)
    state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  else
    state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
}

void Digest::block(const unsigned char* bytes) {
  if (kind_ == Kind::Sha256)
    block_sha256(bytes);
  else
    block_sha1(bytes);
}

void Digest::block_sha256(const unsigned char* bytes) {
  using std::rotr;
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i) w[i] = big_endian(bytes + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (rotr(a, 7) ^ rotr(a, 18) ^ a >> 3) + w[i - 7] + (rotr(b, 17) ^ rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t t = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + kCubeRoots[i] + w[i];
    const std::uint32_t u = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t, d = c, c = b, b = a, a = t + u;
  }
  const std::array<std::uint32_t, 8> sum = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += sum[i];
}

void Digest::block_sha1(const unsigned char* bytes) {
  using std::rotl;
  std::array<std::uint32_t, 80> w;
  for (std::size_t i = 0; i < 16; ++i) w[i] = big_endian(bytes + 4 * i);
  for (std::size_t i = 16; i < 80; ++i) w[i] = rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  std::uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3], e = state_[4];
  for (std::size_t i = 0; i < 80; ++i) {
    std::uint32_t f = b ^ c ^ d, k = 0xca62c1d6;
    if (i < 20)
      f = (b & c) | (~b & d), k = 0x5a827999;
    else if (i < 40)
      k = 0x6ed9eba1;
    else if (i < 60)
      f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
    const std::uint32_t t = rotl(a, 5) + f + e + k + w[i];
    e = d, d = c, c = rotl(b, 30), b = a, a = t;
  }
  const std::array<std::uint32_t, 5> sum = {a, b, c, d, e};
  for (std::size_t i = 0; i < 5; ++i) state_[i] += sum[i];
}

void Digest::add(std::string_view bytes) {
  size_ += bytes.size();
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  if (held_ > 0) {
    const std::size_t taken = std::min(left, rest_.size() - held_);
    std::memcpy(rest_.data() + held_, at, taken);
    held_ += taken, at += taken, left -= taken;
    if (held_ < rest_.size()) return;
    block(rest_.data());
    held_ = 0;
  }
  for (; left >= rest_.size(); at += rest_.size(), left -= rest_.size()) block(at);
  if (left > 0) std::memcpy(rest_.data(), at, left);
  held_ = left;
}

std::string Digest::finish() {
  const std::uint64_t bits = size_ * 8;
  std::string end(1, '\x80');
  end.append((119 - held_) % 64, '\0');  // the length takes the last 8 bytes of a block of 64
  for (int shift = 56; shift >= 0; shift -= 8) end += static_cast<char>(bits >> shift & 0xff);
  add(end);
  std::string out;
  for (std::size_t i = 0; i < (kind_ == Kind::Sha256 ? 8U : 5U); ++i)
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[state_[i] >> shift & 15];
  return out;
}

Digest file_digest(std::size_t digits, std::uint64_t size) {
  if (digits == 64) return Digest(Digest::Kind::Sha256);
  Digest sum(Digest::Kind::Sha1);
  sum.add(concat_text("blob ", size));
  sum.add(std::string_view("\0", 1));
  return sum;
}

}  // namespace rlx
