// Tensors of other libraries as ours, and ours as theirs, without a copy (DLPack).
#pragma once

#include "rlx/device/device.h"
#include "rlx/tensor/dlpack.h"
#include "rlx/tensor/tensor.h"

namespace rlx {

/// The tensor of another library as one of ours, which owns `managed` from then on and calls its deleter with the last
/// of its bytes. On the host its bytes are shared when they are dense and aligned, else copied; on a device they are
/// shared, and must be dense and done. When it throws, the caller owns `managed` still.
Tensor adopt(dlpack::Managed* managed);
/// A tensor of ours for another library: read-only, the bytes shared and done. The receiver calls the deleter once.
dlpack::Managed* to_dlpack(const Tensor& value);

}  // namespace rlx
