// Where weights come from: named tensors of a file or of memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/tensor/packed_weight_cache.h"
#include "rlx/tensor/tensor.h"

namespace rlx {

/// Source of named weights; views stay valid as long as the loader lives.
class WeightLoader {
 public:
  virtual ~WeightLoader() = default;
  /// All names, in the order of the file.
  virtual std::vector<std::string> names() const = 0;
  /// The tensor called `name` (its `dims` point into the loader), or none.
  virtual std::optional<TensorView> find(std::string_view name) const = 0;
  /// Tells the loader that `bytes` bytes of `name` from byte `first` on, as far as there are any, will not be read
  /// soon, so that mapped pages can be given back.
  virtual void drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const {
    (void)name, (void)first, (void)bytes;
  }
  /// Which file `name` lies in, and what that is now; none when it lies in no file.
  virtual std::optional<SourceIdentity> identity(std::string_view name) const {
    (void)name;
    return std::nullopt;
  }
  /// drop_pages of all of it.
  void drop_all_pages(std::string_view name) const { drop_pages(name, 0, ~std::size_t{0}); }
};

}  // namespace rlx
