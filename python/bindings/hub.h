// Models by their name on a hub.
#pragma once

#include <filesystem>
#include <string>

#include "python/bindings/common.h"

namespace rlx::python {

/// The path of a model: `path` if it exists, else what rlx.hub.find says. Throws Python's OSError, with the path, for a
/// path of nothing that is no name on a hub.
std::string existing_model(const std::filesystem::path& path);

void bind_hub(nb::module_& m);

}  // namespace rlx::python
