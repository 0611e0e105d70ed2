// Sources of weights: named tensors of a file or of memory.
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

/// A source of named weights. Views stay valid as long as the loader lives.
class WeightLoader {
 public:
  virtual ~WeightLoader() = default;
  /// All names, in the order of the file.
  virtual std::vector<std::string> names() const = 0;
  /// The tensor called `name` (its `dims` point into the loader), or none.
  virtual std::optional<TensorView> find(std::string_view name) const = 0;
  /// Tells the loader that up to `bytes` bytes of `name`, from byte `first` on, will not be read soon, so that it can
  /// release mapped pages.
  virtual void drop_pages(std::string_view name, std::size_t first, std::size_t bytes) const {
    (void)name, (void)first, (void)bytes;
  }
  /// The file of `name` and its current identity. None when it lies in no file.
  virtual std::optional<SourceIdentity> identity(std::string_view name) const {
    (void)name;
    return std::nullopt;
  }
  /// drop_pages for the whole tensor.
  void drop_all_pages(std::string_view name) const { drop_pages(name, 0, ~std::size_t{0}); }
};

}  // namespace rlx
