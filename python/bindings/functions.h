// Binds functions of rlx/functions.
#pragma once

#include "python/bindings/common.h"

namespace rlx::python {

void bind_functions(nb::module_& m);

}  // namespace rlx::python
