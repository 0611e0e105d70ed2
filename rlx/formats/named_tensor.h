// A tensor with its name, for files of several tensors.
#pragma once

#include <string>

#include "rlx/tensor/tensor.h"

namespace rlx {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace rlx
