// Where weights come from: named tensors of a file or of memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  /// Tells the loader that the bytes of `name` will not be read soon, so that mapped pages can be given back.
  virtual void drop_pages(std::string_view name) const { (void)name; }
};

}  // namespace rlx
