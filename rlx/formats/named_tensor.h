// A tensor with its name, as files of several tensors hold them.
#pragma once

#include <string>

#include "rlx/tensor/tensor.h"

namespace rlx {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace rlx
