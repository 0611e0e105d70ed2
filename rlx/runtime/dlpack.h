// Zero-copy exchange of tensors with other libraries (DLPack).
#pragma once

#include "rlx/device/device.h"
#include "rlx/tensor/dlpack.h"
#include "rlx/tensor/tensor.h"

namespace rlx {

/// Imports a tensor of another library. The result owns `managed` and calls its deleter when the last owner of its
/// bytes is gone. On the host its bytes are shared when they are dense and aligned, and copied otherwise. On a device
/// they are shared, and must be dense and complete. When it throws, the caller still owns `managed`.
Tensor adopt(dlpack::Managed* managed);
/// Exports a tensor to another library: read-only, bytes shared and complete. The receiver calls the deleter once.
dlpack::Managed* to_dlpack(const Tensor& value);

}  // namespace rlx
