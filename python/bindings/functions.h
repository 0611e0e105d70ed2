// Functions of rlx/functions as parts of the module.
#pragma once

#include "python/bindings/common.h"

namespace rlx::python {

void bind_functions(nb::module_& m);

}  // namespace rlx::python
