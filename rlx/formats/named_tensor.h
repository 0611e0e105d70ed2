// A tensor with its name, for files of several tensors.
#pragma once

#include <string>

#include "rlx/tensor/tensor.h"

namespace rlx {

/// A tensor of a checkpoint and its name.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace rlx
