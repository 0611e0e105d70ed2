// Random tokens of a seed, and bitwise equality of tensors, for tests of caches.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "rlx/tensor/tensor.h"
#include "rlx/text/tokenizer.h"

namespace rlx::test {

inline std::vector<TokenId> random_tokens(unsigned seed, std::size_t size, unsigned vocabulary) {
  std::mt19937 rng(seed);
  std::vector<TokenId> out(size);
  for (TokenId& t : out) t = static_cast<TokenId>(rng() % vocabulary);
  return out;
}
inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dims() == b.dims() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace rlx::test
