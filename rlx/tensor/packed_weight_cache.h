// Forms of weights kept from one start to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "rlx/tensor/tensor.h"

namespace rlx {

/// What a file was when something was made of it. Equal identities mean the same content, as far as a file system says.
struct SourceIdentity {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t mtime_ns = 0;
  std::string header;  // a hash of what the file says of its tensors
  friend bool operator==(const SourceIdentity&, const SourceIdentity&) = default;
};

/// Where forms are kept. Calls may come from several threads.
class PackedWeightCache {
 public:
  virtual ~PackedWeightCache() = default;
  /// The bytes saved under `key`, `bytes` of them, mapped: made of `source` as it is, or, where that has changed, of
  /// weights of the same `content()`. An empty tensor when there are none.
  virtual Tensor find(std::string_view key, std::size_t bytes, const SourceIdentity& source,
                      const std::function<std::string()>& content) = 0;
  /// Keeps `bytes` under `key`. What cannot be written is no reason to stop.
  virtual void save(std::string_view key, std::span<const std::byte> bytes, const SourceIdentity& source,
                    const std::string& content) = 0;
};

using FormCache [[deprecated("now PackedWeightCache")]] = PackedWeightCache;

}  // namespace rlx
