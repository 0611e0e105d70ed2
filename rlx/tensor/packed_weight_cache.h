// A cache of packed weight layouts across process starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "rlx/tensor/tensor.h"

namespace rlx {

/// The identity of a file when something was made from it. Equal identities mean equal content, as far as the file
/// system tells.
struct SourceIdentity {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t mtime_ns = 0;
  std::string header;  // a hash of the file's tensor descriptions
  friend bool operator==(const SourceIdentity&, const SourceIdentity&) = default;
};

/// Stores packed layouts. Calls may come from several threads.
class PackedWeightCache {
 public:
  virtual ~PackedWeightCache() = default;
  /// The `bytes` bytes saved under `key`, mapped. They were made from `source` in its current state, or, if it has
  /// changed, from weights with the same `content()`. An empty tensor when there are none.
  virtual Tensor find(std::string_view key, std::size_t bytes, const SourceIdentity& source,
                      const std::function<std::string()>& content) = 0;
  /// Saves `bytes` under `key`. A failure to write is not an error.
  virtual void save(std::string_view key, std::span<const std::byte> bytes, const SourceIdentity& source,
                    const std::string& content) = 0;
};

using FormCache [[deprecated("now PackedWeightCache")]] = PackedWeightCache;

}  // namespace rlx
